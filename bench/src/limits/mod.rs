//! What the machine allows: bare ping-pongs of two processes, with flags only.
//!
//! Nothing is matched, connected or scheduled here. Both processes know every
//! size and every order, so what is left is the copying itself and the flags
//! without which it cannot be done. A library cannot be faster by the same
//! method; how near it comes is a ratio of two measurements of one run.
//!
//! The buffers, their rotation and their touching are those of the benchmarks.

mod copy;
mod pair;
mod pieces;
mod shared;
mod shared_buffers;
mod sys;
mod transfer;

pub use copy::Stores;
pub use pair::{LimitError, Pair, PairMemory};
pub(crate) use sys::{admit_siblings, read_peer};

use crate::patterns::Pattern;

/// One bare method: data.
#[derive(Debug)]
pub struct Method {
    /// Its name in tables.
    pub name: &'static str,
    /// What it does.
    pub text: &'static str,
    /// How it is done.
    pub work: Work,
    /// Whether it stands beside the mechanisms with `--limits`; `lmt bench
    /// limits` and the search for the best show all.
    pub is_shown_with_limits: bool,
}

/// How a bare method moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A flag goes to and fro.
    Hop,
    /// The shortest system call, by one process alone.
    SystemCall,
    /// One process copies from its one buffer to its other.
    Copy,
    /// The receiver reads the sender's memory.
    Read,
    /// The sender writes the receiver's memory.
    Write,
    /// The receiver reads the front while the sender writes the back.
    Both {
        /// The receiver's part.
        front_percent: u8,
    },
    /// As [`Work::Both`]; each claims chunk by chunk, until they meet.
    BothClaimed {
        /// Bytes of a chunk.
        chunk_bytes: usize,
    },
    /// Two copies through a ring of shared buffers that goes round and round.
    Pipeline {
        /// Buffers in the ring.
        buffers: usize,
        /// Bytes of each.
        chunk_bytes: usize,
    },
    /// Two copies through shared memory from whose start every message begins,
    /// whichever way it goes: what a process has just taken out, and so has in
    /// its cache, is what it puts its answer into.
    Ring {
        /// Bytes after which a message goes on at the start.
        ring_bytes: usize,
        /// The longest piece told at once; the first are shorter.
        piece_bytes: usize,
        /// How the sender stores.
        sender: Stores,
        /// How the receiver stores.
        receiver: Stores,
    },
    /// The front through the ring, and while the receiver takes that out the
    /// sender writes the back into its buffer.
    RingThenWrite {
        /// The part that goes through the ring.
        front_percent: u8,
    },
    /// One copy between buffers that both processes have mapped.
    Shared(By),
}

/// Who copies between shared buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The receiver alone.
    Receiver,
    /// The sender alone.
    Sender,
    /// The receiver the front half, the sender the back.
    Halves(Stores),
    /// Both, chunk by chunk of so many bytes, until they meet.
    Claims(usize),
}

impl Work {
    /// Whether a message is moved at all.
    pub fn moves_bytes(self) -> bool {
        !matches!(self, Self::Hop | Self::SystemCall)
    }

    /// Whether a time is half of a round trip.
    pub fn is_round_trip(self) -> bool {
        !matches!(self, Self::SystemCall | Self::Copy)
    }

    /// Whether the messages lie in memory that both processes have mapped,
    /// rather than in the benchmark's buffers.
    pub fn has_shared_buffers(self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Whether it is a way for a message from one process's own buffer into
    /// another's: the fastest of these is the limit.
    pub fn is_contender(self) -> bool {
        self.moves_bytes() && self.is_round_trip() && !self.has_shared_buffers()
    }

    fn needs_reading(self) -> bool {
        matches!(self, Self::Read | Self::Both { .. } | Self::BothClaimed { .. })
    }

    fn needs_writing(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Both { .. } | Self::BothClaimed { .. } | Self::RingThenWrite { .. }
        )
    }
}

/// Every bare method, in the order in which they take turns.
pub const METHODS: &[Method] = &[
    beside("hop", "a cache line goes from one core to the other", Work::Hop),
    beside("syscall", "one system call (getppid)", Work::SystemCall),
    beside("memcpy", "one process copies between its own buffers", Work::Copy),
    beside("vm-readv", "the receiver calls process_vm_readv", Work::Read),
    beside("vm-writev", "the sender calls process_vm_writev", Work::Write),
    beside(
        "both",
        "the receiver reads the front half while the sender writes the back half",
        Work::Both { front_percent: 50 },
    ),
    alone("both-65", "as both; the receiver reads 65 percent", Work::Both { front_percent: 65 }),
    claimed("both-64k", 64 << 10),
    claimed("both-256k", 256 << 10),
    claimed("both-1m", 1 << 20),
    pipeline("pipe-2x64k", 2, 65536),
    pipeline("pipe-8x32k", 8, 32768),
    pipeline("pipe-8x16k", 8, 16384),
    pipeline("pipe-16x8k", 16, 8192),
    ring("ring-4k", 1 << 20, 4 << 10, Stores::Cached, Stores::Cached),
    ring("ring-8k", 1 << 20, 8 << 10, Stores::Cached, Stores::Cached),
    ring("ring-16k", 1 << 20, 16 << 10, Stores::Cached, Stores::Cached),
    Method {
        is_shown_with_limits: true,
        ..ring("ring-32k", 1 << 20, 32 << 10, Stores::Cached, Stores::Cached)
    },
    ring("ring-64k-2m", 2 << 20, 64 << 10, Stores::Cached, Stores::Cached),
    ring("ring-32k-2m-nt", 2 << 20, 32 << 10, Stores::Cached, Stores::Streaming),
    ring("ring-string", 2 << 20, 16 << 10, Stores::String, Stores::String),
    ring("ring-string-8m", 8 << 20, 16 << 10, Stores::String, Stores::String),
    ring("ring-string-nt", 8 << 20, 32 << 10, Stores::String, Stores::Streaming),
    alone(
        "ring-writev",
        "2/3 through the ring; while the receiver takes them out the sender writes the rest",
        Work::RingThenWrite { front_percent: 67 },
    ),
    alone("shared-get", "shared buffers: the receiver copies", Work::Shared(By::Receiver)),
    alone("shared-put", "shared buffers: the sender copies", Work::Shared(By::Sender)),
    alone("shared-both", "shared buffers: each copies a half", Work::Shared(By::Halves(Stores::Cached))),
    alone(
        "shared-both-nt",
        "as shared-both, with stores that bypass the cache",
        Work::Shared(By::Halves(Stores::Streaming)),
    ),
    alone(
        "shared-64k",
        "shared buffers: both copy, claiming 64 KiB at a time",
        Work::Shared(By::Claims(64 << 10)),
    ),
];

/// The methods that a run measures: every one where the machine's limits are
/// what is asked for, else those that stand beside the mechanisms.
pub fn methods(pattern: Pattern) -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(move |method| pattern == Pattern::Limits || method.is_shown_with_limits)
}

/// The name and the time of the fastest method that `counts`, of the named
/// times in microseconds.
pub fn best<'a>(
    times: impl Iterator<Item = (&'a str, f64)>,
    counts: impl Fn(Work) -> bool,
) -> Option<(&'a str, f64)> {
    let work = |name: &str| METHODS.iter().find(|method| method.name == name).map(|method| method.work);
    times.filter(|(name, _)| work(name).is_some_and(&counts)).min_by(|one, other| one.1.total_cmp(&other.1))
}

const fn beside(name: &'static str, text: &'static str, work: Work) -> Method {
    Method { name, text, work, is_shown_with_limits: true }
}

const fn alone(name: &'static str, text: &'static str, work: Work) -> Method {
    Method { name, text, work, is_shown_with_limits: false }
}

const fn claimed(name: &'static str, chunk_bytes: usize) -> Method {
    alone(name, "as both, claiming so many bytes at a time", Work::BothClaimed { chunk_bytes })
}

const fn pipeline(name: &'static str, buffers: usize, chunk_bytes: usize) -> Method {
    assert!(buffers * chunk_bytes <= sys::RING_BYTES);
    let text = "two copies through this many shared buffers of this size, round and round";
    beside(name, text, Work::Pipeline { buffers, chunk_bytes })
}

const fn ring(
    name: &'static str,
    ring_bytes: usize,
    piece_bytes: usize,
    sender: Stores,
    receiver: Stores,
) -> Method {
    assert!(ring_bytes <= sys::RING_BYTES && ring_bytes.is_multiple_of(piece_bytes));
    assert!(piece_bytes.is_power_of_two() && piece_bytes >= pieces::FIRST_BYTES);
    let text = match (sender, receiver) {
        (Stores::String, Stores::Streaming) => {
            "the sender as in ring-string; the receiver's stores bypass the cache"
        }
        (Stores::String, _) => {
            "as the rings; long pieces by the string instruction, at the same place within a line as in the buffer"
        }
        (_, Stores::Streaming) => "as the rings, and the receiver's stores bypass the cache",
        _ => {
            "two copies by pieces up to this size through the same shared memory (1 MiB, or as named) both ways"
        }
    };
    alone(name, text, Work::Ring { ring_bytes, piece_bytes, sender, receiver })
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
