//! The names of the collective operations and of the ways to do them.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// A collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Kind {
    /// Nobody leaves before all have come.
    Barrier,
    /// The root's bytes go to all.
    Broadcast,
    /// One block of the root's to each rank.
    Scatter,
    /// One block of each rank's to the root.
    Gather,
    /// One block of each rank's to all.
    Allgather,
    /// One block of each rank's to each.
    Alltoall,
    /// The ranks' vectors, combined, to the root.
    Reduce,
    /// The same, to all.
    Allreduce,
    /// The same, one block of the result to each rank.
    ReduceScatter,
    /// To each rank what it and those before it have, combined.
    Scan,
    /// To each rank what those before it have, combined; nothing to rank 0.
    Exscan,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Scatter,
        Self::Gather,
        Self::Allgather,
        Self::Alltoall,
        Self::Reduce,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::Exscan,
    ];

    /// Whether it combines the ranks' elements.
    pub const fn combines(self) -> bool {
        use Kind as K;
        matches!(self, K::Reduce | K::Allreduce | K::ReduceScatter | K::Scan | K::Exscan)
    }

    /// Whether one rank is the root.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Scatter | Self::Gather | Self::Reduce)
    }

    /// As it is written in commands and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "bcast",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A way to do a collective operation. The sections are those of the paper
/// on contention-aware kernel-assisted collectives (CLUSTER 2017), unless said.
///
/// Its text is its name, with a colon and its number where it has one:
///
/// ```
/// use lmt_collectives::Algorithm;
/// let throttled: Algorithm = "throttled-read:4".parse()?;
/// assert_eq!(throttled, Algorithm::ThrottledRead(4));
/// assert_eq!(throttled.to_string(), "throttled-read:4");
/// # Ok::<(), lmt_collectives::UnknownAlgorithm>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Algorithm {
    /// Through the ranks' slots of shared memory; for what fits into them. All
    /// operations.
    Slots,
    /// By messages alone, where no single copy is allowed, and where both ends of
    /// a message share its copy. All operations.
    Messages,
    /// Through the slots piece by piece of so many KiB, of any length: one rank's next
    /// piece goes in while others take the last one out. What is not a reduction.
    Pipelined(u32),
    /// Two ranks hand each other pieces in cells of shared memory that change their owner
    /// each time: allgather and alltoall, up to 192 KiB.
    Swap,
    /// Every rank reads from the root at once: scatter (IV.A.1).
    ParallelRead,
    /// The root writes to one rank after the other: scatter (IV.A.2).
    SequentialWrite,
    /// So many ranks at a time read from the root: scatter (IV.A.3).
    ThrottledRead(u32),
    /// Every rank writes to the root at once: gather (IV.B.1).
    ParallelWrite,
    /// The root reads from one rank after the other: gather (IV.B.2).
    SequentialRead,
    /// So many ranks at a time write to the root: gather (IV.B.3).
    ThrottledWrite(u32),
    /// In each step each rank reads from another one: alltoall (IV.C.1).
    Pairwise,
    /// The same by messages.
    PairwiseMessages,
    /// Bruck's: log p steps with more copying: alltoall and allgather (IV.C.2, V.A.4).
    Bruck,
    /// Bruck's by messages.
    BruckMessages,
    /// Each rank reads from the rank that many before it what that has got so far:
    /// allgather, if the number and that of ranks have no common divisor (V.A.1).
    RingNeighbor(u32),
    /// Each rank reads each block where it comes from: allgather (V.A.2).
    RingSourceRead,
    /// Each rank writes its block to all, one after the other: allgather (V.A.2).
    RingSourceWrite,
    /// Twice as much from twice as far in each step: allgather (V.A.3).
    RecursiveDoubling,
    /// Every rank reads from the root at once: broadcast (V.B.1).
    DirectRead,
    /// The root writes to one rank after the other: broadcast (V.B.1).
    DirectWrite,
    /// A tree in which so many ranks read from one at a time: broadcast (V.B.2).
    Knomial(u32),
    /// The root writes a part to each, then all gather the parts: broadcast (V.B.3).
    ScatterAllgather,
    /// One rank of each cache or NUMA node reads from the root, piece by piece of
    /// so many KiB, and the others from it: broadcast (knem-jpdc2013, 3.3 and 5.5).
    Hierarchical(u32),
    /// Each rank combines one part of what all have, read where it lies, and the
    /// parts are put together where they are wanted: reductions.
    DirectReduce,
    /// From rank to rank, piece by piece of so many KiB: scan and exscan.
    Chain(u32),
}

/// The name without its number, and the number if it has one.
fn parts(algorithm: Algorithm) -> (&'static str, Option<u32>) {
    use Algorithm as A;
    match algorithm {
        A::Slots => ("slots", None),
        A::Messages => ("messages", None),
        A::Pipelined(kib) => ("pipelined", Some(kib)),
        A::Swap => ("swap", None),
        A::ParallelRead => ("parallel-read", None),
        A::SequentialWrite => ("sequential-write", None),
        A::ThrottledRead(k) => ("throttled-read", Some(k)),
        A::ParallelWrite => ("parallel-write", None),
        A::SequentialRead => ("sequential-read", None),
        A::ThrottledWrite(k) => ("throttled-write", Some(k)),
        A::Pairwise => ("pairwise", None),
        A::PairwiseMessages => ("pairwise-messages", None),
        A::Bruck => ("bruck", None),
        A::BruckMessages => ("bruck-messages", None),
        A::RingNeighbor(j) => ("ring-neighbor", Some(j)),
        A::RingSourceRead => ("ring-source-read", None),
        A::RingSourceWrite => ("ring-source-write", None),
        A::RecursiveDoubling => ("recursive-doubling", None),
        A::DirectRead => ("direct-read", None),
        A::DirectWrite => ("direct-write", None),
        A::Knomial(k) => ("knomial", Some(k)),
        A::ScatterAllgather => ("scatter-allgather", None),
        A::Hierarchical(kib) => ("hierarchical", Some(kib)),
        A::DirectReduce => ("direct-reduce", None),
        A::Chain(kib) => ("chain", Some(kib)),
    }
}

impl Algorithm {
    /// All of them, with the numbers that are taken where none is given.
    pub const ALL: [Self; 25] = [
        Self::Slots,
        Self::Messages,
        Self::Pipelined(64),
        Self::Swap,
        Self::ParallelRead,
        Self::SequentialWrite,
        Self::ThrottledRead(4),
        Self::ParallelWrite,
        Self::SequentialRead,
        Self::ThrottledWrite(4),
        Self::Pairwise,
        Self::PairwiseMessages,
        Self::Bruck,
        Self::BruckMessages,
        Self::RingNeighbor(1),
        Self::RingSourceRead,
        Self::RingSourceWrite,
        Self::RecursiveDoubling,
        Self::DirectRead,
        Self::DirectWrite,
        Self::Knomial(4),
        Self::ScatterAllgather,
        Self::Hierarchical(256),
        Self::DirectReduce,
        Self::Chain(64),
    ];

    /// Those that can do an operation.
    pub fn of(kind: Kind) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |algorithm| algorithm.does(kind))
    }

    /// Whether it can do an operation.
    pub const fn does(self, kind: Kind) -> bool {
        match self {
            Self::Slots | Self::Messages => true,
            Self::Pipelined(_) => !kind.combines() && !matches!(kind, Kind::Barrier),
            Self::Swap => matches!(kind, Kind::Allgather | Kind::Alltoall),
            Self::ParallelRead | Self::SequentialWrite | Self::ThrottledRead(_) => {
                matches!(kind, Kind::Scatter)
            }
            Self::ParallelWrite | Self::SequentialRead | Self::ThrottledWrite(_) => {
                matches!(kind, Kind::Gather)
            }
            Self::Pairwise | Self::PairwiseMessages => matches!(kind, Kind::Alltoall),
            Self::Bruck | Self::BruckMessages => matches!(kind, Kind::Alltoall | Kind::Allgather),
            Self::RingNeighbor(_)
            | Self::RingSourceRead
            | Self::RingSourceWrite
            | Self::RecursiveDoubling => matches!(kind, Kind::Allgather),
            Self::DirectRead
            | Self::DirectWrite
            | Self::Knomial(_)
            | Self::ScatterAllgather
            | Self::Hierarchical(_) => matches!(kind, Kind::Broadcast),
            Self::DirectReduce => {
                matches!(kind, Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter)
            }
            Self::Chain(_) => matches!(kind, Kind::Scan | Kind::Exscan),
        }
    }

    /// Whether ranks reach into each other's memory, which must be allowed then.
    pub const fn needs_single_copy(self) -> bool {
        use Algorithm as A;
        !matches!(
            self,
            A::Slots | A::Messages | A::Pipelined(_) | A::Swap | A::PairwiseMessages | A::BruckMessages
        )
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match parts(*self) {
            (name, Some(number)) => write!(f, "{name}:{number}"),
            (name, None) => f.write_str(name),
        }
    }
}

/// A text that names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no algorithm; there are {names}, and a number of at least 1 follows a colon where one stands here", names = names())]
pub struct UnknownAlgorithm(pub String);

fn names() -> String {
    Algorithm::ALL.map(|algorithm| algorithm.to_string()).join(", ")
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let unknown = || UnknownAlgorithm(text.to_owned());
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse().ok().filter(|&n| n > 0).ok_or_else(unknown)?)),
            None => (text, None),
        };
        let found =
            Self::ALL.into_iter().find(|&algorithm| parts(algorithm).0 == name).ok_or_else(unknown)?;
        match (number, parts(found).1) {
            (None, _) => Ok(found),
            (Some(_), None) => Err(unknown()),
            (Some(number), Some(_)) => Ok(found.with_number(number)),
        }
    }
}

impl Algorithm {
    /// Its number, if it has one.
    pub fn number(self) -> Option<u32> {
        parts(self).1
    }

    /// The same with another number, if it has one.
    pub const fn with_number(self, number: u32) -> Self {
        match self {
            Self::ThrottledRead(_) => Self::ThrottledRead(number),
            Self::ThrottledWrite(_) => Self::ThrottledWrite(number),
            Self::RingNeighbor(_) => Self::RingNeighbor(number),
            Self::Knomial(_) => Self::Knomial(number),
            Self::Hierarchical(_) => Self::Hierarchical(number),
            Self::Chain(_) => Self::Chain(number),
            Self::Pipelined(_) => Self::Pipelined(number),
            other => other,
        }
    }
}

impl Algorithm {
    /// Its place among all and its number, as ranks compare them.
    pub(crate) fn code(self) -> (u8, u32) {
        let (name, number) = parts(self);
        let at = Self::ALL.iter().position(|&one| parts(one).0 == name);
        (at.unwrap_or(0) as u8, number.unwrap_or(0))
    }

    /// The one with this code; the number may be cut.
    pub(crate) fn from_code(code: u8, number: u32) -> Option<Self> {
        Self::ALL.get(usize::from(code)).map(|one| one.with_number(number))
    }
}
