//! The ends of operations: what their queue is told, and their counter.

use lmt::{Direction, OperationError, Outcome, Status};

use super::Surroundings;
use super::completion::{Entry, Failure, Item};
use super::endpoint::Endpoint;
use super::multi::MultiBuffer;
use super::ops::{Kind, Op};
use crate::abi::{Errno, flags};
use crate::{log, refuse};

/// Where an operation's end is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outlet {
    /// With the sends.
    Send,
    /// With the receives.
    Receive,
    /// With the sends, but counted as what it is.
    Remote(Direction),
}

impl Outlet {
    /// What counts it.
    const fn counted_as(self) -> u64 {
        match self {
            Self::Send => flags::SEND,
            Self::Receive => flags::RECV,
            Self::Remote(Direction::Get) => flags::READ,
            Self::Remote(Direction::Put) => flags::WRITE,
        }
    }
}

impl Endpoint {
    /// An operation of which nothing is to be told but its end has ended well.
    #[inline]
    pub(super) fn told(
        &mut self,
        around: &mut Surroundings,
        outlet: Outlet,
        context: usize,
        flags: u64,
        reports: bool,
    ) {
        self.count(around, outlet, true);
        if reports {
            self.push(around, outlet, Item::Done(Entry::bare(context, flags)));
        }
    }

    #[inline]
    pub(super) fn push(&self, around: &mut Surroundings, outlet: Outlet, item: Item) {
        let binding = match outlet {
            Outlet::Send | Outlet::Remote(_) => self.send_queue,
            Outlet::Receive => self.receive_queue,
        };
        if let Some(queue) = binding.and_then(|binding| around.queues.get_mut(binding.queue)) {
            queue.push(item);
        }
    }

    #[inline]
    fn count(&self, around: &mut Surroundings, outlet: Outlet, is_good: bool) {
        let counter = self.counted.of(outlet.counted_as());
        if let Some(counter) = counter.and_then(|counter| around.counters.get_mut(counter)) {
            counter.count(is_good);
        }
    }

    /// An operation has ended.
    pub(super) fn ended(&mut self, around: &mut Surroundings, op: Op, result: Outcome) {
        match op.kind {
            Kind::Send => self.ended_here(around, Outlet::Send, &op, result, true),
            Kind::Injected(_) => self.ended_here(around, Outlet::Send, &op, result, op.reports),
            Kind::Remote { direction } => {
                self.ended_here(around, Outlet::Remote(direction), &op, result, true);
            }
            Kind::InjectedRemote(_) => {
                self.ended_here(around, Outlet::Remote(Direction::Put), &op, result, false);
            }
            Kind::Receive { buffer } => {
                let entry = Entry { buffer, ..Entry::bare(op.context, op.flags) };
                match result {
                    Ok(status) => self.received(around, with_status(entry, &status), &status, op.reports),
                    Err(error) => self.failed(around, Outlet::Receive, entry, &error),
                }
            }
            Kind::Multi { buffer } => self.ended_in_multi(around, buffer, op.flags, op.reports, result),
        }
    }

    /// An operation has ended that brings nothing with it. Of one that was injected
    /// nobody knows the context, so a completion would say nothing.
    fn ended_here(
        &mut self,
        around: &mut Surroundings,
        outlet: Outlet,
        op: &Op,
        result: Outcome,
        has_context: bool,
    ) {
        match result {
            Ok(_) => self.told(around, outlet, op.context, op.flags, op.reports),
            Err(error) if has_context => {
                self.failed(around, outlet, Entry::bare(op.context, op.flags), &error);
            }
            Err(error) => {
                self.count(around, outlet, false);
                log::warn(log::Subsystem::EpData, format_args!("what was injected is lost: {error}"));
            }
        }
    }

    /// A message has been received.
    #[inline]
    pub(super) fn received(
        &mut self,
        around: &mut Surroundings,
        mut entry: Entry,
        status: &Status,
        reports: bool,
    ) {
        self.count(around, Outlet::Receive, true);
        if reports {
            let vector = self.vector.and_then(|vector| around.vectors.get(vector));
            entry.source = self.peers.number_of(&self.engine, vector, status.peer);
            self.push(around, Outlet::Receive, Item::Done(entry));
        }
    }

    /// A message has come into a multi-receive buffer, or none will come any more.
    fn ended_in_multi(
        &mut self,
        around: &mut Surroundings,
        number: usize,
        flags: u64,
        reports: bool,
        result: Outcome,
    ) {
        let Some((multi, _)) = self.multi.get_mut(number) else { return };
        let context = multi.context;
        let written_bytes = match &result {
            Ok(status) => status.bytes as usize,
            Err(error) => match *error {
                OperationError::Truncated { received_bytes, .. } => received_bytes as usize,
                _ => 0,
            },
        };
        let taken = multi.take(written_bytes);
        let has_message = match &result {
            Ok(_) => true,
            Err(error) => matches!(error, OperationError::Truncated { .. }),
        };
        let goes_on = has_message && !taken.is_last;
        let flags = flags | MultiBuffer::flags(!goes_on);
        let entry = Entry { buffer: taken.address, ..Entry::bare(context, flags) };
        if !goes_on {
            self.multi.remove(number);
        }
        match result {
            // Who is told of no messages is told of the buffer's end.
            Ok(status) => {
                self.received(around, with_status(entry, &status), &status, reports || !goes_on);
            }
            Err(error) => self.failed(around, Outlet::Receive, entry, &error),
        }
        if goes_on && let Err(error) = self.post_multi(around, number) {
            self.multi.remove(number);
            let entry = Entry::bare(context, flags | flags::MULTI_RECV);
            self.push(around, Outlet::Receive, Item::Failed(Failure { entry, cut_bytes: 0, error }));
        }
    }

    /// An operation has failed, which is always told.
    pub(super) fn failed(
        &mut self,
        around: &mut Surroundings,
        outlet: Outlet,
        mut entry: Entry,
        error: &OperationError,
    ) {
        self.count(around, outlet, false);
        let errno = refuse::errno_of(error);
        let mut cut_bytes = 0;
        match error {
            OperationError::Truncated { peer, tag, message_bytes, received_bytes, immediate } => {
                let status = Status { peer: *peer, tag: *tag, bytes: *received_bytes, immediate: *immediate };
                entry = with_status(entry, &status);
                let vector = self.vector.and_then(|vector| around.vectors.get(vector));
                entry.source = self.peers.number_of(&self.engine, vector, *peer);
                cut_bytes = (message_bytes - received_bytes) as usize;
            }
            OperationError::Cancelled => {}
            _ => log::warn(log::Subsystem::EpData, format_args!("an operation failed: {error}")),
        }
        self.push(around, outlet, Item::Failed(Failure { entry, cut_bytes, error: errno }));
    }

    /// A probe has found nothing.
    pub(super) fn found_nothing(&mut self, around: &mut Surroundings, entry: Entry) {
        let failure = Failure { entry, cut_bytes: 0, error: Errno::NOMSG };
        self.push(around, Outlet::Receive, Item::Failed(failure));
    }
}

/// A receive's completion with what the message's status tells.
#[inline]
pub(super) fn with_status(entry: Entry, status: &Status) -> Entry {
    let has_data = if status.immediate.is_some() { flags::REMOTE_CQ_DATA } else { 0 };
    Entry {
        flags: entry.flags | has_data,
        bytes: status.bytes as usize,
        data: status.immediate.unwrap_or_default().into(),
        tag: status.tag,
        ..entry
    }
}
