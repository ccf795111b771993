//! A rank's part of each application, and the memory for it.

use super::application::Application;
use super::asp::Paths;
use super::is::Sort;
use super::job::{AppJob, Problem};
use crate::error::BenchError;
use crate::memory::room;

impl Problem {
    /// The memory that all ranks need together, in bytes, about.
    pub fn bytes(self, ranks: u32) -> u64 {
        match self {
            Self::Is(class) => Sort::bytes(class),
            Self::Asp { vertices, serial } => Paths::bytes(vertices, ranks, serial),
        }
    }

    /// A rank's part.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn start(self, rank: u32, job: &AppJob) -> Result<Box<dyn Application>, BenchError> {
        let AppJob { ranks, buffers, fault, .. } = *job;
        // Found out before anything is taken, of which a part may be had.
        room(usize::try_from(self.bytes(ranks) / u64::from(ranks)).unwrap_or(usize::MAX))?;
        Ok(match self {
            Self::Is(class) => Box::new(Sort::new(class, rank, ranks, buffers, fault)?),
            Self::Asp { vertices, serial } => {
                Box::new(Paths::new(vertices, rank, ranks, buffers, serial, fault)?)
            }
        })
    }
}
