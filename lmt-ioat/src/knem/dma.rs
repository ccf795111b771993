//! KNEM's DMA engine as a copy engine.

use std::collections::VecDeque;
use std::sync::Arc;

use lmt_core::buffer::Access;
use lmt_core::mechanism::{Direction, Unavailable};
use lmt_core::process::PeerProcess;
use lmt_knem::{
    CopyFlags, CopyId, Driver, InlineCopy, KnemError, Length, RegionCookie, RegionCopy, RegionPlace,
};

use super::shared::Shared;
use crate::backoff::WaitBackoff;
use crate::chunks::Chunks;
use crate::engine::{CopyEngine, CopyFailure, Progress, Reach, State, SubmitError};
use crate::mapped::Mapped;
use crate::places::{Copy, CopyList, Place};
use crate::sys;

/// How the driver is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum How {
    /// The engine writes its end into the status array by itself; nobody waits
    /// (nemesis-lmt, section 3.4).
    #[default]
    Asynchronous,
    /// The call returns when the engine has copied: no processor copies, but
    /// one waits (section 3.3). One chunk is asked for with each look.
    Synchronous,
}

impl How {
    fn flags(self) -> CopyFlags {
        match self {
            Self::Asynchronous => CopyFlags::DMA | CopyFlags::DMA_ASYNC_COMPLETION,
            Self::Synchronous => CopyFlags::DMA,
        }
    }
}

/// Chunks that are asked for before the first has ended: all of a message of
/// 24 MiB, so that nothing needs the caller until then.
const AHEAD: usize = 16;

/// The DMA engine of a KNEM driver.
#[derive(Debug)]
pub struct KnemDma<D> {
    driver: Shared<D>,
    how: How,
    ahead: usize,
}

impl<D: Driver> KnemDma<D> {
    /// The engine of an opened driver.
    pub const fn new(driver: Shared<D>, how: How) -> Self {
        let ahead = match how {
            How::Asynchronous => AHEAD,
            How::Synchronous => 1,
        };
        Self { driver, how, ahead }
    }

    /// Asks for a chunk only when the one before it has ended, which needs the
    /// caller between chunks. For memory that stands at several addresses: a
    /// chunk's small tail is copied by the processor at once, and so before the
    /// chunks that are asked for ahead of it.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { ahead: 1, ..self }
    }
}

/// Copies that are one for the driver: regions that go on where they stopped.
#[derive(Debug)]
enum Run {
    Inline { direction: Direction, region: RegionPlace, pieces: VecDeque<Mapped>, left_bytes: u64 },
    Between { source: RegionPlace, target: RegionPlace, left_bytes: u64 },
}

/// A list in flight.
#[derive(Debug)]
pub struct KnemJob<D: Driver> {
    driver: Shared<D>,
    how: How,
    ahead: usize,
    peer: Option<Arc<PeerProcess>>,
    runs: VecDeque<Run>,
    chunks: Chunks,
    /// What is left of the chunk that is being asked for.
    chunk_left_bytes: u64,
    /// What the driver was asked for and has not ended, in order.
    in_flight: VecDeque<(CopyId, u64)>,
    done_bytes: u64,
    /// Why nothing more is asked for.
    stopped: Option<CopyFailure>,
}

impl<D: Driver> KnemJob<D> {
    fn progress(&self) -> Progress {
        let state = match self.stopped {
            _ if !self.in_flight.is_empty() => State::Running,
            Some(failure) => State::Failed(failure),
            None if self.runs.is_empty() => State::Done,
            None => State::Running,
        };
        Progress { bytes: self.done_bytes, state }
    }

    /// Takes what has ended, in order, and asks for more.
    fn advance(&mut self) {
        while let Some(&(copy, bytes)) = self.in_flight.front() {
            match self.driver.poll(copy) {
                Ok(None) => break,
                // What comes behind a failure is not counted.
                Ok(Some(_)) if self.stopped.is_none() => self.done_bytes += bytes,
                Ok(Some(_)) => {}
                Err(error) => self.stop(self.failure_of(&error)),
            }
            self.in_flight.pop_front();
        }
        while self.stopped.is_none() && self.in_flight.len() < self.ahead {
            if !self.ask() {
                break;
            }
        }
    }

    /// Asks for the next chunk, or for as much of it as the driver takes at
    /// once; says whether there was one and room for it.
    fn ask(&mut self) -> bool {
        if self.chunk_left_bytes == 0 {
            let Some(chunk) = self.chunks.next() else { return false };
            self.chunk_left_bytes = chunk.bytes();
        }
        let Some(run) = self.runs.front_mut() else { return false };
        let (started, bytes) = run.start(&mut self.driver, self.how.flags(), self.chunk_left_bytes);
        match started {
            Ok(copy) => {
                self.in_flight.push_back((copy, bytes));
                self.chunk_left_bytes -= bytes;
                if run.advance(bytes) == 0 {
                    self.runs.pop_front();
                }
                true
            }
            // Later: other lists have all the slots. Each of them gives its own
            // back as it ends, so the next look, or one behind it, finds some.
            Err(KnemError::TooMany { .. }) => false,
            Err(error) => {
                self.stop(self.failure_of(&error));
                false
            }
        }
    }

    fn stop(&mut self, failure: CopyFailure) {
        self.stopped.get_or_insert(failure);
    }

    fn failure_of(&self, error: &KnemError) -> CopyFailure {
        match error {
            KnemError::OwnerDead => CopyFailure::PeerDead,
            KnemError::NotRegistered if self.peer.as_ref().is_some_and(|peer| !peer.is_alive()) => {
                CopyFailure::PeerDead
            }
            KnemError::Forked => CopyFailure::EngineGone,
            _ => match error.errno() {
                0 => CopyFailure::Refused { errno: libc::EIO },
                errno => CopyFailure::Refused { errno },
            },
        }
    }

    /// Waits for what the driver was asked for; it cannot be taken back, and
    /// looking is the only way to wait for it (knem-jpdc, section 4.3). That is
    /// at most [`AHEAD`] chunks, some milliseconds, if the device works; while
    /// it does not answer, this does not return.
    fn quiesce(&mut self) -> Progress {
        if self.progress().state == State::Running {
            self.stop(CopyFailure::Cancelled);
        }
        let mut backoff = WaitBackoff::default();
        loop {
            self.advance();
            if self.in_flight.is_empty() {
                break;
            }
            backoff.pause();
        }
        self.progress()
    }
}

impl<D: Driver> Drop for KnemJob<D> {
    fn drop(&mut self) {
        self.quiesce();
    }
}

/// What a copy is to the driver.
#[derive(PartialEq, Eq)]
enum Kind {
    Inline(Direction, RegionCookie),
    Between,
    Other,
}

fn kind(copy: &Copy) -> Kind {
    match (copy.from(), copy.to()) {
        (Place::Region { cookie, .. }, Place::Mapped(_)) => Kind::Inline(Direction::Get, cookie),
        (Place::Mapped(_), Place::Region { cookie, .. }) => Kind::Inline(Direction::Put, cookie),
        (Place::Region { .. }, Place::Region { .. }) => Kind::Between,
        _ => Kind::Other,
    }
}

/// The offset in the region at an inline copy's beginning.
fn region_offset(copy: &Copy) -> u64 {
    match (copy.from(), copy.to()) {
        (Place::Region { offset, .. }, _) | (_, Place::Region { offset, .. }) => offset,
        _ => 0,
    }
}

/// Whether `b` goes on where `a` ends in the region.
fn joins(a: &Copy, b: &Copy) -> bool {
    matches!(kind(a), Kind::Inline(..))
        && kind(a) == kind(b)
        && region_offset(a).checked_add(a.bytes()) == Some(region_offset(b))
}

impl Run {
    fn of(copies: &[Copy]) -> Option<Self> {
        let first = copies.first()?;
        let left_bytes = copies.iter().map(Copy::bytes).sum();
        match (first.from(), first.to()) {
            (
                Place::Region { cookie: region, offset },
                Place::Region { cookie: target, offset: target_offset },
            ) => Some(Self::Between {
                source: RegionPlace { region, offset },
                target: RegionPlace { region: target, offset: target_offset },
                left_bytes,
            }),
            _ => {
                let Kind::Inline(direction, region) = kind(first) else { return None };
                let piece = |copy: &Copy| match (copy.from(), copy.to()) {
                    (Place::Mapped(mapped), _) | (_, Place::Mapped(mapped)) => {
                        Some(mapped.shortened(copy.bytes()))
                    }
                    _ => None,
                };
                let region = RegionPlace { region, offset: region_offset(first) };
                Some(Self::Inline {
                    direction,
                    region,
                    pieces: copies.iter().filter_map(piece).collect(),
                    left_bytes,
                })
            }
        }
    }

    /// Has the driver begin to copy at most `max_bytes`; how many that are.
    fn start<D: Driver>(
        &self,
        driver: &mut Shared<D>,
        flags: CopyFlags,
        max_bytes: u64,
    ) -> (Result<CopyId, KnemError>, u64) {
        match self {
            Self::Inline { direction, region, pieces, left_bytes } => {
                let bytes = max_bytes.min(*left_bytes);
                let access = if *direction == Direction::Get { Access::Write } else { Access::Read };
                let mut chunk = Vec::new();
                let mut missing = bytes;
                for piece in pieces {
                    let piece = piece.shortened(missing);
                    missing -= piece.bytes() as u64;
                    chunk.push(piece);
                    if missing == 0 {
                        break;
                    }
                }
                let copy = InlineCopy {
                    direction: *direction,
                    region: region.region,
                    region_offset: region.offset,
                    local_offset: 0,
                    length: Length::Bounded(bytes),
                };
                (driver.start_inline_copy(sys::as_buffer(&chunk, access), &copy, flags), bytes)
            }
            Self::Between { source, target, left_bytes } => {
                let bytes = max_bytes.min(*left_bytes);
                let length = Length::Bounded(bytes);
                let copy = RegionCopy { source: *source, target: *target, length };
                (driver.start_region_copy(&copy, flags), bytes)
            }
        }
    }

    /// Goes `bytes` on; what is left.
    fn advance(&mut self, bytes: u64) -> u64 {
        match self {
            Self::Inline { region, pieces, left_bytes, .. } => {
                region.offset += bytes;
                *left_bytes -= bytes;
                let mut skip = bytes;
                while let Some(piece) = pieces.front_mut() {
                    if let Some(rest) = piece.advanced(skip).filter(|rest| rest.bytes() > 0) {
                        *piece = rest;
                        break;
                    }
                    skip -= piece.bytes() as u64;
                    pieces.pop_front();
                }
                *left_bytes
            }
            Self::Between { source, target, left_bytes } => {
                source.offset += bytes;
                target.offset += bytes;
                *left_bytes -= bytes;
                *left_bytes
            }
        }
    }
}

impl<D: Driver> CopyEngine for KnemDma<D> {
    type Job = KnemJob<D>;

    fn name(&self) -> &'static str {
        "knem-dma"
    }

    fn available(&mut self) -> Result<(), Unavailable> {
        self.driver.engine()
    }

    fn reach(&self) -> Reach {
        Reach { mapped: true, peer_read: false, peer_write: false, regions: true }
    }

    fn submit(&mut self, list: CopyList) -> Result<KnemJob<D>, SubmitError> {
        let copies = list.copies();
        if !self.reach().holds(&list) || copies.iter().any(|copy| kind(copy) == Kind::Other) {
            return Err(SubmitError::OutOfReach);
        }
        let mut job = KnemJob {
            driver: self.driver.clone(),
            how: self.how,
            ahead: self.ahead,
            peer: list.peer().cloned(),
            runs: copies.chunk_by(joins).filter_map(Run::of).collect(),
            chunks: Chunks::of(list.total_bytes()),
            chunk_left_bytes: 0,
            in_flight: VecDeque::new(),
            done_bytes: 0,
            stopped: None,
        };
        if self.how == How::Asynchronous {
            job.advance();
        }
        Ok(job)
    }

    fn poll(&mut self, job: &mut KnemJob<D>) -> Progress {
        if job.progress().state == State::Running {
            job.advance();
        }
        job.progress()
    }

    fn cancel(&mut self, job: &mut KnemJob<D>) {
        if job.progress().state == State::Running {
            job.stop(CopyFailure::Cancelled);
        }
    }

    fn quiesce(&mut self, mut job: KnemJob<D>) -> Progress {
        job.quiesce()
    }
}

#[cfg(test)]
#[path = "dma_tests.rs"]
mod tests;
