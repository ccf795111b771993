//! The ends of operations: what their queue is told, and their counter.

use lmt::{Direction, OperationError, RegionError, Reported, Status};

use super::Surroundings;
use super::completion::{Entry, Failure, Item};
use super::endpoint::Endpoint;
use super::many::MultiEnd;
use super::ops::{Kind, Op};
use super::queue::DoneWith;
use super::service::Errand;
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

    #[inline(always)] // The path of a short message: what is told is written once, where it stays.
    pub fn push(&self, around: &mut Surroundings, outlet: Outlet, item: Item) {
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
    #[inline]
    pub(super) fn ended(&mut self, around: &mut Surroundings, op: Op, result: Reported) {
        match op.kind {
            Kind::Receive { buffer } => self.ended_receive(around, &op, buffer, result),
            _ => self.ended_otherwise(around, op, result),
        }
    }

    /// The same, of whatever it is.
    fn ended_otherwise(&mut self, around: &mut Surroundings, op: Op, result: Reported) {
        match op.kind {
            Kind::Send => self.ended_here(around, Outlet::Send, &op, result, true),
            Kind::Injected { has_context, .. } => {
                self.ended_here(around, Outlet::Send, &op, result, has_context);
            }
            Kind::Remote(errand) => self.ended_there(around, *errand, result),
            Kind::Serve { ticket, room } => self.arrived(ticket, room, result),
            Kind::Service { answer, .. } => {
                if result.is_err() {
                    self.request_lost(answer);
                }
            }
            Kind::Asked(asked) => {
                let entry = Entry::bare(op.context, op.flags);
                self.answered(around, entry, op.reports, &asked, result);
            }
            Kind::Receive { buffer } => self.ended_receive(around, &op, buffer, result),
            Kind::Matched { buffer, entry } => {
                self.ended_receive(around, &op, buffer, result);
                self.done_with(around, entry);
            }
            Kind::Multi { receive } => self.multi_ended(around, receive, result),
            Kind::InMulti { ticket, buffer } => {
                let entry = Entry { buffer, ..Entry::bare(op.context, op.flags) };
                self.multi_told(around, ticket, MultiEnd { entry, reports: op.reports, result });
            }
        }
    }

    /// An owner's entry is used no more.
    pub fn done_with(&self, around: &mut Surroundings, entry: usize) {
        let queue = self.receive_queue.and_then(|binding| around.queues.get_mut(binding.queue));
        if let (Some(queue), Some(owner)) = (queue, &self.owner) {
            queue.done_with.push(DoneWith { entry, context: owner.context });
        }
    }

    /// A receive has ended.
    #[inline(always)] // The path of a short message.
    fn ended_receive(&mut self, around: &mut Surroundings, op: &Op, buffer: usize, result: Reported) {
        let entry = Entry { buffer, ..Entry::bare(op.context, op.flags) };
        match result {
            Ok(status) => self.received(around, with_status(entry, &status), &status, op.reports),
            Err(error) => self.failed(around, Outlet::Receive, entry, &error),
        }
    }

    /// An operation has ended that brings nothing with it. Of one that was injected
    /// without a context a completion would say nothing.
    fn ended_here(
        &mut self,
        around: &mut Surroundings,
        outlet: Outlet,
        op: &Op,
        result: Reported,
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

    /// A read or a write has ended, or cannot be done from here.
    fn ended_there(&mut self, around: &mut Surroundings, errand: Errand, result: Reported) {
        match result.map_err(|error| *error) {
            Ok(_) => self.copied(around, errand),
            Err(OperationError::Region(RegionError::Unreachable(_))) => {
                self.note_out_of_reach(&errand);
                self.carry_by_messages(around, errand);
            }
            // This memory only: its owner, who may reach it, is asked this once.
            Err(error @ OperationError::Region(RegionError::BadMemory(_))) => {
                log::info(log::Subsystem::EpData, format_args!("an operation goes by messages: {error}"));
                self.carry_by_messages(around, errand);
            }
            Err(error) => {
                log::warn(log::Subsystem::EpData, format_args!("an operation failed: {error}"));
                self.told_of(around, &errand, Err(refuse::errno_of(&error)));
            }
        }
    }

    /// Tells what became of an operation of which nothing is to be told but that.
    pub(super) fn settle(
        &mut self,
        around: &mut Surroundings,
        outlet: Outlet,
        entry: Entry,
        reports: bool,
        has_context: bool,
        done: Result<(), Errno>,
    ) {
        match done {
            Ok(()) => self.told(around, outlet, entry.context, entry.flags, reports),
            Err(error) => {
                self.count(around, outlet, false);
                if has_context {
                    self.push(around, outlet, Item::Failed(Failure { entry, cut_bytes: 0, error }));
                } else {
                    let why = error.text();
                    log::warn(log::Subsystem::EpData, format_args!("what was injected is lost: {why}"));
                }
            }
        }
    }

    /// A message has been received.
    #[inline(always)] // The path of a short message.
    pub(super) fn received(
        &mut self,
        around: &mut Surroundings,
        mut entry: Entry,
        status: &Status,
        reports: bool,
    ) {
        self.count(around, Outlet::Receive, true);
        if reports {
            entry.source = self.number_of(around, status.peer);
            self.push(around, Outlet::Receive, Item::Done(entry));
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
                entry.source = self.number_of(around, *peer);
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
#[inline(always)] // The path of a short message.
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
