//! A list that has been taken: how it is cut, how far each part is, and what a
//! report leaves of it.

use std::collections::VecDeque;

use super::Counters;
use super::status::{Status, left_over};
use super::sys::{Part, Report};
use crate::engine::{CopyFailure, Progress, State};
use crate::places::{Copy, Place};

/// Parts of a list that are submitted and reported together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) parts: Vec<Part>,
    pub(super) bytes: u64,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// For the device; so often the queue was full.
    Waiting {
        retries: u32,
    },
    /// In the queue.
    Flying,
    /// What is left is for the CPU, in order.
    ByCpu(VecDeque<Part>),
    Arrived,
}

/// A list that has been taken.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) groups: Vec<Group>,
    /// Groups that have arrived, with all before them, and their bytes.
    pub(super) arrived: usize,
    pub(super) arrived_bytes: u64,
    pub(super) is_cancelled: bool,
}

impl Job {
    pub(super) fn flying(&self) -> bool {
        self.groups.iter().any(|group| matches!(group.stage, Stage::Flying))
    }

    pub(super) fn progress(&self) -> Progress {
        let state = if self.arrived == self.groups.len() {
            State::Done
        } else if self.is_cancelled && !self.flying() {
            State::Failed(CopyFailure::Cancelled)
        } else {
            State::Running
        };
        Progress { bytes: self.arrived_bytes, state }
    }

    /// Counts the groups that have arrived with all before them.
    pub(super) fn advance(&mut self) {
        while let Some(group) = self.groups.get_mut(self.arrived) {
            if matches!(&group.stage, Stage::ByCpu(left) if left.is_empty()) {
                group.stage = Stage::Arrived;
            }
            if !matches!(group.stage, Stage::Arrived) {
                break;
            }
            self.arrived_bytes += group.bytes;
            self.arrived += 1;
        }
    }
}

pub(super) fn done(stage: &Stage) -> bool {
    match stage {
        Stage::Arrived => true,
        Stage::ByCpu(left) => left.is_empty(),
        Stage::Waiting { .. } | Stage::Flying => false,
    }
}

/// A copy as parts of at most `max_bytes`; `None` if a place is not mapped.
pub(super) fn parts_of(copy: &Copy, max_bytes: u32, is_fenced: bool) -> Option<Vec<Part>> {
    let mut parts = Vec::with_capacity(copy.bytes().div_ceil(u64::from(max_bytes)) as usize);
    let mut at = 0;
    while at < copy.bytes() {
        let bytes = u64::from(max_bytes).min(copy.bytes() - at) as u32;
        let (Place::Mapped(from), Place::Mapped(to)) = (copy.from().advanced(at)?, copy.to().advanced(at)?)
        else {
            return None;
        };
        parts.push(Part::new(from, to, bytes, is_fenced)?);
        at += u64::from(bytes);
    }
    Some(parts)
}

/// Adds a part to the last group, if it is of the same kind and not full.
pub(super) fn push(groups: &mut Vec<Group>, part: Part, by_device: bool, most: usize) {
    let bytes = u64::from(part.bytes());
    match groups.last_mut() {
        Some(Group { parts, bytes: sum, stage: Stage::Waiting { .. } })
            if by_device && parts.len() < most =>
        {
            parts.push(part);
            *sum += bytes;
        }
        Some(Group { bytes: sum, stage: Stage::ByCpu(left), .. }) if !by_device => {
            left.push_back(part);
            *sum += bytes;
        }
        _ if by_device => {
            groups.push(Group { parts: vec![part], bytes, stage: Stage::Waiting { retries: 0 } });
        }
        _ => groups.push(Group { parts: Vec::new(), bytes, stage: Stage::ByCpu([part].into()) }),
    }
}

/// What the reports of a unit leave to the CPU.
pub(super) fn judge(
    report: &Report,
    parts: &[Part],
    counters: &mut Counters,
    refusals: &mut u32,
) -> VecDeque<Part> {
    let mut left = VecDeque::new();
    let mut refused = None;
    for (part, record) in parts.iter().zip(&report.members) {
        let status = Status::of(record);
        counters.page_faults += u64::from(status == Status::PAGE_FAULT);
        if status.is_refusal() {
            refused = Some(status);
        }
        left.extend(part.cut(&left_over(record, part.bytes())));
    }
    let whole = Status::of(&report.whole);
    if whole.is_refusal() && whole != Status::BATCH_FAIL && whole != Status::BATCH_PAGE_FAULT {
        refused = Some(whole);
    }
    let left_bytes: u64 = left.iter().map(|part| u64::from(part.bytes())).sum();
    counters.device_bytes += parts.iter().map(|part| u64::from(part.bytes())).sum::<u64>() - left_bytes;
    match refused {
        Some(status) => {
            counters.last_refusal = Some(status);
            *refusals += 1;
        }
        None => *refusals = 0,
    }
    left
}
