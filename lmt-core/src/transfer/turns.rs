//! Whose turn it is: one active transfer after the other moves a quota of bytes, buffers that
//! are to be written are faulted in chunk by chunk, and what mechanisms tell their peers'
//! instances goes out. Progress calls all of it.

use super::Transfers;
use super::side::{Side, index_of};
use crate::connect::Connector;
use crate::vocabulary::identity::{EndpointId, PeerKey};
use crate::vocabulary::transfer::Step;

impl Transfers {
    /// Lets the next active transfer that can move do so, by at most
    /// `quota_bytes`. Returns whether one has, or has ended, or there are more
    /// than one call looks at: then the next call looks at those.
    ///
    /// Of many active transfers most may wait for one of them (a pipe carries
    /// one message at a time), so those that stand still are passed over.
    pub fn step(&mut self, quota_bytes: u64) -> bool {
        let active = self.machine.active();
        for _ in 0..active.min(Self::MAX_SKIPPED) {
            if self.step_next(quota_bytes) {
                self.stalled_in_a_row = 0;
                return true;
            }
            self.stalled_in_a_row += 1;
        }
        if self.stalled_in_a_row < active {
            return true;
        }
        self.stalled_in_a_row = 0;
        false
    }

    /// So many are passed over in one call, which is to stay short.
    const MAX_SKIPPED: usize = 64;

    /// Returns whether the next active transfer went on or ended.
    fn step_next(&mut self, quota_bytes: u64) -> bool {
        let Some((key, max_bytes)) = self.machine.next_step(quota_bytes) else { return false };
        let (side, mechanisms) = self.side(key);
        let Some(Side { buffer, handle: Some(handle), .. }) = side else { return false };
        let stands_still = match mechanisms.step(*handle, buffer, max_bytes) {
            // Number by number: moved as one, they would wait for the copy's last stores.
            Ok(Step { bytes, done }) => {
                self.machine.moved(key, bytes, done);
                bytes == 0 && !done
            }
            Err(fault) => {
                self.machine.stepped(key, Err(fault));
                false
            }
        };
        self.pump();
        !stands_still
    }

    /// Has every send that helps its receiver leave that, before a sleep. Returns whether
    /// one was found to have ended.
    pub fn rest(&mut self) -> bool {
        let ended = self.ended.len();
        self.machine.rest();
        self.pump();
        self.ended.len() > ended
    }

    /// Faults in one chunk of a buffer that a peer is to write. Returns whether
    /// there was one.
    pub fn prefault(&mut self) -> bool {
        let Some(id) = self.prefaulting.pop_front() else { return false };
        // The receive may have ended meanwhile, and its slot be another's.
        if let Some(side) = self.receives.get_mut(index_of(id.0)).and_then(Option::as_mut)
            && let Some(work) = &mut side.prefault
        {
            if work.step(&side.buffer) {
                self.prefaulting.push_back(id);
            } else {
                side.prefault = None;
            }
        }
        true
    }

    /// Whether [`Self::prefault`] has something to do.
    #[inline]
    pub fn is_prefaulting(&self) -> bool {
        !self.prefaulting.is_empty()
    }

    /// Whether there is nothing to move, to send or to tell.
    #[inline]
    pub(crate) fn is_quiescent(&self) -> bool {
        !self.is_active()
            && !self.machine.has_packets()
            && self.ended.is_empty()
            && !self.is_prefaulting()
            && !self.mechanisms.has_oob_messages()
    }

    /// How many transfers can move bytes from this side, if their turn comes.
    #[inline]
    pub fn active(&self) -> usize {
        self.machine.active()
    }

    /// Whether any transfer can move bytes from this side now, or as soon as the packets
    /// have been taken.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.machine.active() > 0 || !self.held.is_empty()
    }

    /// Sends what mechanisms have for their peers' instances over the
    /// connections; what finds no room stays until the next call.
    pub(crate) fn hand_over(
        &mut self,
        connector: &mut Connector,
        id_of: impl Fn(PeerKey) -> Option<EndpointId>,
    ) {
        for (peer, oob_message) in self.mechanisms.take_oob_messages() {
            let Some(id) = id_of(peer) else { continue };
            if !connector.has_room(id) {
                self.mechanisms.put_back(peer, oob_message);
                continue;
            }
            let (bytes, descriptors) = oob_message.encode();
            if let Err(error) = connector.send_descriptors(id, &bytes, descriptors) {
                // The peer is gone, and its transfers will hear of that.
                tracing::debug!(peer = %id, %error, "an out-of-band message of a mechanism was not sent");
            }
        }
    }
}
