//! What ends the command early.

use std::io;

/// Why the command ends without having done what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The command line asks for what does not exist. Exit status 2.
    #[error("{0}")]
    Usage(String),
    /// It was tried and failed. Exit status 1.
    #[error("{0}")]
    Failure(String),
    /// A mechanism failed while it was measured; others may do better. Exit status 1.
    #[error("{name}: {sentence}")]
    Mechanism {
        /// As the command line names it.
        name: String,
        /// What it said.
        sentence: String,
    },
    /// Whoever read the output has gone (`lmt ... | head -1`): no failure, but
    /// no reason to go on. Exit status 0, nothing said.
    #[error("nobody reads the output any more")]
    OutputClosed,
    /// The command has told all that it found, and the best mechanisms for this
    /// kernel do not work. Exit status 1, nothing more said.
    #[error("the best mechanisms for this kernel do not work here")]
    MechanismsMissing,
    /// A signal ended it early; what was done by then is kept. Exit status 128
    /// and the signal's number.
    #[error("{sentence}")]
    Interrupted {
        /// The signal's number.
        signal: u8,
        /// What came of it.
        sentence: String,
    },
    /// This process is a rank that has told the command why it failed. Exit
    /// status 1, nothing said.
    #[error("the rank has failed")]
    RankFailed,
}

impl BenchError {
    /// What went wrong while writing the results.
    pub fn from_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failure(format!("the results cannot be written: {error}"))
        }
    }

    /// The exit status of the command.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failure(_) | Self::Mechanism { .. } | Self::MechanismsMissing | Self::RankFailed => 1,
            Self::OutputClosed => 0,
            Self::Interrupted { signal, .. } => 128 + signal,
        }
    }
}
