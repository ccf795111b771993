//! The ranks of a benchmark as processes: this program again, with a hidden
//! subcommand. They talk with the command by lines of JSON: what they are to do
//! goes to their standard input, what they say comes from their standard output.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;

/// The processes; they are ended when this is dropped.
#[derive(Debug)]
pub struct Processes<E> {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    events: Receiver<(usize, Option<E>)>,
}

impl<E> Drop for Processes<E> {
    fn drop(&mut self) {
        for child in &mut self.children {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl<E: DeserializeOwned + Send + 'static> Processes<E> {
    /// Starts a process for each assignment, and tells it that.
    ///
    /// # Errors
    /// One cannot be started or told.
    pub fn start(subcommand: &str, assignments: &[impl Serialize]) -> Result<Self, BenchError> {
        let program = std::env::current_exe()
            .map_err(|error| failure("the path of this program cannot be found", &error))?;
        let (sender, events) = channel();
        let mut group = Self { children: Vec::new(), inputs: Vec::new(), events };
        for (rank, assignment) in assignments.iter().enumerate() {
            let mut child = Command::new(&program)
                .arg(subcommand)
                // Where Yama rules, the ranks admit whom this process starts.
                .env(lmt::launch::ENV_LAUNCHER_PID, std::process::id().to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| failure(&format!("rank {rank} cannot be started"), &error))?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            group.children.push(child);
            if let (Some(mut input), Some(output)) = (input, output) {
                listen(rank, output, sender.clone())
                    .map_err(|error| failure(&format!("rank {rank} cannot be listened to"), &error))?;
                write_line(&mut input, assignment)
                    .map_err(|error| failure(&format!("rank {rank} cannot be told its job"), &error))?;
                group.inputs.push(input);
            }
        }
        Ok(group)
    }

    /// Tells all of them something.
    ///
    /// # Errors
    /// One has ended.
    pub fn tell(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.inputs.iter_mut().try_for_each(|input| write_line(input, what))
    }

    /// What one of them says next; `None` when nothing was said for so long.
    ///
    /// # Errors
    /// One has ended otherwise than well.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<(usize, E)>, BenchError> {
        loop {
            match self.events.recv_timeout(limit) {
                Ok((rank, Some(event))) => return Ok(Some((rank, event))),
                Ok((rank, None)) => self.ended(rank)?,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(BenchError::Failure(
                        "all ranks have ended before their work was done".into(),
                    ));
                }
            }
        }
    }

    /// Lets them end by themselves for so long.
    pub fn end(mut self, limit: Duration) {
        // The end of its input tells a rank that there is nothing more to do.
        self.inputs.clear();
        let deadline = Instant::now() + limit;
        let is_running = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        while self.children.iter_mut().any(is_running) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// A rank's output is over: fine after its last word, which the caller has
    /// counted, if it ended well.
    fn ended(&mut self, rank: usize) -> Result<(), BenchError> {
        let status = self.children[rank].wait();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(BenchError::Failure(format!("rank {rank} ended unexpectedly: {status}"))),
            Err(error) => Err(failure(&format!("rank {rank} ended unexpectedly"), &error)),
        }
    }
}

/// Reads a rank's events in a thread of their own; `None` once it has ended.
fn listen<E: DeserializeOwned + Send + 'static>(
    rank: usize,
    output: impl io::Read + Send + 'static,
    sender: Sender<(usize, Option<E>)>,
) -> io::Result<()> {
    let listening = move || {
        for line in BufReader::new(output).lines() {
            let event = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let over = event.is_none();
            // Nobody listens any more once the run is given up.
            if sender.send((rank, event)).is_err() || over {
                return;
            }
        }
        let _ = sender.send((rank, None));
    };
    // Without a handle the thread goes on by itself.
    thread::Builder::new().spawn(listening).map(drop)
}

/// Ends this process when the command ends, however it ends.
pub fn end_with(parent: i32) -> Result<(), BenchError> {
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| failure("the kernel refuses PR_SET_PDEATHSIG", &errno.into()))?;
    if getppid().as_raw() == parent {
        Ok(())
    } else {
        Err(BenchError::Failure("the command that started this rank has ended".into()))
    }
}

/// Lets this process run on one CPU only.
pub fn pin(rank: u32, cpu: usize) -> Result<(), BenchError> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| failure(&format!("rank {rank} cannot be pinned on CPU {cpu}"), &errno.into()))
}

/// Writes one line of JSON.
pub fn write_line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}

/// Reads one line of JSON.
pub fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<T, BenchError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| failure("the job cannot be read", &error))?;
    serde_json::from_str(&line)
        .map_err(|_| BenchError::Failure("this subcommand is for lmt itself; use lmt bench".into()))
}

/// What failed, and what the kernel says of it.
pub fn failure(what: &str, error: &io::Error) -> BenchError {
    BenchError::Failure(format!("{what}: {error}"))
}
