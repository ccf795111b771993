//! Multi-receive buffers: memory that takes one message after the other.

use lmt::{Placement, Reported, RequestId, TagMatch, Wanted};

use super::Surroundings;
use super::completion::Entry;
use super::endpoint::{Endpoint, PLAIN, Receiving};
use super::finish::{Outlet, with_status};
use super::multi_order::Matched;
use super::ops::{Kind, Op};
use crate::abi::{Errno, flags};
use crate::lend::Lent;
use crate::{log, refuse};

/// A multi-receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiBuffer {
    /// What its receive was begun with.
    context: usize,
    /// Where it begins, an address that is only computed with.
    address: usize,
    /// Whether its messages are told of.
    reports: bool,
    /// The number of its receive among the operations.
    op: u64,
}

/// What is to be told of a multi-receive buffer.
#[derive(Debug)]
pub struct MultiEnd {
    /// What its completion says.
    pub entry: Entry,
    /// Whether its good end is told.
    pub reports: bool,
    /// How it ended.
    pub result: Reported,
}

/// What a completion says of a buffer's end.
const fn flags_of(is_last: bool) -> u64 {
    flags::MSG | flags::RECV | if is_last { flags::MULTI_RECV } else { 0 }
}

impl Endpoint {
    /// Begins to take one plain message after the other into a buffer.
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_many(
        &mut self,
        around: &mut Surroundings,
        receiving: &Receiving,
        lent: Lent,
    ) -> Result<(), Errno> {
        let source = self.source(around, receiving.from)?;
        let wanted = Wanted { space: PLAIN, tags: TagMatch::any() };
        let least_bytes = self.settings.multi_least_bytes as u64;
        let begun = self.engine.receive_many(source, wanted, lent.rest(0)?, least_bytes);
        let receive = begun.map_err(|error| {
            log::warn(log::Subsystem::EpData, format_args!("a receive was refused: {error}"));
            refuse::errno_of(&error)
        })?;
        let &Receiving { context, reports, .. } = receiving;
        let (address, kind) = (lent.segment().address, Kind::Multi { receive });
        let op = self.ops.insert(Op { context, flags: 0, reports, request: receive, kind });
        self.multi.insert(receive, MultiBuffer { context, address, reports, op });
        self.tell_placements(around);
        // Messages that were there already may have filled it.
        if self.multi.contains_key(&receive)
            && let Some(result) = self.engine.report(receive, op)
        {
            self.ops.remove(op);
            self.multi_ended(around, receive, result);
        }
        Ok(())
    }

    /// Takes note of the messages that have got their places in buffers.
    #[inline]
    pub(super) fn tell_placements(&mut self, around: &mut Surroundings) {
        while let Some(placement) = self.engine.next_placement() {
            self.placed(around, &placement);
        }
    }

    fn placed(&mut self, around: &mut Surroundings, placement: &Placement) {
        let &Placement { receive, message, peer, offset_bytes, is_last } = placement;
        let Some(&multi) = self.multi.get(&receive) else { return };
        if is_last {
            self.multi.remove(&receive);
            self.ops.remove(multi.op);
        }
        let ticket = self.multi_ends.enter(Matched { receive, sender: Some(peer), is_last });
        let kind = Kind::InMulti { ticket, buffer: multi.address + offset_bytes as usize };
        // Who is told of no messages is told of the buffer's end.
        let (reports, flags) = (multi.reports || is_last, flags_of(is_last));
        self.enter(around, Op { context: multi.context, flags, reports, request: message, kind });
    }

    /// A message in a multi-receive buffer has ended.
    pub(super) fn multi_told(&mut self, around: &mut Surroundings, ticket: u64, end: MultiEnd) {
        self.multi_ends.end(ticket, end);
        while let Some((_, MultiEnd { entry, reports, result })) = self.multi_ends.next() {
            match result {
                Ok(status) => self.received(around, with_status(entry, &status), &status, reports),
                Err(error) => self.failed(around, Outlet::Receive, entry, &error),
            }
        }
    }

    /// A multi-receive buffer takes no more, with no message.
    pub(super) fn multi_ended(&mut self, around: &mut Surroundings, receive: RequestId, result: Reported) {
        let Some(multi) = self.multi.remove(&receive) else { return };
        let ticket = self.multi_ends.enter(Matched { receive, sender: None, is_last: true });
        let entry = Entry::bare(multi.context, flags_of(true));
        self.multi_told(around, ticket, MultiEnd { entry, reports: true, result });
    }
}
