//! What can go wrong before a group runs.

use std::io::Write;
use std::path::PathBuf;

/// Why a group could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A group has at least one rank.
    #[error("a group of {size} ranks cannot be started; the number of ranks must be from 1 to {max}")]
    Size {
        /// What was asked for.
        size: u32,
        /// The most that one launcher starts.
        max: u32,
    },
    /// No program was named.
    #[error("no program was given; name the one that every rank shall run")]
    NoProgram,
    /// The program is not there.
    #[error("program `{}` was not found; give its path, or a name that PATH leads to", program.display())]
    NotFound {
        /// What was asked for.
        program: PathBuf,
    },
    /// The program is there, but what shall interpret it is not.
    #[error(
        "`{}` names an interpreter or loader that is not on this machine; install it or correct the first line",
        program.display()
    )]
    NoInterpreter {
        /// What was asked for.
        program: PathBuf,
    },
    /// The program cannot be executed.
    #[error("`{}` cannot be executed: {reason}; name an executable file (chmod +x makes a program one)", program.display())]
    NotExecutable {
        /// What was asked for.
        program: PathBuf,
        /// The kernel's words.
        reason: String,
    },
    /// Starting a rank failed in some other way.
    #[error(
        "rank {rank} could not be started: {source}; free the resource that is short, or start fewer ranks"
    )]
    Rank {
        /// Which rank.
        rank: u32,
        /// The system's error.
        source: std::io::Error,
    },
    /// A CPU to pin to that this process may not use.
    #[error("CPU {cpu} cannot be pinned to; this process may use {allowed}")]
    Cpu {
        /// What was asked for.
        cpu: usize,
        /// A list of ranges.
        allowed: String,
    },
    /// `hook` was not called.
    #[error("this program cannot launch ranks yet; call lmt::launch::hook() first in its main function")]
    NotHooked,
    /// The supervisor did not start or did not answer.
    #[error("the supervisor of the ranks {what}: {source}; /proc must be mounted and processes allowed")]
    Supervisor {
        /// What it did or did not do.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no such rank.
    #[error("there is no rank {rank}; this group has ranks 0 to {}", size - 1)]
    NoSuchRank {
        /// What was asked for.
        rank: u32,
        /// Ranks of the group.
        size: u32,
    },
}

/// A variable of the group's environment that does not say what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {found}; it must be {rule} (the launcher, `lmt run`, sets it)")]
pub struct EnvError {
    /// Its name.
    pub variable: &'static str,
    /// What it is, in words.
    pub found: String,
    /// What it must be.
    pub rule: String,
}

/// One line on standard error; if nobody can read that, the exit status says it.
pub(super) fn complain(what: &dyn std::fmt::Display) {
    let _unread = writeln!(std::io::stderr().lock(), "lmt: {what}");
}
