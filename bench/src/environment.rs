//! Where and how figures were measured: without it they say nothing.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::cache;
use crate::error::BenchError;
use crate::job::Job;
use crate::memory::{Memory, page_bytes};
use crate::sizes::human;

/// The machine and the settings behind a set of figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this command.
    pub lmt: String,
    /// When, in UTC.
    pub date: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// CPUs this process may use.
    pub cpus_allowed: String,
    /// Which rank ran where.
    pub pinning: String,
    /// Size of a page, in bytes.
    pub page_bytes: u64,
    /// When the kernel gives out transparent huge pages.
    pub huge_pages: String,
    /// Size of the last-level cache, in bytes, where the kernel tells it.
    pub last_cache_bytes: Option<u64>,
    /// How the buffers were used, in words.
    pub buffers: String,
    /// Whether all processes had one core among them, on which they took turns.
    #[serde(default)]
    pub is_one_core: bool,
}

impl Environment {
    /// Records this machine and the settings of `job`.
    pub fn record(job: &Job) -> Self {
        Self::of(&job.cpus, buffers(job.buffers, job.in_use, job.rotation_bytes, job.ranks))
    }

    /// Records this machine, where ranks run, and how their buffers are used.
    pub fn of(cpus: &[usize], buffers: String) -> Self {
        let allowed = allowed_cpus().unwrap_or_default();
        Self {
            lmt: env!("CARGO_PKG_VERSION").to_owned(),
            date: utc(now_s()),
            kernel: kernel(),
            cpu: cpu_model(),
            cpus_allowed: if allowed.is_empty() { "unknown".to_owned() } else { join(&allowed) },
            pinning: pinning(cpus),
            page_bytes: page_bytes(),
            huge_pages: huge_pages(),
            last_cache_bytes: cache::last_level_bytes(),
            buffers,
            is_one_core: is_one_core(if cpus.is_empty() { &allowed } else { cpus }),
        }
    }

    /// What is to be known before any figure is read.
    pub fn warning(&self) -> Option<&'static str> {
        self.is_one_core.then_some(
            "There was one CPU for all processes: these figures are of processes that take turns on one core, not \
             of two that work at the same time.",
        )
    }

    /// What there is to show, as pairs of a word and its value.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let cache = self.last_cache_bytes.map_or_else(|| "unknown".to_owned(), human);
        let mut lines = vec![
            ("lmt", format!("{}, {}", self.lmt, self.date)),
            ("kernel", self.kernel.clone()),
            ("cpu", format!("{}; CPUs allowed {}; last cache {cache}", self.cpu, self.cpus_allowed)),
            ("pinning", self.pinning.clone()),
            ("page size", format!("{}; transparent huge pages: {}", human(self.page_bytes), self.huge_pages)),
            ("buffers", self.buffers.clone()),
        ];
        lines.extend(self.warning().map(|sentence| ("note", sentence.to_owned())));
        lines
    }
}

/// The processor's model as the kernel tells it, or the architecture.
pub fn cpu_model() -> String {
    first_line_with("/proc/cpuinfo", "model name")
        .or_else(|| first_line_with("/proc/cpuinfo", "Model"))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The kernel's name and release.
pub fn kernel() -> String {
    nix::sys::utsname::uname().map_or_else(
        |_| "unknown".to_owned(),
        |name| format!("{} {}", name.sysname().display(), name.release().display()),
    )
}

/// Now, in UTC, as RFC 3339 has it.
pub fn now_rfc3339() -> String {
    let seconds = now_s();
    let text = utc(seconds);
    // `2026-11-21 10:00 UTC`, to which the seconds are added.
    let minute = text.trim_end_matches(" UTC").replace(' ', "T");
    format!("{minute}:{:02}Z", seconds % 60)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The CPUs on which this process may run.
///
/// # Errors
/// The kernel does not say.
pub fn allowed_cpus() -> Result<Vec<usize>, BenchError> {
    let set = sched_getaffinity(Pid::from_raw(0)).map_err(|errno| {
        BenchError::Failure(format!(
            "the kernel does not say which CPUs may be used ({errno}); try --pin none"
        ))
    })?;
    // Beyond its capacity the set answers with an error; such CPUs do not exist.
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Whether these CPUs, of which at least one is known, are one.
fn is_one_core(cpus: &[usize]) -> bool {
    cpus.first().is_some_and(|first| cpus.iter().all(|cpu| cpu == first))
}

fn pinning(cpus: &[usize]) -> String {
    if cpus.is_empty() {
        return "none".to_owned();
    }
    let places: Vec<String> =
        cpus.iter().enumerate().map(|(rank, cpu)| format!("rank {rank} on CPU {cpu}")).collect();
    places.join(", ")
}

/// How buffers are used, in words.
pub fn buffers(memory: Memory, in_use: bool, rotation_bytes: Option<u64>, ranks: u32) -> String {
    let rotation = rotation_bytes.map_or_else(
        || "reused".to_owned(),
        |bytes| {
            let all = bytes.saturating_mul(2 * u64::from(ranks));
            format!("off cache: each rotates through {} ({} in all)", human(bytes), human(all))
        },
    );
    let in_use = if in_use { "written before sending and read after receiving" } else { "not modified" };
    format!("{}, every page used before; {rotation}; {in_use}", memory.source())
}

fn huge_pages() -> String {
    // The mode in force stands in brackets: "always [madvise] never".
    fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .ok()
        .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn first_line_with(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// CPU numbers with runs drawn together: `0-3,8`.
pub fn join(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == cpu => *end = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let shown: Vec<String> = runs
        .iter()
        .map(|(start, end)| if start == end { start.to_string() } else { format!("{start}-{end}") })
        .collect();
    shown.join(",")
}

/// Seconds since 1970 as a date and time in UTC (the days-to-civil algorithm
/// of the proleptic Gregorian calendar, years beginning in March).
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
