//! The endpoint's part in connecting: what it tells a new peer, and what it
//! makes of what the peer told.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;

use super::greeting::Greeting;
use super::peer::{Connection, Link, Peer};
use super::peer_regions::PeerRegions;
use super::state::Traffic;
use crate::base::errno_advice::advice;
use crate::connect;
use crate::connect::{Closed, Handler, Rejection, Waker};
use crate::mechanism::hellos::{decode_report, encode_report};
use crate::mechanism::oob_message;
use crate::mechanism::oob_message::Arrival;
use crate::queue::{Credit, InboxReceiver, InboxSender};
use crate::region::RemoteTable;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;
use crate::vocabulary::peer_facts::PeerFacts;

impl Traffic {
    fn greet(&mut self, id: EndpointId, inbox: &mut InboxReceiver) -> Result<connect::Greeting, Rejection> {
        let max = self.config.max_peers;
        let key = self
            .key_of(id, inbox)
            .ok_or_else(|| format!("it knows {max} peers already, the most it can; raise max_peers"))?;
        // One that has ended and comes again is waited for like a new one.
        let peer = &mut self.peers[key as usize];
        peer.bound |= self.accepts_unnamed_peers;
        if matches!(peer.connection, Connection::Gone(_)) {
            peer.connection = Connection::Pending;
        }
        let no_descriptor = |e: std::io::Error| {
            let errno = Errno::from_raw(e.raw_os_error().unwrap_or(0));
            let advice = advice("fcntl(F_DUPFD_CLOEXEC)", errno);
            let reason = format!("a descriptor cannot be passed on: {errno}; {advice}");
            Rejection { reason, errno: Some(errno) }
        };
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(no_descriptor);
        let greeting = Greeting {
            index: key as u16,
            unexpected_max_bytes: self.config.unexpected_max_bytes,
            cpus: self.cpus,
            inbox: copy(self.inbox_fd.as_fd())?,
            regions: copy(self.regions.descriptor().as_fd())?,
            fast_box: inbox.open_fast_box(key as u16).map_err(no_descriptor)?,
            hellos: self.transfers.mechanisms().hellos(),
        };
        let (bytes, descriptors) = greeting.encode();
        Ok(connect::Greeting { bytes, descriptors, lost_descriptors: 0 })
    }

    fn meet(
        &mut self,
        facts: &PeerFacts,
        greeting: connect::Greeting,
        waker: Waker,
        own_inbox: &mut InboxReceiver,
    ) -> Result<Vec<u8>, Rejection> {
        let greeting = Greeting::decode(greeting)?;
        let key = *self.by_id.get(&facts.id).ok_or("it has not been greeted")?;
        let mut inbox = InboxSender::attach(greeting.inbox, greeting.index)?;
        if let Some(fast_box) = greeting.fast_box {
            inbox.use_fast_box(fast_box)?;
            inbox.share_handoff_cells(own_inbox, key as u16, self.id < facts.id);
        }
        let table = RemoteTable::attach(greeting.regions, facts.id)?;
        let report = self.transfers.mechanisms().probe(key, facts, greeting.hellos);
        // A fast box knows by itself when it is full, and is nobody else's.
        let max_cells = match inbox.has_fast_box() {
            true => u64::MAX,
            false => (inbox.geometry().usable_cells() as u64 / 2).max(1),
        };
        let return_at_cells = match own_inbox.has_fast_box(key as u16) {
            true => u64::MAX,
            false => u64::from(self.config.inbox_cells / 16).clamp(1, 16),
        };
        self.peers[key as usize].connection = Connection::AwaitingReport(Box::new(Link {
            inbox,
            waker,
            regions: PeerRegions::new(table),
            process: facts.process.clone(),
            cpus: greeting.cpus,
            sent: Credit::default(),
            returned: Credit::default(),
            max_cells,
            max_bytes: greeting.unexpected_max_bytes,
            drained: Credit::default(),
            credits_returned: Credit::default(),
            return_at_cells,
            return_at_bytes: (self.config.unexpected_max_bytes / 8).min(1 << 17),
            in_return_credits_to: false,
        }));
        Ok(encode_report(&report))
    }
}

/// What a connector tells of peers, and the inbox, which is drained before a
/// peer that has ended is buried.
///
/// That happens at once, within the call that tells it: the next may be of the
/// same peer come again, for which nothing of the old may be left.
pub(crate) struct Reception<'a> {
    pub traffic: &'a mut Traffic,
    pub inbox: &'a mut InboxReceiver,
}

impl Handler for Reception<'_> {
    fn hello(&mut self, peer: EndpointId) -> Result<connect::Greeting, Rejection> {
        self.traffic.greet(peer, self.inbox)
    }

    fn probe(
        &mut self,
        facts: &PeerFacts,
        greeting: connect::Greeting,
        waker: Waker,
    ) -> Result<Vec<u8>, Rejection> {
        // What came over an earlier attempt is accounted to that.
        self.traffic.drain(self.inbox);
        self.traffic.meet(facts, greeting, waker, self.inbox)
    }

    fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
        let traffic = &mut *self.traffic;
        let Some(&key) = traffic.by_id.get(&facts.id) else { return };
        traffic.transfers.mechanisms().learn(key, &decode_report(&report));
        // It has reported, so it has what the greeting brought.
        self.inbox.fast_box_sent(key as u16);
        if let Connection::AwaitingReport(link) = &traffic.peers[key as usize].connection {
            traffic.selection.meet(key, link.cpus, link.inbox.has_fast_box());
        }
        traffic.renew_eager(key);
        let peer = &mut traffic.peers[key as usize];
        peer.connection = match std::mem::replace(&mut peer.connection, Connection::None) {
            Connection::AwaitingReport(link) => Connection::Up(link),
            other => other,
        };
        peer.may_write = None;
        if peer.has_output() {
            traffic.mark_busy(key);
        }
        traffic.note_reconnected(facts.id);
        traffic.update_oversubscription();
    }

    fn failed(&mut self, id: EndpointId, error: PeerError) {
        self.end(id, error, None);
    }

    fn closed(&mut self, id: EndpointId, how: Closed) {
        self.end(id, PeerError::Dead { id }, Some(how));
    }

    fn descriptors(&mut self, id: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        let count = descriptors.len();
        let traffic = &mut *self.traffic;
        let Some(&key) = traffic.by_id.get(&id) else { return };
        let expected = match oob_message::parse(bytes, descriptors) {
            Arrival::OobMessage(oob_message) => {
                traffic.transfers.mechanisms().take_oob_message(key, oob_message)
            }
            Arrival::Region(answer, descriptors) => {
                let link = traffic.peers.get_mut(key as usize).and_then(Peer::link);
                link.is_some_and(|link| link.regions.take_answer(answer, descriptors))
            }
            Arrival::Stray => false,
        };
        if !expected {
            tracing::warn!(peer = %id, count, "a peer passed descriptors that nobody expects");
        }
    }

    /// The doorbell is the one descriptor of ours in the connector's epoll.
    fn readable(&mut self, _token: u64) {
        self.traffic.doorbell.clear();
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
