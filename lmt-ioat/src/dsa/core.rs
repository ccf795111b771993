//! What the engine keeps and does, whatever the work queue: lists are cut into
//! units of one descriptor or one batch, units are submitted as the queue takes
//! them, and what the device leaves undone the CPU does.
//!
//! The device's word for a byte is its descriptor's own completion record. All
//! that has no record of success, once the unit as a whole has ended, is copied
//! by the CPU. So whatever a device does, short of claiming what is not true,
//! a list ends with the right bytes, if it ends: a unit without a record may
//! still be in flight, even when its queue has been closed, and then its list
//! is not told to have ended, nor its memory given back.

use std::time::Instant;

use lmt_core::error::MemoryError;

use super::job::{Group, Job, Stage, done, judge, parts_of, push};
use super::queue::{Stopped, Submitted, WorkQueue};
use super::status::Status;
use super::sys::{Arena, MEMBERS};
use super::{Config, Counters, descriptor::flag};
use crate::engine::{CopyFailure, Progress, State};
use crate::places::CopyList;

/// Bytes that the CPU copies in one call of `poll`, about 50 us.
const CPU_BYTES_A_POLL: u64 = 256 << 10;
/// Units in a row that are refused until the device is given up.
const MAX_REFUSALS: u32 = 8;

/// A unit that is in the queue, and whose it is.
#[derive(Clone, Copy, Debug)]
struct SubmittedUnit {
    unit: usize,
    job: usize,
    group: usize,
    since: Instant,
}

/// The engine, once its queue is open.
pub(super) struct Core<Q: WorkQueue> {
    /// Before the arena: the device is stopped before its descriptors go. None
    /// when the device was given up.
    queue: Option<Q>,
    arena: Arena,
    free_units: Vec<usize>,
    submitted_units: Vec<SubmittedUnit>,
    jobs: Vec<Option<Job>>,
    /// Free places in `jobs`.
    free_jobs: Vec<usize>,
    config: Config,
    refusals: u32,
    /// The device was asked for a first answer, which has not come.
    awaits_answer: bool,
    pub(super) counters: Counters,
    /// Why the device was given up.
    pub(super) given_up: Option<String>,
    /// The engine has ended.
    pub(super) gone: bool,
}

impl<Q: WorkQueue> Core<Q> {
    /// # Errors
    /// When there is no memory for descriptors.
    pub(super) fn new(queue: Q, config: Config) -> Result<Self, MemoryError> {
        let arena = Arena::new(config.units.clamp(1, 1024) as usize)?;
        Ok(Self {
            queue: Some(queue),
            free_units: (0..arena.units()).rev().collect(),
            arena,
            submitted_units: Vec::new(),
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            config,
            refusals: 0,
            awaits_answer: false,
            counters: Counters::default(),
            given_up: None,
            gone: false,
        })
    }

    /// Has the device answer once, within the configuration's limit. Where it
    /// does not, the descriptor's memory may still be written:
    /// [`Self::is_quiescent`] tells.
    ///
    /// # Errors
    /// A sentence, with the errno or 0.
    pub(super) fn try_device(&mut self) -> Result<(), (i32, String)> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        let begun = Instant::now();
        let late = || begun.elapsed() > self.config.answer_limit;
        let failed = loop {
            match self.arena.launch_noop(queue, 0) {
                Submitted::Accepted => break None,
                Submitted::Full if !late() => std::thread::yield_now(),
                Submitted::Full => break Some((libc::EAGAIN, "the work queue stays full".to_owned())),
                Submitted::Refused { errno } => {
                    let why = std::io::Error::from_raw_os_error(errno);
                    break Some((errno, format!("the work queue takes no descriptor: {why}")));
                }
            }
        };
        let report = || self.arena.report(0, 1);
        let answer = loop {
            queue.turn();
            match (&failed, report()) {
                (Some(why), _) => break Err(why.clone()),
                (None, Some(report)) => match Status::of(&report.whole) {
                    Status::SUCCESS => break Ok(()),
                    other => break Err((libc::EIO, format!("the device refuses to answer: {other}"))),
                },
                (None, None) if late() => break Err((0, "the device does not answer".to_owned())),
                (None, None) => std::thread::yield_now(),
            }
        };
        if answer.is_err() {
            let may_answer = failed.is_none() && self.arena.report(0, 1).is_none();
            self.awaits_answer = queue.stop() == Stopped::Unknown && may_answer;
            self.queue = None;
        }
        answer
    }

    /// Whether no device can write the descriptors' memory any more.
    pub(super) fn is_quiescent(&self) -> bool {
        self.submitted_units.is_empty() && !self.awaits_answer
    }

    /// Takes a list whose places are all mapped; returns its number.
    pub(super) fn take(&mut self, list: &CopyList) -> Option<usize> {
        let groups = self.cut(list)?;
        let mut job = Job { groups, arrived: 0, arrived_bytes: 0, is_cancelled: false };
        job.advance();
        let id = self.free_jobs.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.jobs[id] = Some(job);
        self.submit_waiting(id);
        Some(id)
    }

    /// Cuts a list into groups: runs of parts that are worth a descriptor, as
    /// long as a batch may be, and runs that are not.
    fn cut(&self, list: &CopyList) -> Option<Vec<Group>> {
        let limits = self.queue.as_ref().map(Q::limits);
        let max_bytes = limits.map_or(1 << 20, |limits| limits.max_transfer_bytes).max(1);
        let most = limits.map_or(1, |limits| limits.max_batch as usize).clamp(1, MEMBERS);
        let min_bytes = u64::from(self.config.min_copy_bytes);
        let mut groups: Vec<Group> = Vec::new();
        let last = list.copies().len().wrapping_sub(1);
        for (at, copy) in list.copies().iter().enumerate() {
            let by_device = copy.bytes() >= min_bytes && self.queue.is_some();
            // The last copy tells of all the others.
            let is_fenced = at == last && at > 0;
            for part in parts_of(copy, max_bytes, is_fenced)? {
                push(&mut groups, part, by_device, most);
            }
        }
        Some(groups)
    }

    /// Submits what the queue takes of a job.
    fn submit_waiting(&mut self, id: usize) {
        let (Some(queue), Some(Some(job))) = (&mut self.queue, self.jobs.get_mut(id)) else { return };
        let limits = queue.limits();
        let flags = (flag::TO_CACHE * u32::from(self.config.to_cache))
            | (flag::BLOCK_ON_FAULT * u32::from(self.config.block_on_fault && limits.can_block_on_fault));
        for at in job.arrived..job.groups.len() {
            let is_front = at == job.arrived;
            let Group { parts, stage, bytes } = &mut job.groups[at];
            let Stage::Waiting { retries } = stage else { continue };
            let fits = self.submitted_units.len() < limits.max_in_flight.max(1) as usize;
            // A fenced part in a group behind others waits for all of those.
            if job.is_cancelled || !fits || (!is_front && parts.iter().any(|part| part.is_fenced)) {
                return;
            }
            let Some(unit) = self.free_units.pop() else { return };
            match self.arena.launch(queue, unit, parts, flags) {
                Submitted::Accepted => {
                    self.submitted_units.push(SubmittedUnit {
                        unit,
                        job: id,
                        group: at,
                        since: Instant::now(),
                    });
                    self.counters.descriptors += parts.len() as u64;
                    self.counters.submitted_bytes += *bytes;
                    *stage = Stage::Flying;
                    continue;
                }
                Submitted::Full => {
                    *retries += 1;
                    self.counters.retries += 1;
                    if *retries > self.config.max_retries {
                        *stage = Stage::ByCpu(parts.iter().copied().collect());
                    }
                }
                Submitted::Refused { errno } => {
                    let why = std::io::Error::from_raw_os_error(errno);
                    self.given_up = Some(format!("the work queue takes no descriptor any more: {why}"));
                }
            }
            self.free_units.push(unit);
            break;
        }
        if self.given_up.is_some() {
            self.give_up();
        }
    }

    /// Looks what has ended, and does a little of what is the CPU's.
    pub(super) fn poll(&mut self, id: usize) -> Progress {
        self.turn(id);
        let Some(Some(job)) = self.jobs.get_mut(id) else { return gone() };
        let mut budget = CPU_BYTES_A_POLL;
        let mut is_front = true;
        for group in &mut job.groups[job.arrived..] {
            if let Stage::ByCpu(left) = &mut group.stage {
                while let Some(part) = left.front().copied() {
                    if job.is_cancelled || budget == 0 || (part.is_fenced && !is_front) {
                        break;
                    }
                    let bytes = budget.min(u64::from(part.bytes())) as u32;
                    budget -= u64::from(bytes);
                    if let Some(now) = part.cut(&(0..bytes)) {
                        now.copy_now();
                    }
                    self.counters.cpu_bytes += u64::from(bytes);
                    left.pop_front();
                    if let Some(rest) = part.cut(&(bytes..part.bytes())) {
                        left.push_front(rest);
                    }
                }
            }
            is_front &= done(&group.stage);
        }
        job.advance();
        job.progress()
    }

    /// Takes in what has ended, whosever it is, and submits what waits of a job.
    fn turn(&mut self, id: usize) {
        if let Some(queue) = &mut self.queue {
            queue.turn();
        }
        let mut stalled = false;
        let mut at = 0;
        while let Some(flight) = self.submitted_units.get(at).copied() {
            if self.complete_unit(flight, false) {
                self.submitted_units.swap_remove(at);
            } else {
                stalled |= flight.since.elapsed() > self.config.stall_limit;
                at += 1;
            }
        }
        if self.given_up.is_none() && stalled {
            self.given_up = Some("the device has not answered for too long".to_owned());
        } else if self.given_up.is_none() && self.refusals >= MAX_REFUSALS {
            let last = self.counters.last_refusal.map_or("unknown".to_owned(), |last| last.to_string());
            self.given_up = Some(format!("the device refuses all: {last}"));
        }
        if self.given_up.is_some() {
            self.give_up();
        } else {
            self.submit_waiting(id);
        }
    }

    /// Takes in a unit that has ended, or that nobody works on any more, and
    /// leaves to the CPU what has no record of success; whether it has ended.
    fn complete_unit(&mut self, flight: SubmittedUnit, is_stopped: bool) -> bool {
        let SubmittedUnit { unit, job, group, .. } = flight;
        let Some(Some(job)) = self.jobs.get_mut(job) else { return true };
        let Some(group) = job.groups.get_mut(group) else { return true };
        let members = group.parts.len();
        let report = match is_stopped {
            true => self.arena.last_report(unit, members),
            false => match self.arena.report(unit, members) {
                Some(report) => report,
                None => return false,
            },
        };
        let left = judge(&report, &group.parts, &mut self.counters, &mut self.refusals);
        group.stage = Stage::ByCpu(left);
        self.free_units.push(unit);
        job.advance();
        true
    }

    /// Stops the queue and leaves to the CPU all that it has not done: at once
    /// what the device has not had, the rest when nobody works on it any more.
    /// Units of which that is not known stay in flight until their record is
    /// there, if that takes for ever.
    fn give_up(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        let stopped = queue.stop();
        drop(queue);
        if stopped == Stopped::Drained {
            for flight in std::mem::take(&mut self.submitted_units) {
                self.complete_unit(flight, true);
            }
        }
        for group in self.jobs.iter_mut().flatten().flat_map(|job| &mut job.groups) {
            if let Stage::Waiting { .. } = group.stage {
                group.stage = Stage::ByCpu(group.parts.iter().copied().collect());
            }
        }
    }

    pub(super) fn cancel(&mut self, id: usize) {
        if let Some(Some(job)) = self.jobs.get_mut(id) {
            job.is_cancelled = true;
        }
    }

    /// Cancels a job and, if nothing of it is in flight, forgets it and tells
    /// how it ended; `None` means that one has to ask again.
    pub(super) fn try_quiesce(&mut self, id: usize) -> Option<Progress> {
        self.cancel(id);
        self.turn(id);
        match self.jobs.get_mut(id) {
            Some(Some(job)) if job.flying() => None,
            Some(place) => {
                let Some(job) = place.take() else { return Some(gone()) };
                self.free_jobs.push(id);
                Some(job.progress())
            }
            None => Some(gone()),
        }
    }

    /// Ends the engine if the device is quiet about every job; `false` means
    /// that one has to ask again.
    pub(super) fn try_end(&mut self) -> bool {
        for id in 0..self.jobs.len() {
            if self.jobs[id].is_some() && self.try_quiesce(id).is_none() {
                return false;
            }
        }
        self.queue = None;
        self.gone = true;
        true
    }
}

/// What is told of a job that there is no more.
pub(super) fn gone() -> Progress {
    Progress { bytes: 0, state: State::Failed(CopyFailure::EngineGone) }
}
