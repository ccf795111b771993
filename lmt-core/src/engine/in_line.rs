//! The fewest steps for a message that fits a cache line: what it is sent by, up to where its
//! line is published, and what it is received by, from where its line has come, is all that it
//! takes beside the line's way from core to core.
//!
//! Whatever is out of the ordinary goes the ways that `direct` has.
#![forbid(unsafe_code)]

use super::label::Label;
use super::outgoing::envelope_of;
use super::peer::{Connection, Peer};
use super::requests::{PeerId, Status};
use super::traffic::{OVERHEAD_BYTES, Traffic, kind};
use crate::inbox::{Header, INLINE_BYTES};
use crate::matching::Pattern;
use crate::rendezvous::PeerKey;

impl Traffic {
    /// Sends a message in a line of the peer's fast box, if it fits one, goes in cells for
    /// certain, and may go now.
    #[inline(always)] // The path of a short message.
    pub(super) fn send_in_line(&mut self, to: PeerId, label: &Label, data: &[u8]) -> Option<Status> {
        if data.len() > INLINE_BYTES {
            return None;
        }
        let bytes = data.len() as u64;
        let peer = self.peers.get_mut(to.key as usize)?;
        if !peer.bound || peer.generation != to.generation {
            return None;
        }
        let most_bytes = peer.eager_max_bytes;
        if bytes > most_bytes || bytes > self.config.boxless_eager_max_bytes {
            return None;
        }
        if peer.group_version != self.selection.group_version() || !peer.ordered.is_empty() {
            return None;
        }
        let Connection::Up(link) = &mut peer.connection else { return None };
        let charge_bytes = bytes + OVERHEAD_BYTES;
        if !link.has_cell() || !link.has_bytes(charge_bytes) {
            return None;
        }
        let (envelope, _) = envelope_of(label, 0, bytes, bytes);
        if !link.write_in_line(envelope, data, charge_bytes) {
            return None;
        }
        peer.eager.sent.count(bytes);
        self.eager.sent.count(bytes);
        Some(Status { peer: to, tag: label.tag, bytes, immediate: label.immediate })
    }

    /// Whether a message is the one wanted, as a whole, and nothing else is to be done for it than
    /// to copy and to count it; if so, what an answer would be written to is asked for.
    #[inline(always)] // The path of a short message.
    pub(super) fn takes_in_line(&self, header: &Header, wanted: Pattern) -> bool {
        let key = PeerKey::from(header.sender);
        let Some(Peer { connection: Connection::Up(link), bound: true, .. }) = self.peers.get(key as usize)
        else {
            return false;
        };
        let is_it = header.kind == kind::EAGER && wanted.accepts(key, header.tag);
        if is_it {
            link.inbox.expect_to_send(header.bytes);
        }
        is_it
    }

    /// Counts such a message, which is copied and ended; `at_first` says that the first look found
    /// it.
    #[inline(always)] // The path of a short message.
    pub(super) fn took_in_line(&mut self, header: &Header, at_first: bool) -> Status {
        let (key, bytes) = (PeerKey::from(header.sender), header.bytes as u64);
        let peer = self.count_taken(key, bytes, bytes, at_first);
        Status { peer, tag: header.tag, bytes, immediate: None }
    }
}
