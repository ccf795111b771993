//! Receives into multi-receive buffers, one after the other.

use lmt::{OperationError, PeerId, Reported, TagMatch, Wanted};

use super::Surroundings;
use super::completion::{Entry, Failure, Item};
use super::endpoint::{Endpoint, PLAIN, Receiving};
use super::finish::{Outlet, with_status};
use super::multi::MultiBuffer;
use super::ops::{Kind, Op};
use crate::abi::{Errno, flags};
use crate::lend::Lent;

/// A receive that has ended, of a multi-receive buffer.
#[derive(Debug)]
pub struct EndedReceive {
    /// The buffer's number.
    pub buffer: usize,
    /// Its place among those that are told in order.
    pub ticket: u64,
    /// How it ended.
    pub result: Reported,
}

/// What is to be told of a multi-receive buffer.
#[derive(Debug)]
pub struct MultiEnd {
    entry: Entry,
    reports: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Of a receive.
    Ended(Reported),
    /// That none could be posted.
    NotPosted(Errno),
}

/// Whose message a receive has got, whole or in part, and how much of it.
fn message_of(result: &Reported) -> Option<(PeerId, u64)> {
    match result.as_ref().map_err(|error| &**error) {
        Ok(status) => Some((status.peer, status.bytes)),
        Err(OperationError::Truncated { peer, received_bytes, .. }) => Some((*peer, *received_bytes)),
        Err(_) => None,
    }
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
        let segment = lent.segment();
        let multi = MultiBuffer {
            context: receiving.context,
            address: segment.address,
            bytes: segment.bytes,
            used_bytes: 0,
            least_bytes: self.settings.multi_least_bytes,
            reports: receiving.reports,
            source,
        };
        let number = self.multi.insert((multi, lent));
        let ended = self.post_rest(number).inspect_err(|_| {
            self.multi.remove(number);
        })?;
        self.go_on_receiving(around, ended);
        Ok(())
    }

    /// Posts what is left of a multi-receive buffer; gives the receive if it has
    /// ended at once.
    fn post_rest(&mut self, number: usize) -> Result<Option<EndedReceive>, Errno> {
        let Some((multi, lent)) = self.multi.get(number) else { return Ok(None) };
        let (multi, buffer) = (*multi, lent.rest(multi.used_bytes)?);
        let wanted = Wanted { space: PLAIN, tags: TagMatch::any() };
        let request = self.begin_receive(multi.source, wanted, buffer)?;
        let MultiBuffer { context, reports, source, .. } = multi;
        let ticket = self.multi_ends.enter(number, source);
        let kind = Kind::Multi { buffer: number, ticket };
        let op = self.ops.insert(Op { context, flags: flags::MSG | flags::RECV, reports, request, kind });
        let ended = self.engine.report(request, op).filter(|_| self.ops.remove(op).is_some());
        Ok(ended.map(|result| EndedReceive { buffer: number, ticket, result }))
    }

    /// Has a receive's end told and posts the buffer's next, until one waits for a
    /// message or there is none.
    pub(super) fn go_on_receiving(&mut self, around: &mut Surroundings, mut ended: Option<EndedReceive>) {
        while let Some(one) = ended.take() {
            let number = one.buffer;
            if self.ended_in_multi(around, one) {
                ended = self.post_rest(number).unwrap_or_else(|error| {
                    self.cannot_go_on(around, number, error);
                    None
                });
            }
        }
    }

    /// A message has come into a multi-receive buffer, or none will come any more.
    /// Says whether the buffer takes more.
    fn ended_in_multi(&mut self, around: &mut Surroundings, ended: EndedReceive) -> bool {
        let EndedReceive { buffer: number, ticket, result } = ended;
        let Some((multi, _)) = self.multi.get_mut(number) else { return false };
        let message = message_of(&result);
        let taken = multi.take(message.map_or(0, |(_, bytes)| bytes as usize));
        let goes_on = message.is_some() && !taken.is_last;
        let flags = flags::MSG | flags::RECV | MultiBuffer::flags(!goes_on);
        let entry = Entry { buffer: taken.address, ..Entry::bare(multi.context, flags) };
        // Who is told of no messages is told of the buffer's end.
        let reports = multi.reports || !goes_on;
        if !goes_on {
            self.multi.remove(number);
        }
        let end = MultiEnd { entry, reports, what: What::Ended(result) };
        self.tell_in_order(around, ticket, message.map(|(sender, _)| sender), end);
        goes_on
    }

    /// What is left of a buffer could not be posted.
    #[cold]
    fn cannot_go_on(&mut self, around: &mut Surroundings, number: usize, error: Errno) {
        let Some((multi, _)) = self.multi.remove(number) else { return };
        let flags = flags::MSG | flags::RECV | MultiBuffer::flags(true);
        let entry = Entry::bare(multi.context, flags);
        let ticket = self.multi_ends.enter(number, multi.source);
        self.tell_in_order(
            around,
            ticket,
            None,
            MultiEnd { entry, reports: true, what: What::NotPosted(error) },
        );
    }

    /// Tells what has ended, and whatever has waited for that.
    fn tell_in_order(
        &mut self,
        around: &mut Surroundings,
        ticket: u64,
        sender: Option<PeerId>,
        end: MultiEnd,
    ) {
        self.multi_ends.end(ticket, sender, end);
        while let Some(end) = self.multi_ends.next() {
            self.tell_multi(around, end);
        }
    }

    fn tell_multi(&mut self, around: &mut Surroundings, end: MultiEnd) {
        let MultiEnd { entry, reports, what } = end;
        match what {
            What::Ended(Ok(status)) => {
                self.received(around, with_status(entry, &status), &status, reports);
            }
            What::Ended(Err(error)) => self.failed(around, Outlet::Receive, entry, &error),
            What::NotPosted(error) => {
                self.push(around, Outlet::Receive, Item::Failed(Failure { entry, cut_bytes: 0, error }));
            }
        }
    }
}
