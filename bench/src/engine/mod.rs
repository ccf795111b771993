//! What is measured: how the command finds the mechanisms there are, and how
//! each rank of a benchmark opens its end.

pub mod endpoint;
mod met;
mod regions;
#[cfg(test)]
pub mod socket;

use lmt::mechanism::Reach;

use crate::error::BenchError;
use crate::memory::Memory;
use crate::patterns::link::Link;

/// A mechanism that can be named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Its name.
    pub name: String,
    /// Why it does not work on this machine: one sentence; absent if it does.
    pub unavailable: Option<String>,
    /// Which memory it copies from and to.
    pub reach: Reach,
}

impl Mechanism {
    /// Why it moves no messages that lie in such memory: one sentence; absent if
    /// it does.
    pub fn unusable(&self, memory: Memory) -> Option<String> {
        self.unavailable.clone().or_else(|| out_of_reach(self.reach, memory).map(str::to_owned))
    }
}

/// Why messages in such memory cannot go by a mechanism with such a reach.
pub fn out_of_reach(reach: Reach, memory: Memory) -> Option<&'static str> {
    match (reach, memory) {
        (Reach::SharedBuffers, Memory::Private) => Some(
            "it copies between shared buffers only, and these messages lie in memory from malloc; \
             patterns that have --buffers measure it with --buffers shared",
        ),
        (Reach::SharedBuffers, Memory::Shared) | (Reach::AnyMemory, _) => None,
    }
}

/// A mechanism that is not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why: one sentence.
    pub reason: String,
}

/// The ways that messages can take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// As users write them: `eager`, or a mechanism and who copies.
    pub works: Vec<String>,
    /// The mechanisms that do not work here, or not with such memory.
    pub left_out: Vec<LeftOut>,
}

/// A way of building the links between the ranks of a benchmark.
pub trait Engine {
    /// A rank's end before it knows the others.
    type Opened;
    /// A rank's end.
    type Link: Link;

    /// The mechanisms there are, in the order in which tables show them.
    fn mechanisms(&self) -> Vec<Mechanism>;

    /// The ways that messages in memory from malloc can take here: cells, and each
    /// mechanism that works with each of its models, in their usual order.
    ///
    /// # Errors
    /// It cannot be found out.
    fn ways(&self) -> Result<Ways, BenchError>;

    /// Opens this rank's end for one way: all messages that can take it do.
    ///
    /// # Errors
    /// What is missing.
    fn open_way(&self, way: &str, rank: u32, ranks: u32) -> Result<Self::Opened, BenchError> {
        self.open(way, rank, ranks)
    }

    /// Whether `auto` (the engine itself chooses) can be named too.
    fn has_auto(&self) -> bool;

    /// Opens this rank's end for one mechanism, or `auto`.
    ///
    /// # Errors
    /// What is missing.
    fn open(&self, mechanism: &str, rank: u32, ranks: u32) -> Result<Self::Opened, BenchError>;

    /// What the other ranks need to reach it; opaque.
    fn address(&self, opened: &Self::Opened) -> Vec<u8>;

    /// Joins the group: `addresses[i]` is rank i's.
    ///
    /// # Errors
    /// A rank cannot be reached.
    fn join(&self, opened: Self::Opened, addresses: &[Vec<u8>]) -> Result<Self::Link, BenchError>;
}
