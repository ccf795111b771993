//! The ranks of a benchmark as processes: this program again, with a hidden
//! subcommand. They talk with the command by lines of JSON: what they are to do
//! goes to their standard input, what they say comes from their standard output.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use lmt_core::errno_advice::thread_advice;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;

/// How long none of the ranks may say anything while the command glances at
/// them: a turn takes seconds, also where the machine has other work.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a rank may take to end once its output is over.
const ENDING: Duration = Duration::from_secs(5);
/// How long it is looked for a rank that has died, once another says that it
/// failed: it may tell so sooner than the kernel tells of the death.
const GRACE: Duration = Duration::from_millis(500);
/// What a rank's sentence has in it that misses another one, or memory that it took back
/// when it gave up.
const MISSED: [&str; 2] = [
    "has died or closed its endpoint",
    "the region is not registered (any more); ask its owner for a new key",
];
/// How often it is looked whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// How long ranks have to clean up before they are killed.
const CLEANING: Duration = Duration::from_millis(200);
/// What is shown of a line that nobody understands.
const SHOWN_LETTERS: usize = 80;

/// What ranks say.
pub trait Word: DeserializeOwned + Send + 'static {
    /// Why the rank gives up with it, if it does: the cause may be another rank's death.
    fn failure(&self) -> Option<&str>;
}

/// What was heard of a rank.
enum RankEvent<E> {
    Said(E),
    /// A line that is none of its words.
    Strange(String),
    /// Its output is over.
    Over,
}

/// The processes; they are ended when this is dropped.
pub struct Processes<E> {
    children: Vec<Child>,
    /// What is to be written to each; each has a thread that does, since a rank
    /// that is stopped does not read.
    inputs: Vec<Sender<String>>,
    events: Receiver<(usize, RankEvent<E>)>,
    /// When a rank was told or said something last.
    heard: Instant,
    silence: Duration,
}

impl<E> Drop for Processes<E> {
    fn drop(&mut self) {
        for child in &mut self.children {
            if is_running(child) {
                // An error means that it has ended since.
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            }
        }
        self.wait_for(CLEANING);
        for child in &mut self.children {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl<E> Processes<E> {
    /// Until all have ended, but no longer than that.
    fn wait_for(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.children.iter_mut().any(is_running) && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl<E: Word> Processes<E> {
    /// Starts a process for each assignment, and tells it that.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start(subcommand: &str, assignments: &[impl Serialize]) -> Result<Self, BenchError> {
        let program = this_program()?;
        Self::start_program(&program, subcommand, assignments, |_| {})
    }

    /// The same, of processes that find none of the user's settings.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start_without_settings(
        subcommand: &str,
        assignments: &[impl Serialize],
    ) -> Result<Self, BenchError> {
        let program = this_program()?;
        Self::start_program(&program, subcommand, assignments, without_settings)
    }

    fn start_program(
        program: &Path,
        subcommand: &str,
        assignments: &[impl Serialize],
        prepare: fn(&mut Command),
    ) -> Result<Self, BenchError> {
        let (sender, events) = channel();
        let (children, inputs) = (Vec::new(), Vec::new());
        let mut group = Self { children, inputs, events, heard: Instant::now(), silence: SILENCE };
        for (rank, assignment) in assignments.iter().enumerate() {
            let mut command = Command::new(program);
            command.arg(subcommand);
            prepare(&mut command);
            let mut child = command
                // Where Yama rules, the ranks admit whom this process starts.
                .env(lmt::launch::ENV_LAUNCHER_PID, std::process::id().to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // What a terminal sends to a whole group (Ctrl-C) is for the command.
                .process_group(0)
                .spawn()
                .map_err(|error| not_begun(&format!("rank {rank} cannot be started"), &error))?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            group.children.push(child);
            if let (Some(input), Some(output)) = (input, output) {
                listen(rank, output, sender.clone())
                    .map_err(|error| not_begun(&format!("rank {rank} cannot be listened to"), &error))?;
                let input = talk(input)
                    .and_then(|input| say(&input, assignment).map(|()| input))
                    .map_err(|error| not_begun(&format!("rank {rank} cannot be told its job"), &error))?;
                group.inputs.push(input);
            }
        }
        Ok(group)
    }

    /// Tells all of them something; does not wait until they read it.
    ///
    /// # Errors
    /// One does not read any more.
    pub fn tell(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.heard = Instant::now();
        // Of a rank that has ended, the event tells more than a broken pipe.
        self.inputs.iter().try_for_each(|input| say(input, what).or_else(of_ended))
    }

    /// What one of them says next; `None` when nothing was said for so long.
    ///
    /// # Errors
    /// One has ended otherwise than well, says what is none of its words, or,
    /// where the command asks again and again, all are silent for a minute.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<(usize, E)>, BenchError> {
        loop {
            match self.events.recv_timeout(limit) {
                Ok((rank, heard)) => {
                    self.heard = Instant::now();
                    match heard {
                        RankEvent::Said(word) => {
                            if word.failure().is_none() {
                                return Ok(Some((rank, word)));
                            }
                            self.find_dead()?;
                            return Ok(Some(self.cause_of((rank, word))));
                        }
                        RankEvent::Strange(line) => return Err(self.strange(rank, &line)),
                        RankEvent::Over => self.ended(rank)?,
                    }
                }
                Err(RecvTimeoutError::Timeout) if limit < self.silence => {
                    return if self.heard.elapsed() < self.silence { Ok(None) } else { Err(self.silent()) };
                }
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
        self.wait_for(limit);
    }

    /// A rank's output is over: fine after its last word, which the caller has
    /// counted, if it ended well.
    fn ended(&mut self, rank: usize) -> Result<(), BenchError> {
        let deadline = Instant::now() + ENDING;
        loop {
            match self.children[rank].try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(unexpected(rank, status)),
                Err(error) => return Err(failure(&format!("rank {rank} ended unexpectedly"), &error)),
                Ok(None) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
                Ok(None) => {
                    self.kill(rank);
                    return Err(BenchError::Failure(format!(
                        "rank {rank} closed its output, did not end within {} s, and was killed",
                        ENDING.as_secs()
                    )));
                }
            }
        }
    }

    /// Looks for a rank that died, which is why another one fails. One that
    /// gives up ends with status 1.
    fn find_dead(&mut self) -> Result<(), BenchError> {
        let deadline = Instant::now() + GRACE;
        loop {
            for (rank, child) in self.children.iter_mut().enumerate() {
                match child.try_wait() {
                    Ok(Some(status))
                        if status.signal().is_some() || !matches!(status.code(), Some(0 | 1)) =>
                    {
                        return Err(unexpected(rank, status));
                    }
                    _ => {}
                }
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// What another rank has said meanwhile that is why this one has missed it; else what
    /// this one says.
    fn cause_of(&self, (rank, word): (usize, E)) -> (usize, E) {
        let misses_another = |word: &E| word.failure().is_some_and(is_missing_another);
        if !misses_another(&word) {
            return (rank, word);
        }
        let cause = self.events.try_iter().find_map(|(rank, heard)| match heard {
            RankEvent::Said(word) if word.failure().is_some() && !misses_another(&word) => Some((rank, word)),
            _ => None,
        });
        cause.unwrap_or((rank, word))
    }

    fn strange(&mut self, rank: usize, line: &str) -> BenchError {
        self.kill(rank);
        let shown: String = line.chars().take(SHOWN_LETTERS).collect();
        BenchError::Failure(format!(
            "rank {rank} wrote what is no answer to its standard output, {shown:?}, and was killed"
        ))
    }

    fn silent(&mut self) -> BenchError {
        let pids: Vec<(usize, u32)> = self.children.iter().map(Child::id).enumerate().collect();
        let stopped = pids.into_iter().find(|(_, pid)| is_stopped(*pid));
        let seconds = self.silence.as_secs_f64();
        BenchError::Failure(match stopped {
            Some((rank, pid)) => {
                format!("no answer from the ranks for {seconds} s: rank {rank} (process {pid}) is stopped")
            }
            None => format!("no answer from the ranks for {seconds} s"),
        })
    }

    fn kill(&mut self, rank: usize) {
        // An error means that it has ended already; Drop waits for it.
        let _ = self.children[rank].kill();
    }
}

/// Whether that is why a rank gives up: another one did.
fn is_missing_another(sentence: &str) -> bool {
    MISSED.iter().any(|missed| sentence.contains(missed))
}

fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

fn unexpected(rank: usize, status: ExitStatus) -> BenchError {
    BenchError::Failure(format!("rank {rank} ended unexpectedly: {status}"))
}

fn of_ended(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// Whether a process is stopped by a signal or a debugger (proc(5), `stat`).
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, in which there may be anything.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['T', 't']))
}

fn this_program() -> Result<PathBuf, BenchError> {
    std::env::current_exe().map_err(|error| failure("the path of this program cannot be found", &error))
}

/// Lets a process find none of the user's settings: neither files nor variables,
/// so that what it measures is what was asked for. Where sockets are is no
/// question of taste and stays.
pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_setting = name.to_string_lossy().starts_with("LMT_") && name != lmt::launch::ENV_SOCKET_DIR;
        if is_setting {
            command.env_remove(name);
        }
    }
    // Without them there is no folder with files.
    command.env_remove("XDG_CONFIG_HOME").env_remove("HOME");
}

/// Writes to a rank in a thread of its own, until the sender is dropped.
fn talk(mut input: ChildStdin) -> io::Result<Sender<String>> {
    let (sender, lines) = channel::<String>();
    let talking = move || {
        for line in lines {
            // Its end is heard otherwise.
            if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
                return;
            }
        }
    };
    // Without a handle the thread goes on by itself.
    thread::Builder::new().spawn(talking).map(|_| sender)
}

fn say(input: &Sender<String>, value: &impl Serialize) -> io::Result<()> {
    input.send(line(value)?).map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// Reads a rank's words in a thread of its own.
fn listen<E: Word>(
    rank: usize,
    output: impl io::Read + Send + 'static,
    sender: Sender<(usize, RankEvent<E>)>,
) -> io::Result<()> {
    let listening = move || {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else { break };
            let (heard, over) = match serde_json::from_slice(&line) {
                Ok(word) => (RankEvent::Said(word), false),
                Err(_) => (RankEvent::Strange(String::from_utf8_lossy(&line).into_owned()), true),
            };
            // Nobody listens any more once the run is given up.
            if sender.send((rank, heard)).is_err() || over {
                return;
            }
        }
        let _ = sender.send((rank, RankEvent::Over));
    };
    // Without a handle the thread goes on by itself.
    thread::Builder::new().spawn(listening).map(drop)
}

pub(crate) fn line(value: &impl Serialize) -> io::Result<String> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(line)
}

/// The same where a process or thread does not begin, with the limits that end that.
fn not_begun(what: &str, error: &io::Error) -> BenchError {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let limits = match errno {
        Some(errno @ (Errno::EAGAIN | Errno::ENOMEM)) => {
            format!("; take fewer ranks, or {}", thread_advice(errno))
        }
        Some(errno @ (Errno::EMFILE | Errno::ENFILE)) => format!("; {}", thread_advice(errno)),
        // The error says all: no program of that name, none that may be run.
        _ => String::new(),
    };
    BenchError::Failure(format!("{what}: {error}{limits}"))
}

/// What failed, and what the kernel says of it.
pub fn failure(what: &str, error: &io::Error) -> BenchError {
    BenchError::Failure(format!("{what}: {error}"))
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
