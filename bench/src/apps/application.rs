//! What an application is to the rank that runs it.

use lmt_collectives::{Algorithm, GroupError};

use super::comm::Comm;
use crate::error::BenchError;

/// One rank's part of an application.
pub trait Application {
    /// Does it once, and verifies what came of it. `watch` is told how much of how much
    /// is done.
    ///
    /// # Errors
    /// A call failed, or memory is short.
    fn run(&mut self, comm: &Comm<'_>, watch: Watch<'_>) -> Result<Round, AppError>;

    /// How many known results all ranks together must find; `None` where it is enough
    /// that none is wrong.
    fn checks(&self) -> Option<u64>;

    /// By what the data is moved.
    ///
    /// # Errors
    /// The call would fail.
    fn algorithm(&mut self, comm: &Comm<'_>) -> Result<Algorithm, GroupError>;
}

/// Who is told how far a run has come.
pub type Watch<'a> = &'a mut dyn FnMut(u32, u32) -> Result<(), BenchError>;

/// What a rank has of one run.
#[derive(Clone, Debug)]
pub struct Round {
    /// From the first rank's start on.
    pub seconds: f64,
    /// Of these, in collective operations.
    pub communication_seconds: f64,
    /// The verification.
    pub finding: Finding,
}

/// What a rank's verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Known results that came out.
    pub checks: u64,
    /// What is wrong, in a sentence.
    pub fault: Option<String>,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A call.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// Something else.
    #[error(transparent)]
    Bench(#[from] BenchError),
}
