//! How large the caches are, and what it takes to defeat them.

use std::fs;

use crate::error::BenchError;
use crate::sizes::human;

/// The most memory that all rotating buffers take together, in bytes.
const ROTATION_BOUND_BYTES: u64 = 1 << 30;
/// What is assumed where the kernel tells no cache size.
const ASSUMED_CACHE_BYTES: u64 = 64 << 20;
/// The least that one buffer rotates through.
const ROTATION_LEAST_BYTES: u64 = 1 << 20;

/// Size of the last cache of the first CPU, as the kernel tells it.
pub fn last_level_bytes() -> Option<u64> {
    let mut last: Option<(u64, u64)> = None;
    for entry in fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?.flatten() {
        let read = |name| fs::read_to_string(entry.path().join(name)).ok();
        let level = read("level").and_then(|level| level.trim().parse::<u64>().ok());
        let bytes = read("size").and_then(|size| crate::sizes::parse_size(size.trim()).ok());
        if let (Some(level), Some(bytes)) = (level, bytes) {
            last = last.max(Some((level, bytes)));
        }
    }
    last.map(|(_, bytes)| bytes)
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

/// Memory that can still be had, in bytes, as /proc/meminfo tells it.
pub fn available_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
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
    (all / buffers / 4096 * 4096).max(ROTATION_LEAST_BYTES)
}

/// The working set around a transfer whose traces in the cache are looked for:
/// half the last cache, so that it fits and so that what else is touched makes a
/// difference; at most a quarter of the memory available.
pub fn working_set_bytes(cache_bytes: Option<u64>, available_bytes: u64) -> u64 {
    let half = cache_bytes.unwrap_or(ASSUMED_CACHE_BYTES) / 2;
    (half.min(available_bytes / 4) / 4096 * 4096).max(4096)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
