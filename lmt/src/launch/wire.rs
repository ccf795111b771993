//! What launcher and supervisor say to each other: one JSON value a line.

use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest line either side accepts: the arguments of a program are at most
/// 2 MiB on Linux by default, and a byte takes up to four characters here.
const LINE_MAX_BYTES: u64 = 64 << 20;

/// Everything that the supervisor needs to start the ranks.
#[derive(Serialize, Deserialize)]
pub(super) struct Job {
    pub launcher_pid: i32,
    /// Process group that the ranks join.
    pub launcher_pgid: i32,
    pub grace_ms: u64,
    /// Program, then its arguments; bytes, since they need not be UTF-8.
    pub command: Vec<Vec<u8>>,
    /// Variables for every rank.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
    pub ranks: Vec<RankJob>,
}

/// What one rank gets beside that.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RankJob {
    pub variables: Vec<(String, String)>,
    pub cpu: Option<usize>,
    pub inherit_stdin: bool,
    /// Whether its death by a signal leaves the others running.
    pub may_die: bool,
    /// Descriptors for its output; the supervisor's own when absent.
    pub stdout: Option<RawFd>,
    pub stderr: Option<RawFd>,
    /// Descriptors that it inherits under their numbers.
    pub keep: Vec<RawFd>,
}

/// From the launcher, after the job.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Signal the process of a rank; its death by a signal is then no failure.
    Kill { rank: u32, signal: i32 },
    /// End all: SIGTERM, the grace, SIGKILL.
    End,
    /// End all with SIGKILL.
    EndNow,
}

/// From the supervisor.
#[derive(Serialize, Deserialize)]
pub(super) enum Event {
    /// The hook was reached.
    Hello,
    Started {
        rank: u32,
        pid: i32,
    },
    /// The rank could not be started; `errno` as execve(2) and fork(2) give it.
    NotStarted {
        rank: u32,
        errno: i32,
    },
    /// `raw_status` as wait(2) gives it.
    Exited {
        rank: u32,
        raw_status: i32,
        failure: bool,
    },
    /// The last event: all have ended but those listed, which the kernel did
    /// not let the supervisor end.
    Done {
        left: Vec<i32>,
    },
}

pub(super) fn send(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The next value, or `None` when the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    io::Read::take(from, LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
