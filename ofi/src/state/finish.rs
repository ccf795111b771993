//! The ends of operations: what their queue is told, and their counter.

use lmt::{OperationError, RegionError, ReportToken, Reported, RequestId, Status};

use super::SharedState;
use super::completion::{CompletionTarget, Entry, Failure, Item, with_status};
use super::endpoint::Endpoint;
use super::multi_buffer::MultiEnd;
use super::ops::{Kind, Op, Plain, token_of};
use super::queue::DoneWith;
use super::service::errand::SoftwareRma;
use crate::abi::{Errno, flags};
use crate::{log, refuse};

impl Endpoint {
    /// Tells of what has ended.
    #[inline(always)] // Nothing, most of the time.
    pub(super) fn drain(&mut self, shared_state: &mut SharedState) {
        if self.engine.has_reports() {
            self.drain_all(shared_state);
        }
    }

    #[inline(never)]
    fn drain_all(&mut self, shared_state: &mut SharedState) {
        self.tell_placements(shared_state);
        while let Some(completion) = self.engine.next_completion() {
            self.completed(shared_state, completion.token, completion.result);
        }
    }

    /// What the engine reports by this has ended.
    #[inline]
    fn completed(&mut self, shared_state: &mut SharedState, token: ReportToken, result: Reported) {
        match Plain::of_token(token) {
            Some(plain) => self.ended_plain(shared_state, plain, result),
            None => {
                if let Some(op) = self.ops.remove(token[0]) {
                    self.ended(shared_state, op, result);
                }
            }
        }
    }

    /// Has the end of a plain operation told, at once if it has ended.
    pub(super) fn report(&mut self, shared_state: &mut SharedState, request: RequestId, plain: Plain) {
        if let Some(result) = self.engine.report(request, plain.token()) {
            self.ended_plain(shared_state, plain, result);
        }
    }

    /// The same of another.
    #[inline]
    pub(super) fn enter(&mut self, shared_state: &mut SharedState, op: Op) {
        let request = op.request;
        let number = self.ops.insert(op);
        if let Some(result) = self.engine.report(request, token_of(number))
            && let Some(op) = self.ops.remove(number)
        {
            self.ended(shared_state, op, result);
        }
    }

    /// An operation of which nothing is to be told but its end has ended well.
    #[inline]
    pub(super) fn told(
        &mut self,
        shared_state: &mut SharedState,
        outlet: CompletionTarget,
        context: usize,
        flags: u64,
        reports: bool,
    ) {
        self.count(shared_state, outlet, true);
        if reports {
            self.push(shared_state, outlet, Item::Done(Entry::bare(context, flags)));
        }
    }

    #[inline(always)] // The path of a short message: what is told is written once, where it stays.
    pub fn push(&self, shared_state: &mut SharedState, outlet: CompletionTarget, item: Item) {
        let binding = match outlet {
            CompletionTarget::Send | CompletionTarget::Remote(_) => self.send_queue,
            CompletionTarget::Receive => self.receive_queue,
        };
        if let Some(queue) = binding.and_then(|binding| shared_state.queues.get_mut(binding.queue)) {
            queue.push(item);
        }
    }

    #[inline]
    fn count(&self, shared_state: &mut SharedState, outlet: CompletionTarget, is_good: bool) {
        let counter = self.counted.of(outlet.counted_as());
        if let Some(counter) = counter.and_then(|counter| shared_state.counters.get_mut(counter)) {
            counter.count(is_good);
        }
    }

    /// A send or a receive has ended.
    #[inline(always)] // The path of a short message.
    pub(super) fn ended_plain(&mut self, shared_state: &mut SharedState, plain: Plain, result: Reported) {
        let Plain { context, flags, reports, buffer } = plain;
        let entry = Entry { buffer, ..Entry::bare(context, flags) };
        if flags & flags::RECV != 0 {
            self.ended_receive(shared_state, entry, reports, result);
        } else {
            self.ended_here(shared_state, entry, reports, result, true);
        }
    }

    /// Another operation has ended.
    pub(super) fn ended(&mut self, shared_state: &mut SharedState, op: Op, result: Reported) {
        let entry = Entry::bare(op.context, op.flags);
        match op.kind {
            Kind::Injected { has_context, .. } => {
                self.ended_here(shared_state, entry, op.reports, result, has_context);
            }
            Kind::Remote(errand) => self.ended_there(shared_state, *errand, result),
            Kind::Serve { ticket, room } => self.arrived(ticket, room, result),
            Kind::Service { answer, .. } => {
                if result.is_err() {
                    self.request_lost(answer);
                }
            }
            Kind::Asked(asked) => {
                self.answered(shared_state, entry, op.reports, &asked, result);
            }
            Kind::Matched { buffer, entry: owners } => {
                self.ended_receive(shared_state, Entry { buffer, ..entry }, op.reports, result);
                self.done_with(shared_state, owners);
            }
            Kind::Multi { receive } => self.multi_ended(shared_state, receive, result),
            Kind::InMulti { ticket, buffer } => {
                let entry = Entry { buffer, ..entry };
                self.multi_told(shared_state, ticket, MultiEnd { entry, reports: op.reports, result });
            }
        }
    }

    /// An owner's entry is used no more.
    pub fn done_with(&self, shared_state: &mut SharedState, entry: usize) {
        let queue = self.receive_queue.and_then(|binding| shared_state.queues.get_mut(binding.queue));
        if let (Some(queue), Some(owner)) = (queue, &self.owner) {
            queue.done_with.push(DoneWith { entry, context: owner.context });
        }
    }

    /// A receive has ended.
    #[inline(always)] // The path of a short message.
    fn ended_receive(
        &mut self,
        shared_state: &mut SharedState,
        entry: Entry,
        reports: bool,
        result: Reported,
    ) {
        match result {
            Ok(status) => self.received(shared_state, with_status(entry, &status), &status, reports),
            Err(error) => self.failed(shared_state, CompletionTarget::Receive, entry, &error),
        }
    }

    /// A send has ended. Of one that was injected without a context a completion would say
    /// nothing.
    fn ended_here(
        &mut self,
        shared_state: &mut SharedState,
        entry: Entry,
        reports: bool,
        result: Reported,
        has_context: bool,
    ) {
        let outlet = CompletionTarget::Send;
        match result {
            Ok(_) => self.told(shared_state, outlet, entry.context, entry.flags, reports),
            Err(error) if has_context => self.failed(shared_state, outlet, entry, &error),
            Err(error) => {
                self.count(shared_state, outlet, false);
                log::warn(log::Subsystem::EpData, format_args!("what was injected is lost: {error}"));
            }
        }
    }

    /// A read or a write has ended, or cannot be done from here.
    fn ended_there(&mut self, shared_state: &mut SharedState, errand: SoftwareRma, result: Reported) {
        match result.map_err(|error| *error) {
            Ok(_) => self.copied(shared_state, errand),
            Err(OperationError::Region(RegionError::Unreachable(_))) => {
                self.note_out_of_reach(&errand);
                self.carry_by_messages(shared_state, errand);
            }
            // This memory only: its owner, who may reach it, is asked this once.
            Err(error @ OperationError::Region(RegionError::BadMemory(_))) => {
                log::info(log::Subsystem::EpData, format_args!("an operation goes by messages: {error}"));
                self.carry_by_messages(shared_state, errand);
            }
            Err(error) => {
                log::warn(log::Subsystem::EpData, format_args!("an operation failed: {error}"));
                self.told_of(shared_state, &errand, Err(refuse::errno_of(&error)));
            }
        }
    }

    /// Tells what became of an operation of which nothing is to be told but that.
    pub(super) fn settle(
        &mut self,
        shared_state: &mut SharedState,
        outlet: CompletionTarget,
        entry: Entry,
        reports: bool,
        has_context: bool,
        done: Result<(), Errno>,
    ) {
        match done {
            Ok(()) => self.told(shared_state, outlet, entry.context, entry.flags, reports),
            Err(error) => {
                self.count(shared_state, outlet, false);
                if has_context {
                    self.push(shared_state, outlet, Item::Failed(Failure { entry, cut_bytes: 0, error }));
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
        shared_state: &mut SharedState,
        mut entry: Entry,
        status: &Status,
        reports: bool,
    ) {
        self.count(shared_state, CompletionTarget::Receive, true);
        if reports {
            entry.source = self.number_of(shared_state, status.peer);
            self.push(shared_state, CompletionTarget::Receive, Item::Done(entry));
        }
    }

    /// An operation has failed, which is always told.
    pub(super) fn failed(
        &mut self,
        shared_state: &mut SharedState,
        outlet: CompletionTarget,
        mut entry: Entry,
        error: &OperationError,
    ) {
        self.count(shared_state, outlet, false);
        let errno = refuse::errno_of(error);
        let mut cut_bytes = 0;
        match error {
            OperationError::Truncated { peer, tag, message_bytes, received_bytes, immediate } => {
                let status = Status { peer: *peer, tag: *tag, bytes: *received_bytes, immediate: *immediate };
                entry = with_status(entry, &status);
                entry.source = self.number_of(shared_state, *peer);
                cut_bytes = (message_bytes - received_bytes) as usize;
            }
            OperationError::Cancelled => {}
            _ => log::warn(log::Subsystem::EpData, format_args!("an operation failed: {error}")),
        }
        self.push(shared_state, outlet, Item::Failed(Failure { entry, cut_bytes, error: errno }));
    }

    /// A probe has found nothing.
    pub(super) fn found_nothing(&mut self, shared_state: &mut SharedState, entry: Entry) {
        let failure = Failure { entry, cut_bytes: 0, error: Errno::NOMSG };
        self.push(shared_state, CompletionTarget::Receive, Item::Failed(failure));
    }
}
