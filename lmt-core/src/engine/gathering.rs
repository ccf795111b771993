//! Announced messages that come one behind the other, and that one call of a mechanism copies
//! together.
//!
//! A system call that copies has a cost of its own, whether it copies one message or eight, and
//! where a peer has sent a window of them they lie there together. So while they come without a
//! pause, those that receives wait for are kept back and copied behind the last of them. Who has
//! just one or two under way gains nothing: its sender waits for the first while the second is
//! copied; so it is found out how many there are.

use super::Engine;
use super::label::Label;
use super::requests::RequestId;
use super::traffic::Traffic;
use crate::buffer::Buffer;
use crate::mechanism::Gathered;
use crate::rendezvous::{PeerKey, Rts};
use crate::transfers::{Receipt, Transfers};

/// The most messages that are copied together: eight take 0.91 of the time of one after the
/// other (64 KiB), sixteen as long as eight.
const MOST_MESSAGES: usize = 8;
/// The most bytes, and no more than half of the quota: what a copy of one message may be, twice.
const MOST_BYTES: u64 = 2 * Transfers::AT_ONCE_BYTES;
/// With fewer their sender may have waited for the first.
const WORTH_IT: usize = 3;
/// So many come one by one before some are gathered; twice as many each time there were too few.
const FIRST_ALONE: u16 = 1;
const MOST_ALONE: u16 = 32;
/// The most cells that are taken meanwhile.
const MOST_CELLS: usize = 4 * MOST_MESSAGES;

/// Whether messages come one behind the other.
#[derive(Debug)]
struct Run {
    peer: PeerKey,
    /// How many have come since a look found none.
    in_a_row: u16,
    /// How many of them go alone.
    alone: u16,
}

impl Default for Run {
    fn default() -> Self {
        Self { peer: 0, in_a_row: 0, alone: FIRST_ALONE }
    }
}

impl Run {
    /// One has come that can be copied at once.
    const fn comes(&mut self, peer: PeerKey, is_first: bool) {
        if is_first || peer != self.peer {
            (self.peer, self.in_a_row) = (peer, 0);
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
    }

    /// Whether the next one is gathered, if it comes at once.
    const fn is_on(&self) -> bool {
        self.in_a_row >= self.alone
    }

    /// So many were gathered.
    fn learn(&mut self, messages: usize, was_full: bool) {
        if was_full || messages >= WORTH_IT {
            self.alone = FIRST_ALONE;
        } else {
            (self.in_a_row, self.alone) = (0, (self.alone * 2).min(MOST_ALONE));
        }
    }
}

/// What is gathered, all from one peer by one mechanism: nothing, but within one poll of the inbox.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    run: Run,
    /// Whether messages may be gathered: somebody copies them behind this.
    is_open: bool,
    /// Whose they are.
    peer: PeerKey,
    messages: Vec<Gathered>,
    /// The same messages' announcements and receives.
    awaited: Vec<(Label, Rts, RequestId)>,
    bytes: u64,
}

impl Gathering {
    /// Whether what comes next may be gathered.
    #[inline]
    pub(super) const fn is_ready(&self) -> bool {
        self.run.is_on()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether a message of this peer may be put beside those that are there, of which there may
    /// be `most_bytes`.
    fn takes(&self, peer: PeerKey, rts: &Rts, bytes: u64, most_bytes: u64) -> bool {
        let is_alike = match self.awaited.first() {
            None => self.run.peer == peer,
            Some((_, first, _)) => self.peer == peer && first.mechanism == rts.mechanism,
        };
        let has_room = self.messages.len() < MOST_MESSAGES && self.bytes.saturating_add(bytes) <= most_bytes;
        self.is_open && is_alike && has_room
    }

    /// Whether there is no room for another like them.
    fn is_full(&self, most_bytes: u64) -> bool {
        let messages = self.messages.len() as u64;
        messages >= MOST_MESSAGES as u64 || self.bytes + self.bytes / messages.max(1) > most_bytes
    }
}

impl Engine {
    /// Takes a cell while announced messages come one behind the other; behind one that is
    /// gathered the next ones, and copies them. Returns whether there was one.
    #[inline(never)] // What comes without others has nothing of it.
    pub(super) fn poll_and_gather(&mut self) -> bool {
        self.traffic.gathering.is_open = true;
        let found_one = self.poll_one();
        let copied_bytes = self.traffic.transfers.at_once_bytes();
        for _ in 0..MOST_CELLS {
            let goes_on = self.traffic.goes_on_gathering()
                && self.traffic.transfers.at_once_bytes() == copied_bytes
                && self.poll_one();
            if !goes_on {
                break;
            }
        }
        self.traffic.copy_gathered();
        found_one
    }
}

impl Traffic {
    /// A message has come that a receive waits for, and that was copied at once by itself: from
    /// now on messages like it may be gathered.
    #[inline]
    pub(super) fn note_run(&mut self, key: PeerKey) {
        self.gathering.run.comes(key, self.looked_in_vain);
    }

    /// So many bytes are gathered at most: what one call copies is to stay short.
    fn most_gathered_bytes(&self) -> u64 {
        MOST_BYTES.min(self.config.quota_bytes / 2)
    }

    /// Whether something is gathered, and more may be.
    fn goes_on_gathering(&self) -> bool {
        let gathering = &self.gathering;
        !gathering.is_empty() && !gathering.is_full(self.most_gathered_bytes()) && !self.in_pieces
    }

    /// Keeps a message for its receive to be copied with others, or gives the buffer back.
    pub(super) fn keep_back(
        &mut self,
        key: PeerKey,
        label: &Label,
        rts: &Rts,
        buffer: Buffer,
        request: RequestId,
    ) -> Option<Buffer> {
        let bytes = rts.total_bytes.min(buffer.total_bytes());
        let most_bytes = self.most_gathered_bytes();
        let may_be = !self.looked_in_vain
            && self.gathering.takes(key, rts, bytes, most_bytes)
            && self.transfers.may_gather(key, rts, &buffer);
        if !may_be {
            return Some(buffer);
        }
        let gathering = &mut self.gathering;
        gathering.peer = key;
        gathering.run.comes(key, false);
        gathering.bytes += bytes;
        gathering.messages.push(Gathered { remote: rts.cookie, data: buffer, bytes });
        gathering.awaited.push((*label, *rts, request));
        None
    }

    /// Copies what was gathered, and tells their sender.
    fn copy_gathered(&mut self) {
        let most_bytes = self.most_gathered_bytes();
        let gathering = &mut self.gathering;
        gathering.is_open = false;
        if self.looked_in_vain {
            gathering.run.in_a_row = 0;
        }
        let Some((_, Rts { mechanism, .. }, _)) = gathering.awaited.first() else { return };
        let (key, mechanism, was_full) = (gathering.peer, *mechanism, gathering.is_full(most_bytes));
        gathering.bytes = 0;
        // Both are given back empty, with their memory.
        let mut messages = std::mem::take(&mut gathering.messages);
        let mut awaited = std::mem::take(&mut gathering.awaited);
        let whole = self.transfers.get_several(key, mechanism, &mut messages);
        self.gathering.run.learn(whole, was_full && whole > 0);
        for (at, (message, (label, rts, request))) in messages.drain(..).zip(awaited.drain(..)).enumerate() {
            let mut buffer = message.data;
            let result = if at < whole {
                let got = self.transfers.got_at_once(key, &rts, &buffer, message.bytes);
                Some(self.received_at_once(key, &label, got))
            } else {
                // What is in its way is found again, and said.
                self.get_at_once(key, &label, &rts, &mut buffer, Receipt::Awaited)
            };
            self.end_or_begin(key, label, &rts, buffer, request, result);
        }
        while self.send_packet(None) {}
        (self.gathering.messages, self.gathering.awaited) = (messages, awaited);
    }
}

#[cfg(test)]
#[path = "gathering_tests.rs"]
mod tests;
