//! Measuring what single copy costs, by processes that are pinned.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::Pid;

use super::rank::{Answer, Assignment, RANK_COMMAND, Turn, Work, now_ns};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::memory::page_bytes;
use crate::processes::Processes;

/// How long readers do the same.
const WINDOW: Duration = Duration::from_millis(12);
/// How long before a window they are told.
const NOTICE: Duration = Duration::from_millis(2);
/// How long nothing may be heard from a reader.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether a signal came.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long processes that are done may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// Bytes of memory that pages may take, where they are large.
const MAX_BYTES: u64 = 16 << 20;
/// The most pages of one call: the kernel pins no more at once where they have 4 KiB.
const MAX_PAGES: usize = 1024;

/// Why nothing was measured.
#[derive(Debug)]
pub enum Stop {
    /// Single copy is not allowed here: why, in a sentence.
    Refused(String),
    /// A signal came.
    Interrupted,
    /// Something failed.
    Error(BenchError),
}

impl From<BenchError> for Stop {
    fn from(error: BenchError) -> Self {
        Self::Error(error)
    }
}

/// What a window showed of all its readers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The mean of the readers' median times of a call, in microseconds.
    pub us: f64,
    /// Calls a second, of all readers together.
    pub per_s: f64,
}

/// A group of processes: one that is read, and readers.
pub struct Readers<'i> {
    group: Processes<Answer>,
    interrupt: &'i Interrupt,
}

/// The page counts of which the time of a page is found.
pub fn page_counts() -> Vec<usize> {
    let page = page_bytes();
    // No more than MAX_PAGES.
    let most = (MAX_BYTES / page.max(1)).clamp(64, MAX_PAGES as u64) as usize;
    [16, 64, 256, 512, 1024].into_iter().filter(|pages| *pages <= most).collect()
}

/// Bytes of the memory that is read.
pub fn memory_bytes() -> usize {
    page_counts().last().copied().unwrap_or(1) * page_bytes() as usize
}

impl<'i> Readers<'i> {
    /// Starts them: reader number i on the i-th of the CPUs, and where there are
    /// more of them than CPUs from the first on again.
    ///
    /// # Errors
    /// The kernel refuses, or a process cannot be started.
    pub fn start(readers: u32, cpus: &[usize], bytes: usize, interrupt: &'i Interrupt) -> Result<Self, Stop> {
        let no_cpus = || BenchError::Failure("there is no CPU on which readers may run".into());
        let last = *cpus.last().ok_or_else(no_cpus)?;
        let cpu = |rank: u32| match rank.checked_sub(1) {
            Some(reader) => cpus[reader as usize % cpus.len()],
            // It sleeps; where it does does not matter.
            None => last,
        };
        let parent = Pid::this().as_raw();
        let assignment = |rank| Assignment { rank, parent, cpu: cpu(rank), bytes };
        let assignments: Vec<Assignment> = (0..=readers).map(assignment).collect();
        let group = Processes::start(RANK_COMMAND, &assignments)?;
        let mut this = Self { group, interrupt };
        let memory = this.next()?;
        this.tell(&memory)?;
        for _ in 0..readers {
            if let Answer::Ready(Some(errno)) = this.next()? {
                let errno = Errno::from_raw(errno);
                return Err(Stop::Refused(format!(
                    "a process may not read another's memory here: process_vm_readv: {errno}; lmt doctor says what would allow it"
                )));
            }
        }
        Ok(this)
    }

    /// The first so many readers do the same at once.
    ///
    /// # Errors
    /// A signal came, or a process failed.
    pub fn window(&mut self, readers: u32, work: Work, bytes: usize) -> Result<Window, Stop> {
        let begin_ns = now_ns()? + as_ns(NOTICE);
        self.tell(&Turn::Window { readers, work, bytes, begin_ns, window_ns: as_ns(WINDOW) })?;
        let mut window = Window { us: 0.0, per_s: 0.0 };
        for _ in 0..readers {
            if let Answer::Timed { median_ns, per_s } = self.next()? {
                window.us += median_ns / 1e3 / f64::from(readers);
                window.per_s += per_s;
            }
        }
        Ok(window)
    }

    /// A cache line from the first reader to the second, in microseconds.
    ///
    /// # Errors
    /// As [`Self::window`].
    pub fn line_us(&mut self) -> Result<f64, Stop> {
        self.tell(&Turn::Meet)?;
        let card = loop {
            if let Answer::Card(card) = self.next()? {
                break card;
            }
        };
        self.tell(&Turn::Hop { card })?;
        let mut sum_us = 0.0;
        for _ in 0..2 {
            if let Answer::Timed { median_ns, .. } = self.next()? {
                sum_us += median_ns / 1e3;
            }
        }
        Ok(sum_us / 2.0)
    }

    /// Lets them end.
    pub fn end(self) {
        self.group.end(ENDING);
    }

    fn tell(&mut self, what: &impl serde::Serialize) -> Result<(), Stop> {
        let told = self.group.tell(what);
        told.map_err(|error| {
            crate::processes::failure("a reader cannot be told what to do next", &error).into()
        })
    }

    fn next(&mut self) -> Result<Answer, Stop> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.interrupt.signal().is_some() {
                return Err(Stop::Interrupted);
            }
            match self.group.next_within(POLL_INTERVAL)? {
                Some((_, Answer::Failed(sentence))) => return Err(BenchError::Failure(sentence).into()),
                Some((_, answer)) => return Ok(answer),
                None if Instant::now() < deadline => {}
                None => {
                    let seconds = PATIENCE.as_secs();
                    let sentence = format!("no answer from the readers for {seconds} s");
                    return Err(BenchError::Failure(sentence).into());
                }
            }
        }
    }
}

fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
