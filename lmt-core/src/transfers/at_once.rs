//! Messages that their receiver copies in one call, without a transfer of its own: see
//! [`crate::mechanism::Lmt::get_at_once`].

use super::Transfers;
use crate::buffer::Buffer;
use crate::mechanism::Model;
use crate::rendezvous::{Done, PeerKey, Received, Rts, TransferKey};
use crate::shared_buffer::is_shared;

impl Transfers {
    /// A receive was found for an RTS, and its message is short enough to be copied at once:
    /// it is in `buffer`, and its sender is told, if this returns how many bytes it is. If
    /// not, the message is to be given to [`Self::matched`].
    #[inline]
    pub(crate) fn get_at_once(&mut self, peer: PeerKey, rts: &Rts, buffer: &mut Buffer) -> Option<Received> {
        let total_bytes = rts.total_bytes;
        let received_bytes = total_bytes.min(buffer.total_bytes());
        let is_here = rts.model == Model::Get
            && (1..=Self::AT_ONCE_BYTES).contains(&received_bytes)
            && self.mechanisms.get_at_once(rts.mechanism, peer, &rts.cookie, buffer, received_bytes);
        if !is_here {
            return None;
        }
        self.at_once_bytes += received_bytes;
        let done = Done::new(TransferKey::Send(rts.send_id), rts.attempt, is_shared(buffer));
        self.machine.received_at_once(peer, done);
        Some(Received { total_bytes, received_bytes, truncated: received_bytes < total_bytes })
    }

    /// How much [`Self::get_at_once`] has copied so far, in bytes.
    #[inline]
    pub(crate) const fn at_once_bytes(&self) -> u64 {
        self.at_once_bytes
    }

    /// Up to there a receiver that copies alone does so without a transfer.
    pub(crate) const AT_ONCE_BYTES: u64 = 256 << 10;
}

#[cfg(test)]
#[path = "at_once_tests.rs"]
mod tests;
