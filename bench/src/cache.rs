//! How large the caches are, and what it takes to defeat them.

use std::path::Path;

use lmt::diagnostic::Host;

use crate::doctor::limits::{Version, cgroups, number};
use crate::error::BenchError;
use crate::sizes::{human, parse_size};

/// The most memory that all rotating buffers take together, in bytes.
const ROTATION_BOUND_BYTES: u64 = 1 << 30;
/// What is assumed where the kernel tells no cache size.
pub(crate) const ASSUMED_CACHE_BYTES: u64 = 64 << 20;
/// The least that one buffer rotates through.
const ROTATION_MIN_BYTES: u64 = 1 << 20;

/// Size of the last-level cache of the first CPU, as the kernel tells it.
pub fn last_level_bytes() -> Option<u64> {
    last_cache(&Host::default(), 0).map(|cache| cache.bytes)
}

/// A last-level cache and who shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastCache {
    /// Its size.
    pub bytes: u64,
    /// As the kernel writes it; the same for all who share it.
    cpus: String,
}

/// The last-level cache of one CPU, as the kernel tells it.
pub(crate) fn last_cache(host: &Host, cpu: usize) -> Option<LastCache> {
    let folder = format!("devices/system/cpu/cpu{cpu}/cache");
    let mut last: Option<(u64, LastCache)> = None;
    for index in 0.. {
        let read = |name| host.sys_text(&format!("{folder}/index{index}/{name}")).ok().flatten();
        let Some(level) = read("level").and_then(|level| level.trim().parse::<u64>().ok()) else { break };
        let Some(bytes) = read("size").and_then(|size| parse_size(size.trim()).ok()) else { continue };
        let cpus = read("shared_cpu_list").unwrap_or_else(|| cpu.to_string());
        if last.as_ref().is_none_or(|(known, _)| *known <= level) {
            last = Some((level, LastCache { bytes, cpus: cpus.trim().to_owned() }));
        }
    }
    last.map(|(_, cache)| cache)
}

/// Whether so much memory is there.
///
/// # Errors
/// One sentence: `what` needs it (with its verb), what is available, and what to do.
pub fn check_memory(what: &str, needed_bytes: u64, advice: &str) -> Result<(), BenchError> {
    match available_memory_bytes() {
        Some(available) if needed_bytes > available => Err(BenchError::Failure(format!(
            "{what} {} and {} are available; {advice}",
            human(needed_bytes >> 20 << 20),
            human(available >> 20 << 20)
        ))),
        _ => Ok(()),
    }
}

/// See [`available_bytes`].
pub fn available_memory_bytes() -> Option<u64> {
    available_bytes(&Host::default())
}

/// Memory that this process and its children can still have: what the machine
/// has and what is left of its cgroups' limits, whichever is less. Cached files
/// that nobody uses count as free in both.
pub(crate) fn available_bytes(host: &Host) -> Option<u64> {
    let text = host.proc_text("meminfo").ok().flatten().unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let of_machine = kib.map(|kib| kib.saturating_mul(1024));
    let of_groups = cgroups(host, "memory").into_iter().filter_map(|(version, folder)| {
        let read = |file| number(host, &folder, file);
        let (most, used, cached) = match version {
            Version::Two => {
                let limits = [read("memory.max"), read("memory.high")];
                (limits.into_iter().flatten().min(), read("memory.current"), "inactive_file")
            }
            Version::One => {
                (read("memory.limit_in_bytes"), read("memory.usage_in_bytes"), "total_inactive_file")
            }
        };
        let cached = cached_bytes(host, &folder, cached).unwrap_or(0);
        Some(most?.saturating_sub(used.unwrap_or(0).saturating_sub(cached)))
    });
    of_machine.into_iter().chain(of_groups).min()
}

/// One line of a cgroup's memory.stat.
fn cached_bytes(host: &Host, folder: &Path, name: &str) -> Option<u64> {
    let text = host.sys_text(&folder.join("memory.stat").to_string_lossy()).ok()??;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Through how many bytes each buffer rotates for `--off-cache`.
///
/// A line is out of the cache when more than the cache was touched since its
/// last use. Between two uses every buffer of every rank that takes part is
/// walked once, so it is their sum that has to exceed the last cache: twice
/// the cache, bounded by 1 GiB and by a quarter of the memory available.
/// Machines that run under a hypervisor claim the whole cache of a processor
/// they share with others; the bound keeps that claim from taking the memory.
pub fn rotation_bytes(ranks: u32, cache_bytes: Option<u64>, available_bytes: Option<u64>) -> u64 {
    let wanted = cache_bytes.unwrap_or(ASSUMED_CACHE_BYTES).saturating_mul(2);
    let all = wanted.min(ROTATION_BOUND_BYTES).min(available_bytes.map_or(u64::MAX, |bytes| bytes / 4));
    let buffers = 2 * u64::from(ranks.max(1));
    (all / buffers / 4096 * 4096).max(ROTATION_MIN_BYTES)
}

/// The working set around a transfer whose traces in the cache are looked for:
/// half the last-level cache, so that it fits and so that what else is touched makes a
/// difference; at most a quarter of the memory available.
pub fn working_set_bytes(cache_bytes: Option<u64>, available_bytes: u64) -> u64 {
    let half = cache_bytes.unwrap_or(ASSUMED_CACHE_BYTES) / 2;
    (half.min(available_bytes / 4) / 4096 * 4096).max(4096)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
