//! What is measured: how the command finds the mechanisms there are, and how
//! each rank of a benchmark opens its end.

pub mod build;
pub mod endpoint;
pub(crate) mod met;
mod regions;
#[cfg(test)]
pub mod socket;

pub(crate) use endpoint::{EndpointLink, join, mechanisms, open, open_path, ways};
use lmt::mechanism::Reach;

use crate::memory::Memory;

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
