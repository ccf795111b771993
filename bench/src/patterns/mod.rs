//! The communication patterns: what each does, and what its figures mean.

pub mod arena;
pub mod figures;
pub mod guarded;
pub mod handling;
pub mod link;
pub mod round;

pub use figures::{FigureDefinition, Unit};
use serde::{Deserialize, Serialize};

/// Messages of a window in `bw` and `bibw`, as in the OSU benchmarks.
const WINDOW: usize = 64;
/// The most bytes of a window; above 1 MiB a window holds fewer messages.
const WINDOW_BYTES: u64 = 64 << 20;

/// A benchmark that `lmt bench` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Half the round trip of short messages.
    Latency,
    /// Half the round trip of messages of any size.
    Pingpong,
    /// Two messages that meet.
    Pingping,
    /// Every rank with both neighbours.
    Exchange,
    /// Every rank to its right neighbour, and from its left one.
    Ring,
    /// Ranks two by two.
    Pairs,
    /// A window of messages one way.
    Bw,
    /// A window of messages both ways at once.
    Bibw,
    /// Every rank with every other.
    Alltoall,
    /// The machine, without the library.
    Limits,
    /// How much of a transfer hides behind a computation.
    Overlap,
    /// What a transfer does to the caches.
    Pollution,
    /// What declared memory costs.
    Regions,
}

/// A pattern in words.
#[derive(Debug)]
pub struct Definition {
    /// Which.
    pub pattern: Pattern,
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does and what its time and throughput are.
    pub text: &'static str,
    /// The sizes it takes by default.
    pub default_sizes: &'static str,
}

/// Every pattern.
pub const DEFINITIONS: &[Definition] = &[
    Definition {
        pattern: Pattern::Latency,
        name: "latency",
        text: "Ranks 0 and 1 send one message to and fro; short sizes by default. Time: half the round trip \
               (osu_latency).",
        default_sizes: "0..8KiB",
    },
    Definition {
        pattern: Pattern::Pingpong,
        name: "pingpong",
        text: "Ranks 0 and 1 send one message to and fro. Time: half the round trip; MB/s: bytes by that time \
               (IMB PingPong).",
        default_sizes: "1..16MiB",
    },
    Definition {
        pattern: Pattern::Pingping,
        name: "pingping",
        text: "Ranks 0 and 1 send to each other at the same moment, so that each message is obstructed by the \
               other. Time: one iteration, which is the time of a message, on the slower rank; MB/s: bytes of one \
               message by that time (IMB PingPing).",
        default_sizes: "1..16MiB",
    },
    Definition {
        pattern: Pattern::Exchange,
        name: "exchange",
        text: "Every rank sends to both its neighbours in a ring and receives from both. Time: one iteration on \
               the slowest rank; MB/s: the four messages that each rank sends or receives by that time (IMB \
               Exchange).",
        default_sizes: "1..16MiB",
    },
    Definition {
        pattern: Pattern::Ring,
        name: "ring",
        text: "Every rank sends to its right neighbour in a ring while it receives from its left one, as \
               MPI_Sendrecv does. Time: one iteration on the slowest rank; MB/s: bytes of one message by that \
               time (IMB Sendrecv counts two).",
        default_sizes: "1..16MiB",
    },
    Definition {
        pattern: Pattern::Pairs,
        name: "pairs",
        text: "Ranks 0 and 1, 2 and 3 and so on each send to the other while they receive from it, as MPI_Irecv, \
               MPI_Isend and MPI_Waitall do; of an odd number of ranks the last one looks on. Time: one iteration \
               on the slowest rank; MB/s: bytes of one message by that time.",
        default_sizes: "1..16MiB",
    },
    Definition {
        pattern: Pattern::Bw,
        name: "bw",
        text: "Rank 0 sends a window of 64 messages (fewer above 1 MiB: at most 64 MiB), rank 1 answers each \
               window with 4 bytes. Time: the window's time by its messages; MB/s: bytes of a message by that \
               (osu_bw, except that here each message of a window has its own buffer).",
        default_sizes: "1..4MiB",
    },
    Definition {
        pattern: Pattern::Bibw,
        name: "bibw",
        text: "Ranks 0 and 1 send each other a window as in bw at the same moment. Time: the window's time by \
               the messages of one direction, on the slower rank; MB/s: both directions' bytes (osu_bibw, except \
               that here each message of a window has its own buffer).",
        default_sizes: "1..4MiB",
    },
    Definition {
        pattern: Pattern::Alltoall,
        name: "alltoall",
        text: "Every rank sends one message to every other rank and receives one from each, by send and receive. \
               Time: one iteration on the slowest rank; MB/s: the messages that each rank sends or receives by \
               that time.",
        default_sizes: "1..1MiB",
    },
    Definition {
        pattern: Pattern::Limits,
        name: "limits",
        text: "What the machine allows: bare ping-pongs of two processes with flags only. Time: half the round \
               trip; for memcpy and syscall, which one process does alone, the time of one.",
        default_sizes: "64,256,1KiB,4KiB..16MiB",
    },
    Definition {
        pattern: Pattern::Overlap,
        name: "overlap",
        text: "How much of a transfer hides behind a computation that takes as long and touches no memory: \
               (comm + comp - both) / the smaller of comm and comp. receive: rank 0 begins to receive, computes, \
               waits; the sender has posted its send and sleeps until the computation is over. send: rank 0 begins \
               to send, computes, waits; the receiver waits in its receive. comm is the message alone, its sender \
               awake or asleep, whichever is faster. A mechanism's threads in rank 0 run on rank 1's CPU. Time: \
               both.",
        default_sizes: "64KiB..16MiB",
    },
    Definition {
        pattern: Pattern::Pollution,
        name: "pollution",
        text: "How much longer rank 0 takes to read a working set again (half the last-level cache, one byte of each \
               line, in scattered order) after it has received or sent a message than after as much time without \
               one. Time: the reading after the message.",
        default_sizes: "64KiB,256KiB,1MiB,4MiB",
    },
    Definition {
        pattern: Pattern::Regions,
        name: "regions",
        text: "What it costs rank 0 to register a region and to destroy it, and rank 1 to get one byte of it for \
               the first time and again, with more and more regions registered at once. Time: one registration.",
        default_sizes: "4KiB,64KiB,1MiB,16MiB",
    },
];

impl Pattern {
    /// Its name, sizes and meaning.
    pub fn definition(self) -> &'static Definition {
        // The table has every pattern; a test counts them.
        DEFINITIONS.iter().find(|definition| definition.pattern == self).unwrap_or(&DEFINITIONS[0])
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// What it measures, where that is not the time of a message alone; empty
    /// for the patterns of messages.
    pub fn figures(self) -> &'static [FigureDefinition] {
        figures::of(self)
    }

    /// How many messages one group of buffers holds, in a group of `ranks`.
    pub fn window(self, bytes: u64, ranks: u32) -> usize {
        match self {
            Self::Exchange => 2,
            Self::Alltoall => others(ranks),
            Self::Bw | Self::Bibw => {
                // At most 64, so the conversion cannot fail.
                let fitting = WINDOW_BYTES / bytes.max(1);
                usize::try_from(fitting).map_or(WINDOW, |fitting| fitting.clamp(1, WINDOW))
            }
            _ => 1,
        }
    }

    /// What the seconds of so many iterations are in microseconds, by this
    /// pattern's definition of time.
    pub fn usec(self, seconds: f64, iterations: u64, bytes: u64) -> f64 {
        let parts = match self {
            Self::Latency | Self::Pingpong | Self::Limits => 2,
            Self::Pingping
            | Self::Exchange
            | Self::Ring
            | Self::Pairs
            | Self::Alltoall
            | Self::Overlap
            | Self::Pollution
            | Self::Regions => 1,
            // Two ranks at work, however many look on.
            Self::Bw | Self::Bibw => self.window(bytes, 2),
        };
        seconds * 1e6 / (iterations.max(1) as f64 * parts as f64)
    }

    /// The bytes that count for throughput during that time, in a group of
    /// `ranks`.
    pub fn counted_bytes(self, bytes: u64, ranks: u32) -> f64 {
        let messages = match self {
            Self::Exchange => 4,
            Self::Bibw => 2,
            Self::Alltoall => 2 * others(ranks),
            _ => 1,
        };
        messages as f64 * bytes as f64
    }

    /// Whether each rank's clock counts, of which the slowest is the time; else
    /// rank 0's is.
    pub fn times_slowest(self) -> bool {
        matches!(
            self,
            Self::Pingping | Self::Exchange | Self::Ring | Self::Pairs | Self::Bibw | Self::Alltoall
        )
    }
}

/// The ranks of a group but one.
fn others(ranks: u32) -> usize {
    // A group has 1024 ranks at most.
    ranks.saturating_sub(1).max(1) as usize
}

impl std::str::FromStr for Pattern {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = DEFINITIONS.iter().find(|definition| definition.name == name);
        found.map(|definition| definition.pattern).ok_or_else(|| {
            let known: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.name).collect();
            crate::nearest::unknown("pattern", name, &known)
        })
    }
}

#[cfg(test)]
#[path = "patterns_tests.rs"]
mod tests;
