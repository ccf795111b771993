//! A rank's end of what [`crate::processes`] starts: it reads what it is to do, a line
//! of JSON each, from its standard input, and answers on its standard output.

use std::io::BufRead;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::console::to_output;
use crate::error::BenchError;
use crate::processes::{failure, line};

/// Lets this process run on one CPU only.
pub fn pin(rank: u32, cpu: usize) -> Result<(), BenchError> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| failure(&format!("rank {rank} cannot be pinned on CPU {cpu}"), &errno.into()))
}

/// Tells the command something.
///
/// # Errors
/// The command does not listen any more.
pub fn tell(answer: &impl Serialize) -> Result<(), BenchError> {
    to_output(|out| out.write_all(line(answer)?.as_bytes()))
}

/// Reads what the command says first, and has to say.
///
/// # Errors
/// It says something else: it is not lmt.
pub fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<T, BenchError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| failure("the job cannot be read", &error))?;
    serde_json::from_str(&line)
        .map_err(|_| BenchError::Failure("this subcommand is for lmt itself; use lmt bench".into()))
}

/// Reads what is to be done next; nothing once the command is done.
///
/// # Errors
/// It cannot be read.
pub fn next_line<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<Option<T>, BenchError> {
    let mut line = String::new();
    let length =
        input.read_line(&mut line).map_err(|error| failure("the next turn cannot be read", &error))?;
    if length == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line)
        .map(Some)
        .map_err(|error| BenchError::Failure(format!("the next turn cannot be read: {error}")))
}
