//! What the ranks of an application are asked to do.

use serde::{Deserialize, Serialize};

use super::is::{Class, ITERATIONS};
use crate::memory::Memory;

/// An application and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The integer sort.
    Is(Class),
    /// All-pairs shortest paths.
    Asp {
        /// In the graph.
        vertices: u32,
        /// Whether all paths are compared with a serial run, else some with others.
        serial: bool,
    },
}

impl Problem {
    /// What all ranks together hold at a time, about.
    pub fn memory_bytes(self) -> u64 {
        match self {
            // The keys, sorted into buckets, received, and counted.
            Self::Is(class) => 4 * (4 * class.sizes().keys() + u64::from(class.sizes().max_key())),
            Self::Asp { vertices, serial } => {
                let matrix = 4 * u64::from(vertices) * u64::from(vertices);
                if serial { 2 * matrix } else { matrix }
            }
        }
    }
}

/// Data, handed to every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppJob {
    /// What they do.
    pub problem: Problem,
    /// The mechanisms that take turns.
    pub mechanisms: Vec<String>,
    /// The algorithms that take turns with each, as users name them.
    pub algorithms: Vec<String>,
    /// Processes in the group.
    pub ranks: u32,
    /// Runs of each mechanism with each algorithm.
    pub repetitions: u32,
    /// What the messages lie in.
    pub buffers: Memory,
    /// The CPU of each rank; empty when they are not pinned.
    pub cpus: Vec<usize>,
    /// Whether a mistake is made before the verification.
    pub fault: bool,
}

/// A mechanism of a job and an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its place in the job.
    pub mechanism: usize,
    /// The same.
    pub algorithm: usize,
}

/// A run that has ended, from rank 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whose: its place in [`AppJob::turns`].
    pub turn: usize,
    /// By what the data was moved.
    pub algorithm: String,
    /// Of the slowest rank.
    pub seconds: f64,
    /// In collective operations: the mean over the ranks.
    pub communication_seconds: f64,
    /// What was compared with known results.
    pub checks: u64,
    /// Whether all was right.
    pub verified: bool,
}

impl AppJob {
    /// All that take turns, in order.
    pub fn turns(&self) -> Vec<Turn> {
        let of = |mechanism| (0..self.algorithms.len()).map(move |algorithm| Turn { mechanism, algorithm });
        (0..self.mechanisms.len()).flat_map(of).collect()
    }
}

impl Problem {
    /// The application's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Is(_) => "is",
            Self::Asp { .. } => "asp",
        }
    }

    /// Its size, in a word.
    pub fn size(self) -> String {
        match self {
            Self::Is(class) => format!("{class:?}"),
            Self::Asp { vertices, .. } => vertices.to_string(),
        }
    }

    /// In words.
    pub fn text(self) -> String {
        match self {
            Self::Is(class) => format!(
                "the integer sort of the NAS Parallel Benchmarks, class {class:?}: {} keys below {}, {ITERATIONS} iterations",
                class.sizes().keys(),
                class.sizes().max_key()
            ),
            Self::Asp { vertices, .. } => {
                format!(
                    "all-pairs shortest paths of {vertices} vertices: {vertices} broadcasts of {} bytes",
                    4 * vertices
                )
            }
        }
    }

    /// What is counted as an operation: a key ranked, a path compared.
    pub fn operations(self) -> f64 {
        match self {
            Self::Is(class) => (class.sizes().keys() * u64::from(ITERATIONS)) as f64,
            Self::Asp { vertices, .. } => f64::from(vertices).powi(3),
        }
    }
}
