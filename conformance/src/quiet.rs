//! Measurements that other programs on the machine upset.
//!
//! What a test says of time holds where the test has the cores to itself. A measurement that
//! fails counts only if the machine was quiet before and after it ([`holds`]), or if other
//! programs had next to nothing of the cores meanwhile ([`Load`]).

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::group::allowed_cpus;
use crate::require;

/// For so long it is looked whether the machine is quiet.
const LOOK: Duration = Duration::from_millis(10);
/// A thread that is stopped for longer shares its core: a time slice is longer.
const MAX_GAP: Duration = Duration::from_micros(700);
/// As many cores are to be free as a pair of ranks takes.
const CORES: usize = 2;

/// Whether two threads have a core each for a moment.
pub fn is_quiescent() -> bool {
    thread::scope(|scope| {
        let looks: Vec<_> = (0..CORES).map(|_| scope.spawn(max_gap)).collect();
        looks.into_iter().all(|look| look.join().is_ok_and(|gap| gap < MAX_GAP))
    })
}

/// The longest that this thread was stopped for.
fn max_gap() -> Duration {
    let (begun, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while last.duration_since(begun) < LOOK {
        let now = Instant::now();
        longest = longest.max(now.duration_since(last));
        last = now;
    }
    longest
}

/// Looks how much of the machine other programs have, from its making on.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    begun: Instant,
    busy: Duration,
    own: Duration,
}

/// Of the time of the cores; a quiet machine's services take less.
const MIN_SHARE: f64 = 0.1;

impl Load {
    /// From now on.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), busy: busy_time(), own: own_time() }
    }

    /// The part of the time of the cores on which this process may run that other programs, and
    /// other machines on the same hardware, have had since.
    pub fn of_others(&self) -> f64 {
        let busy = busy_time().saturating_sub(self.busy);
        let others = busy.saturating_sub(own_time().saturating_sub(self.own));
        let cores = allowed_cpus().len().max(1);
        others.as_secs_f64() / (self.begun.elapsed().as_secs_f64() * cores as f64)
    }

    /// Asserts that something took less than `bound`; asked when the processes that did it
    /// have been waited for. Where other programs had a part of the cores meanwhile, ten times
    /// that is allowed, and said on standard error to be so.
    ///
    /// # Panics
    /// When it took longer.
    pub fn took_less(&self, what: &str, took: Duration, bound: Duration) {
        if took < bound {
            return;
        }
        let share = self.of_others();
        assert!(
            took < bound * 10 && share > MIN_SHARE,
            "{what} took {took:?}; at most {bound:?} was expected, and other programs had {share:.2} of the cores"
        );
        eprintln!(
            "SKIPPED: {what} took {took:?} where others had {share:.2} of the cores; {bound:?} is for a quiet machine"
        );
    }
}

/// For how long the cores on which this process may run were not idle (proc(5), /proc/stat:
/// user, nice, system, irq, softirq and steal).
fn busy_time() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux has /proc/stat");
    let cpus: Vec<String> = allowed_cpus().iter().map(|cpu| format!("cpu{cpu}")).collect();
    let busy: u64 = text.lines().map(|line| busy_ticks(line, &cpus)).sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    Duration::from_secs_f64(busy as f64 / per_second as f64)
}

/// The ticks of one line, if it is of one of these cores.
fn busy_ticks(line: &str, cpus: &[String]) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((name, ticks)) = words.split_first() else { return 0 };
    if !cpus.iter().any(|cpu| cpu == name) {
        return 0;
    }
    [0, 1, 2, 5, 6, 7].iter().filter_map(|&field| ticks.get(field)?.parse::<u64>().ok()).sum()
}

/// The time of this process and of its children that have been waited for.
fn own_time() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .flat_map(|usage| [usage.user_time(), usage.system_time()])
        .map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs()))
        .sum()
}

/// Measures until it holds. Says on standard error that it is skipped where the
/// machine was not quiet for `failures` measurements within `limit`.
///
/// # Panics
/// When so many measurements failed at quiet moments; or when there were not so
/// many and `LMT_REQUIRE` names `quiet`.
pub fn holds(failures: usize, limit: Duration, mut measure: impl FnMut() -> Result<(), String>) {
    holds_by(failures, limit, is_quiescent, &mut measure);
}

fn holds_by(
    failures: usize,
    limit: Duration,
    mut is_quiescent: impl FnMut() -> bool,
    measure: &mut dyn FnMut() -> Result<(), String>,
) {
    let deadline = Instant::now() + limit;
    let (mut failed, mut upset) = (Vec::new(), 0);
    while failed.len() < failures {
        let was_quiet = is_quiescent();
        let Err(what) = measure() else { return };
        if was_quiet && is_quiescent() {
            failed.push(what);
        } else {
            upset += 1;
        }
        if failed.len() < failures && Instant::now() > deadline {
            let why =
                format!("other programs upset {upset} measurements, and {} failed: {failed:?}", failed.len());
            return require::skipped("quiet", &why);
        }
    }
    panic!("{} measurements at quiet moments failed: {failed:?}", failed.len());
}

#[cfg(test)]
#[path = "quiet_tests.rs"]
mod tests;
