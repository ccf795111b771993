//! Multi-receive buffers: memory that takes one message after the other.

use lmt::buffer::Buffer;
use lmt::{Placement, Reported, RequestId, TagMatch, Wanted};

use super::SharedState;
use super::completion::{CompletionTarget, Entry, with_status};
use super::endpoint::{Endpoint, Receiving};
use super::multi_buffer::{MultiBuffer, MultiEnd};
use super::multi_order::Matched;
use super::ops::{Kind, Op, token_of};
use super::spaces::PLAIN;
use crate::abi::{Errno, flags};
use crate::{log, refuse};

/// What a completion says of a buffer's end.
const fn flags_of(is_last: bool) -> u64 {
    flags::MSG | flags::RECV | if is_last { flags::MULTI_RECV } else { 0 }
}

impl Endpoint {
    /// Begins to take one plain message after the other into a buffer.
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn multi_receive(
        &mut self,
        shared_state: &mut SharedState,
        receiving: &Receiving,
        buffer: Buffer,
        address: usize,
    ) -> Result<(), Errno> {
        let source = self.source(shared_state, receiving.from)?;
        let wanted = Wanted { space: PLAIN, tags: TagMatch::any() };
        let least_bytes = self.settings.multi_min_bytes as u64;
        let begun = self.engine.multi_receive(source, wanted, buffer, least_bytes);
        let receive = begun.map_err(|error| {
            log::warn(log::Subsystem::EpData, format_args!("a receive was refused: {error}"));
            refuse::errno_of(&error)
        })?;
        let &Receiving { context, reports, .. } = receiving;
        let kind = Kind::Multi { receive };
        let op = self.ops.insert(Op { context, flags: 0, reports, request: receive, kind });
        self.multi.insert(receive, MultiBuffer { context, address, reports, op });
        self.tell_placements(shared_state);
        // Messages that were there already may have filled it.
        if self.multi.contains_key(&receive)
            && let Some(result) = self.engine.report(receive, token_of(op))
        {
            self.ops.remove(op);
            self.multi_ended(shared_state, receive, result);
        }
        Ok(())
    }

    /// Takes note of the messages that have got their places in buffers.
    #[inline]
    pub(super) fn tell_placements(&mut self, shared_state: &mut SharedState) {
        while let Some(placement) = self.engine.next_placement() {
            self.placed(shared_state, &placement);
        }
    }

    fn placed(&mut self, shared_state: &mut SharedState, placement: &Placement) {
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
        self.enter(shared_state, Op { context: multi.context, flags, reports, request: message, kind });
    }

    /// A message in a multi-receive buffer has ended.
    pub(super) fn multi_told(&mut self, shared_state: &mut SharedState, ticket: u64, end: MultiEnd) {
        self.multi_ends.end(ticket, end);
        while let Some((_, MultiEnd { entry, reports, result })) = self.multi_ends.next() {
            match result {
                Ok(status) => self.received(shared_state, with_status(entry, &status), &status, reports),
                Err(error) => self.failed(shared_state, CompletionTarget::Receive, entry, &error),
            }
        }
    }

    /// A multi-receive buffer takes no more, with no message.
    pub(super) fn multi_ended(
        &mut self,
        shared_state: &mut SharedState,
        receive: RequestId,
        result: Reported,
    ) {
        let Some(multi) = self.multi.remove(&receive) else { return };
        let ticket = self.multi_ends.enter(Matched { receive, sender: None, is_last: true });
        let entry = Entry::bare(multi.context, flags_of(true));
        self.multi_told(shared_state, ticket, MultiEnd { entry, reports: true, result });
    }
}
