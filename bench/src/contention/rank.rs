//! One process of a measurement of contention: the one whose memory is read, or
//! one that reads.

use std::hint::{black_box, spin_loop};
use std::io::{self, BufRead};
use std::time::Duration;

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getppid};
use serde::{Deserialize, Serialize};

use super::sys::Sink;
use crate::ending::end_with;
use crate::error::BenchError;
use crate::limits::{METHODS, Method, Pair, PairMemory, Work as Bare, admit_siblings, read_peer};
use crate::memory::Pages;
use crate::patterns::arena::Arena;
use crate::processes::{Word, failure};
use crate::rank_side::{next_line, pin, read_line, tell};

/// The hidden subcommand behind which such a process starts.
pub const RANK_COMMAND: &str = "contention-rank";
/// The part of a window that is not counted, while all others begin.
const WARM_UP: u32 = 5;
/// Round trips of a cache line that are timed together.
const HOPS: u64 = 20_000;

/// What a process is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// 0 is the one whose memory is read, the others read.
    pub rank: u32,
    /// The command's process.
    pub parent: i32,
    /// Where it runs.
    pub cpu: usize,
    /// Bytes of memory.
    pub bytes: usize,
}

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// The other process's pages are locked and pinned.
    Pin,
    /// Bytes are copied out of the other process.
    Copy,
    /// Bytes are copied within this process.
    Own,
    /// Numbers are added to others within this process.
    Combine,
}

/// What readers are to do next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Turn {
    /// The first so many do the same for some time.
    Window {
        /// How many.
        readers: u32,
        /// What.
        work: Work,
        /// Bytes each time.
        bytes: usize,
        /// When it begins, by the monotonic clock.
        begin_ns: u64,
        /// How long it takes.
        window_ns: u64,
    },
    /// The first makes memory for two.
    Meet,
    /// The first two send a cache line to and fro in that memory.
    Hop {
        /// Where it is.
        card: String,
    },
}

/// What a process says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Where the memory is that is read.
    Memory {
        /// Whose.
        pid: i32,
        /// Where there.
        address: u64,
    },
    /// Whether the memory can be read from here, and the errno if not.
    Ready(Option<i32>),
    /// Where the memory for two is.
    Card(String),
    /// What a window showed.
    Timed {
        /// The median time of a call.
        median_ns: f64,
        /// Calls a second.
        per_s: f64,
    },
    /// It cannot go on.
    Failed(String),
}

impl Word for Answer {
    fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(sentence) => Some(sentence),
            _ => None,
        }
    }
}

/// The whole life of the process. Its failure travels as an answer.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    let mut input = io::stdin().lock();
    work(&mut input).map_err(|error| {
        // If the command is not there any more, nobody wants to know.
        let _ = tell(&Answer::Failed(error.to_string()));
        BenchError::RankFailed
    })
}

fn work(input: &mut impl BufRead) -> Result<(), BenchError> {
    let Assignment { rank, parent, cpu, bytes } = read_line(input)?;
    end_with(parent)?;
    pin(rank, cpu)?;
    if rank == 0 {
        return be_read(input, bytes);
    }
    let target = read_line(input)?;
    let Answer::Memory { pid, address } = target else {
        return Err(BenchError::Failure("this subcommand is for lmt itself; use lmt contention".into()));
    };
    let mut reader = Reader::new(Pid::from_raw(pid), address, bytes)?;
    tell(&Answer::Ready(reader.refusal()?))?;
    let mut memory = None;
    while let Some(turn) = next_line(input)? {
        match turn {
            Turn::Window { readers, .. } if rank > readers => {}
            Turn::Window { work, bytes, begin_ns, window_ns, .. } => {
                tell(&reader.window(work, bytes, [begin_ns, begin_ns + window_ns])?)?;
            }
            Turn::Meet if rank == 1 => {
                let made = Pair::memory().map_err(of_pair)?;
                tell(&Answer::Card(made.card()))?;
                memory = Some(made);
            }
            Turn::Hop { .. } if rank == 1 => tell(&hop(memory.take(), None)?)?,
            Turn::Hop { card } if rank == 2 => tell(&hop(None, Some(&card))?)?,
            Turn::Meet | Turn::Hop { .. } => {}
        }
    }
    Ok(())
}

/// Has memory for the others to read, until the command is done.
fn be_read(input: &mut impl BufRead, bytes: usize) -> Result<(), BenchError> {
    admit_siblings(getppid());
    let memory = Pages::filled(bytes, 1)?;
    tell(&Answer::Memory { pid: Pid::this().as_raw(), address: memory.as_ptr().addr() as u64 })?;
    while input.skip_until(b'\n').map_err(|error| failure("the next turn cannot be read", &error))? > 0 {}
    black_box(&memory);
    Ok(())
}

/// One that reads.
struct Reader {
    pid: Pid,
    address: u64,
    sink: Sink,
    buffers: [Pages; 2],
}

impl Reader {
    fn new(pid: Pid, address: u64, bytes: usize) -> Result<Self, BenchError> {
        let sink = Sink::reserve(bytes).map_err(|error| failure("addresses cannot be reserved", &error))?;
        Ok(Self { pid, address, sink, buffers: [Pages::filled(bytes, 1)?, Pages::filled(bytes, 1)?] })
    }

    /// Why the memory cannot be read.
    fn refusal(&mut self) -> Result<Option<i32>, BenchError> {
        match read_peer(self.pid, self.address, &mut [0; 8]) {
            Ok(()) => Ok(None),
            Err(error) => match error.raw_os_error() {
                Some(errno) => Ok(Some(errno)),
                None => Err(failure("the other process cannot be read", &error)),
            },
        }
    }

    /// Does the same until the window is over.
    fn window(
        &mut self,
        work: Work,
        bytes: usize,
        [begin_ns, end_ns]: [u64; 2],
    ) -> Result<Answer, BenchError> {
        let counted_ns = begin_ns + (end_ns - begin_ns) / u64::from(WARM_UP);
        let mut times_ns: Vec<f64> = Vec::new();
        while now_ns()? < begin_ns {
            spin_loop();
        }
        let mut before = now_ns()?;
        let mut first = None;
        while before < end_ns {
            self.call(work, bytes).map_err(|error| failure("the other process cannot be read", &error))?;
            let after = now_ns()?;
            if before >= counted_ns {
                first.get_or_insert(before);
                times_ns.push((after - before) as f64);
            }
            before = after;
        }
        let seconds = before.saturating_sub(first.unwrap_or(before)) as f64 / 1e9;
        let per_s = if seconds > 0.0 { times_ns.len() as f64 / seconds } else { 0.0 };
        Ok(Answer::Timed { median_ns: super::median(&times_ns), per_s })
    }

    fn call(&mut self, work: Work, bytes: usize) -> io::Result<()> {
        let [one, other] = self.buffers.each_mut().map(|pages| {
            let bytes = bytes.min(pages.len());
            &mut pages[..bytes]
        });
        match work {
            Work::Pin => return self.sink.pin(self.pid, self.address, bytes),
            Work::Copy => return read_peer(self.pid, self.address, one),
            Work::Own => black_box(other).copy_from_slice(black_box(one)),
            Work::Combine => {
                for (sum, number) in black_box(other).iter_mut().zip(black_box(one)) {
                    *sum = sum.wrapping_add(*number);
                }
            }
        }
        Ok(())
    }
}

/// A cache line to and fro: half of a round trip.
fn hop(memory: Option<PairMemory>, card: Option<&str>) -> Result<Answer, BenchError> {
    let mut pair = match (memory, card) {
        (Some(memory), _) => Pair::first(memory),
        (None, Some(card)) => Pair::second(card),
        (None, None) => return Err(BenchError::Failure("there is no memory for two".into())),
    }
    .map_err(of_pair)?;
    let is_hop = |method: &&Method| method.work == Bare::Hop;
    let method = METHODS.iter().find(is_hop).ok_or_else(|| BenchError::Failure("there is no hop".into()))?;
    let (mut out, mut back) = ([0; 1], [0; 1]);
    let mut hops_ns = Vec::new();
    for _ in 0..5 {
        let arena = |buffer| Arena::packed(buffer, 1, 1);
        let (Some(mut out), Some(mut back)) = (arena(&mut out), arena(&mut back)) else {
            return Err(BenchError::Failure("a cache line is too short for a byte".into()));
        };
        let seconds = pair.repetition(method, &mut out, &mut back, false, HOPS).map_err(of_pair)?;
        hops_ns.push(seconds * 1e9 / (2.0 * HOPS as f64));
    }
    Ok(Answer::Timed { median_ns: super::median(&hops_ns), per_s: 0.0 })
}

fn of_pair(error: crate::limits::LimitError) -> BenchError {
    BenchError::Failure(error.to_string())
}

/// The monotonic clock, which is the same for all processes.
pub(super) fn now_ns() -> Result<u64, BenchError> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_err(|errno: Errno| failure("there is no clock", &errno.into()))?;
    Ok(u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}
