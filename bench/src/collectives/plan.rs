//! What all ranks of a run know.
#![forbid(unsafe_code)]

use lmt_collectives::Kind;
use serde::{Deserialize, Serialize};

use super::access::Reach;
use super::workload::Work;
use crate::job::stride_bytes;
use crate::memory::Memory;

/// One run: data, handed to every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is measured.
    pub work: Work,
    /// Who takes turns in it.
    pub contenders: Vec<Turns>,
    /// Sizes in bytes, ascending: of a block or, of reductions, a vector.
    pub sizes: Vec<u64>,
    /// Processes in the group.
    pub ranks: u32,
    /// Iterations of each repetition; chosen by time when absent.
    pub iterations: Option<u64>,
    /// Measurements of each size and contender.
    pub repetitions: u32,
    /// Whether inputs are written and outputs read inside the timed part.
    pub in_use: bool,
    /// What the data lie in.
    pub buffers: Memory,
    /// Bytes of each buffer through which the data rotate; absent when the same
    /// bytes are used again and again.
    pub rotation_bytes: Option<u64>,
    /// Whether every byte of an extra, untimed pass is checked.
    pub verify: bool,
    /// The CPU of each rank; empty when they are not pinned.
    pub cpus: Vec<usize>,
}

/// One of ours that takes turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// An algorithm by name, or `auto`.
    Algorithm(String),
    /// Accesses to memory.
    Reach(Reach),
}

impl Turns {
    /// Its name in tables.
    pub fn name(&self) -> String {
        match self {
            Self::Algorithm(name) => name.clone(),
            Self::Reach(reach) => reach.name(),
        }
    }
}

/// Bytes of the input and of the output of one call, on each rank.
pub const fn call_bytes(kind: Kind, bytes: u64, ranks: u32) -> (u64, u64) {
    let all = bytes.saturating_mul(ranks as u64);
    match kind {
        Kind::Barrier => (0, 0),
        Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => (bytes, bytes),
        Kind::Scatter | Kind::ReduceScatter => (all, bytes),
        Kind::Gather | Kind::Allgather => (bytes, all),
        Kind::Alltoall => (all, all),
    }
}

/// Whether the elements of an operation are numbers, of which sizes are multiples.
pub const fn is_reduction(kind: Kind) -> bool {
    matches!(kind, Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan)
}

/// Bytes of an element of reductions: a float.
pub const ELEMENT_BYTES: u64 = 4;

impl Plan {
    /// Bytes of the larger of a call's two sides at a size.
    fn side_bytes(&self, bytes: u64) -> u64 {
        match self.work {
            Work::Collective(kind) => {
                let (input, output) = call_bytes(kind, bytes, self.ranks);
                stride_bytes(input.max(output))
            }
            // The owner has a block for each.
            Work::Contention(_) => stride_bytes(bytes).saturating_mul(u64::from(self.ranks)),
        }
    }

    /// Bytes of each of a rank's two buffers.
    pub fn buffer_bytes(&self) -> u64 {
        let largest = self.sizes.iter().map(|&bytes| self.side_bytes(bytes)).max().unwrap_or(0);
        largest.max(self.rotation_bytes.unwrap_or(0)).max(64)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
