//! The parent's side of a test of several processes.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lmt::launch::{Launcher, Outcome, Output, Running, describe_exit};

use super::Test;
use super::channel::{self, ENV_CHANNEL, FromRank, ToRank};
use crate::started::ENV_TEST;

/// How many times each test of this process has called `run`: a function that
/// calls it twice makes two groups, and their ranks must tell them apart.
static RUNS: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);

pub(super) fn count_run(name: &str) -> u32 {
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = runs.get_or_insert_default().entry(name.to_owned()).or_insert(0);
    *count += 1;
    *count
}

/// What the ranks have left when all went well. Empty in a rank that belongs to
/// a later run of the same test function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Results {
    /// The lines that each rank reported and nobody has read yet, in order.
    pub reports: Vec<Vec<String>>,
    /// How each rank ended.
    pub exits: Vec<Option<ExitStatus>>,
}

/// The parent of a running test.
#[derive(Debug)]
pub struct Parent {
    running: Running,
    hub: Arc<Hub>,
    deadline: Instant,
}

/// Where the reports of ranks are collected and ranks at a barrier counted.
#[derive(Debug)]
struct Hub {
    state: Mutex<HubState>,
    changed: Condvar,
}

#[derive(Debug)]
struct HubState {
    reports: Vec<Vec<String>>,
    /// To each rank that still lives.
    channels: Vec<Option<UnixStream>>,
    waiting: Vec<bool>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn act(&self, rank: usize, message: FromRank) {
        let mut state = self.lock();
        match message {
            FromRank::Report(line) => state.reports[rank].push(line),
            FromRank::Barrier => state.waiting[rank] = true,
        }
        state.open_barrier();
        self.changed.notify_all();
    }

    /// The rank is dead or has closed its end: barriers no longer wait for it.
    fn gone(&self, rank: usize) {
        let mut state = self.lock();
        state.channels[rank] = None;
        state.waiting[rank] = false;
        state.open_barrier();
        self.changed.notify_all();
    }
}

impl HubState {
    fn open_barrier(&mut self) {
        let mut living = self.channels.iter().zip(&self.waiting).filter(|(channel, _)| channel.is_some());
        if !living.all(|(_, waiting)| *waiting) {
            return;
        }
        self.waiting.fill(false);
        for mut channel in self.channels.iter().flatten() {
            // A rank that has just died is noticed by its reader.
            let _ = channel.write_all(ToRank::Go.to_line().as_bytes());
        }
    }
}

impl Parent {
    /// Sends a signal (signal(7)) to a rank, whose death by it is no failure.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn kill(&self, rank: u32, signal: i32) {
        if let Err(error) = self.running.kill(rank, signal) {
            // A group that has ended is told of by the outcome.
            assert!(rank < self.running.size(), "{error}");
        }
    }

    /// The process number of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn pid(&self, rank: u32) -> i32 {
        self.running.pid(rank).expect("ranks are below the group's size")
    }

    /// Waits until the rank has ended. `None` when the time limit passes first.
    pub fn wait_rank(&self, rank: u32) -> Option<ExitStatus> {
        self.running.wait_rank(rank, self.deadline.saturating_duration_since(Instant::now()))
    }

    /// The next line that the rank reports, or `None` when it ends or the time
    /// limit passes first.
    pub fn next_report(&mut self, rank: u32) -> Option<String> {
        let rank = rank as usize;
        let mut state = self.hub.lock();
        loop {
            if !state.reports[rank].is_empty() {
                return Some(state.reports[rank].remove(0));
            }
            let rest = self.deadline.saturating_duration_since(Instant::now());
            if state.channels[rank].is_none() || rest.is_zero() {
                return None;
            }
            state = self.hub.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub(super) fn run(test: Test, tag: &str, drive: impl FnOnce(&mut Parent)) -> Results {
    let name = test.name.clone();
    let deadline = Instant::now() + test.time_limit;
    let (running, hub, readers) = start(&test, tag).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut parent = Parent { running, hub, deadline };
    let driven = catch_unwind(AssertUnwindSafe(|| drive(&mut parent)));
    let Parent { running, hub, .. } = parent;
    // A parent that panics cannot see to its ranks any more.
    let in_time = driven.is_ok() && running.wait_for(deadline.saturating_duration_since(Instant::now()));
    let late: Vec<u32> = (0..test.ranks).filter(|rank| running.exit_of(*rank).is_none()).collect();
    running.end_now();
    let outcome = running.wait();
    for reader in readers {
        reader.join().expect("readers of reports do not panic");
    }
    if let Err(panic) = driven {
        eprintln!("{name}: the parent's part panicked{}", what_ranks_wrote(&outcome));
        resume_unwind(panic);
    }
    if outcome.failure.is_some() || outcome.supervisor_died || !outcome.left.is_empty() {
        panic!("{name}: {outcome}{}{}", describe_ends(&outcome), what_ranks_wrote(&outcome));
    }
    if !in_time {
        let limit = test.time_limit.as_millis();
        let written = what_ranks_wrote(&outcome);
        panic!("{name}: ranks {late:?} had not ended after {limit} ms, and were killed{written}");
    }
    let reports = std::mem::take(&mut hub.lock().reports);
    Results { reports, exits: outcome.exits }
}

type Started = (Running, Arc<Hub>, Vec<JoinHandle<()>>);

fn start(test: &Test, tag: &str) -> Result<Started, Box<dyn std::error::Error>> {
    // Only the exact test, be it an ignored one, and nothing kept from us.
    let arguments = [test.name.as_str(), "--exact", "--include-ignored", "--nocapture", "--test-threads=1"];
    let mut executable = std::env::current_exe()?;
    if nix::unistd::access(&executable, nix::unistd::AccessFlags::X_OK).is_err() {
        // This user may not enter the folders above it.
        executable = "/proc/self/exe".into();
    }
    let mut launcher = Launcher::new(test.ranks)
        .command(executable, arguments)
        .supervisor_arguments(arguments)
        .env(ENV_TEST, tag)
        .pin(&test.cpus)
        .output(Output::Capture)
        .grace(Duration::ZERO)
        .no_stdin();
    for rank in &test.may_die {
        launcher = launcher.may_die(*rank);
    }
    for (name, value) in &test.variables {
        launcher = launcher.env(name, value);
    }
    let mut ours = Vec::new();
    for rank in 0..test.ranks {
        let (parent, child) = UnixStream::pair()?;
        launcher = launcher.inherit_fd(rank, ENV_CHANNEL, child.into());
        ours.push(parent);
    }
    let running = launcher.spawn()?;
    let ranks = ours.len();
    let channels = ours.iter().map(|channel| channel.try_clone().map(Some)).collect::<Result<_, _>>()?;
    let state = HubState { reports: vec![Vec::new(); ranks], channels, waiting: vec![false; ranks] };
    let hub = Arc::new(Hub { state: Mutex::new(state), changed: Condvar::new() });
    let follow = |(rank, channel): (usize, UnixStream)| {
        let hub = Arc::clone(&hub);
        std::thread::Builder::new()
            .name(format!("rank-{rank}"))
            .spawn(move || follow_rank(&hub, rank, channel))
    };
    let readers = ours.into_iter().enumerate().map(follow).collect::<Result<_, _>>()?;
    Ok((running, hub, readers))
}

/// Reads what a rank sends until nobody can send any more.
fn follow_rank(hub: &Hub, rank: usize, channel: UnixStream) {
    let mut from = BufReader::new(channel);
    while let Some(message) = channel::read_line(&mut from).and_then(|line| FromRank::from_line(&line)) {
        hub.act(rank, message);
    }
    hub.gone(rank);
}

fn describe_ends(outcome: &Outcome) -> String {
    let ends = outcome.exits.iter().enumerate();
    ends.map(|(rank, exit)| format!("\n  rank {rank} {}", describe_exit(*exit))).collect()
}

fn what_ranks_wrote(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (rank, output) in outcome.output.iter().enumerate() {
        for (stream, bytes) in [("standard output", &output.stdout), ("standard error", &output.stderr)] {
            let written = String::from_utf8_lossy(bytes);
            // What the test harness itself says in every rank.
            let lines: Vec<&str> =
                written.lines().filter(|line| !line.is_empty() && *line != "running 1 test").collect();
            if !lines.is_empty() {
                text += &format!("\n--- rank {rank}, {stream}:\n{}", lines.join("\n"));
            }
        }
    }
    text
}
