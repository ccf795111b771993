//! How much memory measuring takes: the buffers of all processes.
//!
//! Each process has two buffers as long as the longest message, and two through
//! which messages rotate off cache.

use std::path::Path;

use lmt::checkup::Host;

use crate::doctor::limits::{Version, cgroups, number};
use crate::sizes::{human, parse_size};

/// What an endpoint takes at most with its peers, about.
const ENDPOINT_BYTES: u64 = 2 << 20;
/// What one process's two rotating buffers take together at most: every page of
/// them is touched at the start of each pass.
const ROTATION_MOST_BYTES: u64 = 512 << 20;
/// What is assumed where the kernel tells no cache size.
const ASSUMED_CACHE_BYTES: u64 = 64 << 20;

/// Memory that this process and its children can still have: what the machine
/// has and what is left of its cgroups' limits, whichever is less. Cached files
/// that nobody uses count as free in both.
pub fn available_bytes(host: &Host) -> Option<u64> {
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

/// How many pairs there is memory for, of which half is to be enough for the
/// four buffers of each process and its endpoints.
pub fn most_pairs(sizes: &[u64], ways: usize) -> usize {
    let available = available_bytes(&Host::default()).unwrap_or(u64::MAX);
    most_pairs_within(available, sizes, ways)
}

fn most_pairs_within(available: u64, sizes: &[u64], ways: usize) -> usize {
    let largest = crate::job::stride_bytes(sizes.iter().copied().max().unwrap_or(0));
    let endpoints = ENDPOINT_BYTES.saturating_mul(ways as u64);
    let process = largest.saturating_mul(4).saturating_add(endpoints);
    usize::try_from(available / 2 / process.saturating_mul(2).max(1)).unwrap_or(usize::MAX)
}

/// A last cache and who shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastCache {
    bytes: u64,
    /// As the kernel writes it; the same for all who share it.
    cpus: String,
}

/// The last cache of one CPU, as the kernel tells it.
fn last_cache(host: &Host, cpu: usize) -> Option<LastCache> {
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

/// Through how much memory messages rotate off cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes of each buffer.
    pub bytes: u64,
    /// Why that is less than it takes to be out of the caches for certain.
    pub shortfall: Option<String>,
}

/// What is needed for processes on these CPUs, one each, with messages of up to
/// `largest` bytes.
///
/// A line is out of a cache when more than the cache was touched through it
/// since the line's last use. Of a transfer at least two buffers pass through
/// the cache of the process that copies, from which and to which; so a last
/// cache that `n` of the processes share sees at least `2 n` buffers, and those
/// have to be twice as large as it is. The cache with the most bytes for each
/// process decides. At most, the two buffers of a process take 512 MiB and those
/// of all a quarter of the memory available.
pub fn rotation(host: &Host, cpus: &[usize], largest: u64, available: Option<u64>) -> Rotation {
    let caches: Vec<Option<LastCache>> = cpus.iter().map(|cpu| last_cache(host, *cpu)).collect();
    let of_each = caches.iter().map(|cache| {
        let sharing = caches.iter().filter(|other| *other == cache).count().max(1) as u64;
        let bytes = cache.as_ref().map_or(ASSUMED_CACHE_BYTES, |cache| cache.bytes);
        (bytes.div_ceil(sharing), bytes)
    });
    let (for_cache, cache) = of_each.max().unwrap_or((ASSUMED_CACHE_BYTES, ASSUMED_CACHE_BYTES));
    let wanted = for_cache.max(crate::job::stride_bytes(largest)).next_multiple_of(4096);
    let buffers = 2 * cpus.len().max(1) as u64;
    let of_memory = available.map_or(u64::MAX, |available| available / 4 / buffers);
    let bytes = wanted.min(ROTATION_MOST_BYTES / 2).min(of_memory) / 4096 * 4096;
    let reason = if of_memory < ROTATION_MOST_BYTES / 2 { "memory" } else { "time" };
    let shortfall = (bytes < for_cache / 4096 * 4096).then(|| {
        format!(
            "the last cache claims {}, and there is {reason} for rotating buffers of {} each, not of {}: part \
             of the messages may still be in that cache off cache",
            human(cache),
            human(bytes),
            human(for_cache)
        )
    });
    Rotation { bytes, shortfall }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
