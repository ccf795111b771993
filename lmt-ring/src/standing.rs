//! The message that this side sends again and again, unchanged: it stays in this side's place of
//! the ring, and only what differs is written there ([`lmt_core::again`]). Of each pair and side
//! there is one.

use lmt_core::again::{Hop, Mark, Patience, Record};
use lmt_core::buffer::Buffer;
use lmt_core::mechanism::Plan;

/// What is known of it.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// By what the last message is known.
    mark: Option<Mark>,
    record: Record,
    /// Whether that stands in the place.
    stands: bool,
    /// Whether a message in the place is on its way, or its receiver is still to close.
    is_under_way: bool,
    /// Whether that did not stand when it set out.
    is_new: bool,
    /// There was no memory for a message once: none is tried any more.
    lacks_memory: bool,
    patience: Patience,
    /// So many bytes of the place have memory.
    pub(crate) committed_bytes: u64,
    /// How far the peer's core is.
    pub(crate) hop: Hop,
}

impl Standing {
    /// Whether a message, this part of `data`, is to stand. It may if the place is long enough
    /// (`may_stand`).
    pub(crate) fn begin(&mut self, data: &Buffer, plan: &Plan, may_stand: bool) -> bool {
        let interval = plan.interval;
        if self.is_under_way || self.lacks_memory {
            return false;
        }
        if !may_stand {
            self.meet(None);
            return false;
        }
        let mut first = [0; Mark::BYTES];
        let read = data.read_at(interval.start, &mut first);
        let mark = Mark::of(interval.bytes(), &first[..read]);
        if mark.is_none() || self.mark != mark {
            self.meet(mark);
            return false;
        }
        let comes_often = self.record.comes();
        (self.stands || comes_often) && (plan.repeatable || self.hop.lets(interval.bytes()))
    }

    /// The message that is to stand sets out.
    pub(crate) fn set_out(&mut self) {
        (self.is_under_way, self.is_new) = (true, !self.stands);
    }

    /// Another message comes.
    fn meet(&mut self, mark: Option<Mark>) {
        if std::mem::take(&mut self.stands) {
            self.patience.lost(self.record.found());
        }
        (self.mark, self.record) = (mark, Record::new(self.patience));
    }

    #[cfg(test)]
    pub(crate) fn stands(&self) -> bool {
        self.stands
    }

    /// It is sent: so many bytes, of which so many were written, or it was not all sent.
    pub(crate) fn end(&mut self, bytes: u64, written_bytes: Option<u64>) {
        self.stands = match written_bytes {
            Some(_) if self.is_new => true,
            Some(written) => self.record.is_found(bytes, written),
            None => false,
        };
        if self.stands {
            self.patience.found(self.record.found());
        } else {
            self.record.has_changed();
        }
    }

    /// The place cannot hold the message: to look for memory each time would take longer than to
    /// write it.
    pub(crate) fn is_without_memory(&mut self) {
        (self.stands, self.lacks_memory) = (false, true);
    }

    /// Whether a message in the place is on its way, or its receiver is still to close.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Its receiver reads the place no more.
    pub(crate) fn is_over(&mut self) {
        self.is_under_way = false;
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
