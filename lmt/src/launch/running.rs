//! A group that runs, and what became of it.

use std::fmt;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lmt_core::identity::EndpointId;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::LaunchError;
use super::output::{RankOutput, Reader};
use super::signals::CaughtSignals;
use super::wire::{self, Event, Order};

/// A group of running ranks. Dropping it ends them with SIGKILL.
#[derive(Debug)]
pub struct Running {
    supervisor: Child,
    control: UnixStream,
    group: EndpointId,
    size: u32,
    pids: Vec<i32>,
    readers: Vec<Reader>,
    signals: Option<Arc<CaughtSignals>>,
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    exits: Vec<Option<ExitStatus>>,
    failure: Option<u32>,
    interrupted: Option<i32>,
    /// Processes that could not be ended, once the supervisor has said so.
    left: Option<Vec<i32>>,
    finished: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it was locked leaves nothing half done in it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    pub(super) fn new(
        child: Child,
        control: UnixStream,
        group: EndpointId,
        size: u32,
        readers: Vec<Reader>,
        signals: Option<CaughtSignals>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        shared.lock().exits = vec![None; size as usize];
        let signals = signals.map(Arc::new);
        Self {
            supervisor: child,
            control,
            group,
            size,
            pids: Vec::new(),
            readers,
            signals,
            shared,
            watcher: None,
        }
    }

    pub(super) fn control(&self) -> &UnixStream {
        &self.control
    }

    pub(super) fn watch(&mut self, pids: Vec<i32>) -> io::Result<()> {
        self.pids = pids;
        let control = self.control.try_clone()?;
        let shared = Arc::clone(&self.shared);
        let signals = self.signals.clone();
        let watch = move || watch(control, &shared, signals.as_deref());
        self.watcher = Some(std::thread::Builder::new().name("lmt-launch".to_owned()).spawn(watch)?);
        Ok(())
    }

    /// The group's id.
    pub fn group(&self) -> EndpointId {
        self.group
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The process number of a rank, or `None` when there is no such rank.
    /// The number may be another process's once [`Self::exit_of`] is `Some`.
    pub fn pid(&self, rank: u32) -> Option<i32> {
        self.pids.get(rank as usize).copied()
    }

    /// How a rank ended, if it has.
    pub fn exit_of(&self, rank: u32) -> Option<ExitStatus> {
        self.shared.lock().exits.get(rank as usize).copied().flatten()
    }

    /// Sends a signal (its number, signal(7)) to the process of a rank, never
    /// to anybody else; a rank that has ended is left alone. If a signal then
    /// kills the rank, that is no failure.
    ///
    /// # Errors
    /// [`LaunchError::NoSuchRank`]; [`LaunchError::Supervisor`] when the group
    /// has ended.
    pub fn kill(&self, rank: u32, signal: i32) -> Result<(), LaunchError> {
        if rank >= self.size {
            return Err(LaunchError::NoSuchRank { rank, size: self.size });
        }
        self.order(&Order::Kill { rank, signal })
            .map_err(|source| LaunchError::Supervisor { what: "has ended", source })
    }

    /// Begins to end all ranks: SIGTERM, and after the grace SIGKILL.
    pub fn end(&self) {
        // When the supervisor is gone there is nobody left to end.
        let _ = self.order(&Order::End);
    }

    /// Begins to end all ranks with SIGKILL.
    pub fn end_now(&self) {
        let _ = self.order(&Order::EndNow);
    }

    fn order(&self, order: &Order) -> io::Result<()> {
        wire::send(&self.control, order)
    }

    /// Waits until a rank has ended, for at most `limit`.
    pub fn wait_rank(&self, rank: u32, limit: Duration) -> Option<ExitStatus> {
        let has =
            |state: &State| state.finished || state.exits.get(rank as usize).is_none_or(Option::is_some);
        self.wait_until(Some(limit), has).exits.get(rank as usize).copied().flatten()
    }

    /// Waits until everything has ended, for at most `limit`. True if it has.
    pub fn wait_for(&self, limit: Duration) -> bool {
        self.wait_until(Some(limit), |state| state.finished).finished
    }

    /// Waits until all ranks and all that they started have ended.
    pub fn wait(mut self) -> Outcome {
        drop(self.wait_until(None, |state| state.finished));
        self.finish();
        let streams: Vec<Vec<u8>> = std::mem::take(&mut self.readers)
            .into_iter()
            .map(|reader| reader.join().unwrap_or_default())
            .collect();
        let pair =
            |streams: &[Vec<u8>]| RankOutput { stdout: streams[0].clone(), stderr: streams[1].clone() };
        let state = self.shared.lock();
        Outcome {
            exits: state.exits.clone(),
            failure: state.failure,
            interrupted: state.interrupted,
            left: state.left.clone().unwrap_or_default(),
            supervisor_died: state.left.is_none(),
            output: streams.chunks_exact(2).map(pair).collect(),
        }
    }

    fn wait_until(&self, limit: Option<Duration>, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut state = self.shared.lock();
        while !done(&state) {
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return state,
                Some(rest) => {
                    self.shared.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state
    }

    /// Ends a group that did not start as it should.
    pub(super) fn abandon(&mut self) {
        self.finish();
    }

    /// Closes the connection, upon which the supervisor kills what is left, and
    /// waits for it.
    fn finish(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let _ = self.supervisor.wait();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        self.signals = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Follows the supervisor's events until it is gone.
fn watch(control: UnixStream, shared: &Shared, signals: Option<&CaughtSignals>) {
    let mut events = BufReader::with_capacity(1, &control);
    loop {
        if let Some(signals) = signals
            && let Some(signal) = wait_or_signal(&control, signals)
        {
            shared.lock().interrupted.get_or_insert(signal);
            let _ = wire::send(&control, &Order::End);
            continue;
        }
        let Ok(Some(event)) = wire::receive::<Event>(&mut events) else {
            break;
        };
        let mut state = shared.lock();
        match event {
            Event::Exited { rank, raw_status, failure } => {
                if let Some(exit) = state.exits.get_mut(rank as usize) {
                    *exit = Some(ExitStatus::from_raw(raw_status));
                }
                if failure {
                    state.failure.get_or_insert(rank);
                }
            }
            Event::Done { left } => state.left = Some(left),
            Event::Hello | Event::Started { .. } | Event::NotStarted { .. } => {}
        }
        shared.changed.notify_all();
    }
    shared.lock().finished = true;
    shared.changed.notify_all();
}

/// Waits for an event of the supervisor, which is `None`, or for a signal.
fn wait_or_signal(control: &UnixStream, signals: &CaughtSignals) -> Option<i32> {
    let mut fds =
        [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    loop {
        let _ = poll(&mut fds, PollTimeout::NONE);
        if let Some(signal) = signals.next() {
            return Some(signal);
        }
        if fds[0].any().unwrap_or(true) {
            return None;
        }
    }
}

/// What became of a group. Written out, it says in one line what went wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// How each rank ended.
    pub exits: Vec<Option<ExitStatus>>,
    /// The first rank that failed; the others were ended because of it.
    pub failure: Option<u32>,
    /// The signal to the launching process that ended the ranks.
    pub interrupted: Option<i32>,
    /// Processes that the kernel did not let the supervisor end.
    pub left: Vec<i32>,
    /// The supervisor was killed, so that some ends are not known.
    pub supervisor_died: bool,
    /// What each rank wrote; empty unless it was captured.
    pub output: Vec<RankOutput>,
}

impl Outcome {
    /// Whether the group ended by itself, no rank failed, and nothing is left.
    pub fn success(&self) -> bool {
        self.failure.is_none() && self.interrupted.is_none() && self.left.is_empty() && !self.supervisor_died
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ctrl-C reaches the ranks too, whose ends then are no news.
        if let Some(signal) = self.interrupted {
            return write!(f, "ended by signal {}", describe_signal(signal));
        }
        if let Some(rank) = self.failure {
            let how = self.exits.get(rank as usize).copied().flatten();
            return write!(f, "rank {rank} {}; the other ranks were ended", describe_exit(how));
        }
        if self.supervisor_died {
            return f.write_str("the supervisor of the ranks was killed, and the ranks with it");
        }
        if !self.left.is_empty() {
            return write!(f, "processes {:?} could not be ended; end them by hand", self.left);
        }
        f.write_str("all ranks ended well")
    }
}

/// How a rank ended, in words: "ended with status 3", "was killed by signal 9
/// (SIGKILL)", "has not ended".
pub fn describe_exit(exit: Option<ExitStatus>) -> String {
    match exit.map(|exit| (exit.code(), exit.signal())) {
        Some((Some(code), _)) => format!("ended with status {code}"),
        Some((None, Some(signal))) => format!("was killed by signal {}", describe_signal(signal)),
        _ => "has not ended".to_owned(),
    }
}

fn describe_signal(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => format!("{signal} ({known})"),
        Err(_) => signal.to_string(),
    }
}
