//! What all formulas are made of, and which belongs to which algorithm.

use lmt_selector::contention::Parameters;

use super::levels::Hierarchy;
use crate::algorithm::{Algorithm, Kind};

/// How formulas count those that copy in operations with a root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// All ranks, the root among them, and what hands a turn on costs nothing: as
    /// the paper writes it (`ceil(p / k)` steps of throttled reads, `p` sequential
    /// writes, `log_k p` steps of a k-nomial tree).
    Ranks,
    /// Those that do copy, which is one less (`ceil((p - 1) / k)`), and a cache
    /// line for each turn handed on; with `k` readers of each, a tree grows to
    /// `k + 1` times as many holders in a step.
    #[default]
    Readers,
}

/// A machine's model.
#[derive(Clone, Copy, Debug)]
pub struct Model<'p> {
    pub(super) parameters: &'p Parameters,
    pub(super) counting: Counting,
    pub(super) hierarchy: Option<Hierarchy>,
}

impl<'p> Model<'p> {
    /// The model of a machine with these figures.
    pub const fn new(parameters: &'p Parameters, counting: Counting) -> Self {
        Self { parameters, counting, hierarchy: None }
    }

    /// The same where the group's nodes and caches are known, by which
    /// [`Algorithm::Hierarchical`] goes.
    #[must_use]
    pub const fn with_hierarchy(self, hierarchy: Hierarchy) -> Self {
        Self { hierarchy: Some(hierarchy), ..self }
    }

    /// What an operation takes by an algorithm, in microseconds, until the last
    /// rank has ended; nothing where there is no formula: the algorithm cannot do
    /// the operation (a ring whose step and ranks have a common divisor among
    /// them), the group's nodes and caches are not known ([`Algorithm::Hierarchical`]),
    /// or the machine's messages were not measured.
    pub fn predict_us(&self, kind: Kind, algorithm: Algorithm, ranks: u32, bytes: u64) -> Option<f64> {
        use Algorithm as A;
        if !algorithm.does(kind) {
            return None;
        }
        if ranks <= 1 {
            return Some(0.0);
        }
        match algorithm {
            A::Slots => Some(self.slots_us(kind, ranks, bytes)),
            A::Messages => self.messages_us(kind, ranks, bytes),
            A::Pipelined(piece_kib) => self.pipelined_us(kind, piece_kib, ranks, bytes),
            A::Swap => self.swap_us(kind, ranks, bytes),
            A::ParallelRead | A::ParallelWrite => Some(self.parallel_us(ranks, bytes)),
            A::SequentialWrite | A::SequentialRead => {
                Some(self.own_copy_us(bytes) + self.sequential_us(ranks, bytes))
            }
            A::ThrottledRead(k) | A::ThrottledWrite(k) => Some(self.throttled_us(k, ranks, bytes)),
            A::Pairwise => Some(self.pairwise_us(ranks, bytes)),
            A::PairwiseMessages => self.pairwise_messages_us(ranks, bytes),
            A::Bruck if kind == Kind::Alltoall => Some(self.bruck_alltoall_us(ranks, bytes)),
            A::Bruck => Some(self.bruck_allgather_us(ranks, bytes)),
            A::BruckMessages => self.bruck_messages_us(kind, ranks, bytes),
            A::RingNeighbor(step) => self.ring_neighbor_us(step, ranks, bytes),
            A::RingSourceRead | A::RingSourceWrite => {
                Some(self.own_copy_us(bytes) + self.ring_us(ranks, bytes))
            }
            A::RecursiveDoubling => Some(self.recursive_doubling_us(ranks, bytes)),
            A::DirectRead => Some(self.parallel_us(ranks, bytes)),
            A::DirectWrite => Some(self.sequential_us(ranks, bytes)),
            A::Knomial(k) => self.knomial_us(k, ranks, bytes),
            A::ScatterAllgather => Some(self.scatter_allgather_us(ranks, bytes)),
            A::Hierarchical(piece_kib) => self.hierarchical_us(piece_kib, ranks, bytes),
            A::DirectReduce => Some(self.direct_reduce_us(kind, ranks, bytes)),
            A::Chain(piece_kib) => Some(self.chain_us(piece_kib, ranks, bytes)),
        }
    }

    /// T^sm: an operation on next to no bytes through shared memory. Whichever it
    /// is, what one rank knows reaches the others in `ceil(log2 p)` steps, each a
    /// cache line from one core to another.
    pub(super) fn shared_us(&self, ranks: u32) -> f64 {
        f64::from(log_ceil(2, ranks)) * self.parameters.line_us * self.parameters.sharing(ranks)
    }

    /// A copy by each of so many ranks at once, of which `readers` go to the same
    /// process.
    pub(super) fn copies_us(&self, ranks: u32, readers: u32, bytes: u64) -> f64 {
        self.parameters.copy_us(bytes, readers) * self.parameters.sharing(ranks)
    }

    /// A copy within a process, by one rank.
    pub(super) fn own_copy_us(&self, bytes: u64) -> f64 {
        bytes as f64 * self.parameters.copy_ns / 1e3
    }

    /// How many copy from, or to, the root.
    pub(super) fn readers(&self, ranks: u32) -> u32 {
        match self.counting {
            Counting::Ranks => ranks,
            Counting::Readers => ranks - 1,
        }
    }

    /// What it takes to tell the next one that it is its turn.
    pub(super) fn turn_us(&self) -> f64 {
        match self.counting {
            Counting::Ranks => 0.0,
            Counting::Readers => self.parameters.line_us,
        }
    }
}

/// The least power of `base` that is not less than `number`.
pub(super) fn log_ceil(base: u32, number: u32) -> u32 {
    debug_assert!(base >= 2, "every power of {base} is the same");
    let mut power = 1u64;
    let mut exponent = 0;
    while power < u64::from(number) {
        power *= u64::from(base);
        exponent += 1;
    }
    exponent
}

#[cfg(test)]
#[path = "formulas_tests.rs"]
mod tests;
