//! How much memory measuring takes: the buffers of all processes.
//!
//! Each process has two buffers as long as the longest message, and two through
//! which messages rotate off cache.

use lmt::diagnostic::Host;

use crate::cache::{ASSUMED_CACHE_BYTES, LastCache, available_bytes, last_cache};
use crate::sizes::human;

/// What an endpoint takes at most with its peers, about.
const ENDPOINT_BYTES: u64 = 2 << 20;
/// What one process's two rotating buffers take together at most: every page of
/// them is touched at the start of each pass.
const ROTATION_MAX_BYTES: u64 = 512 << 20;

/// How many pairs there is memory for, of which half is to be enough for the
/// four buffers of each process and its endpoints.
pub fn max_pairs(sizes: &[u64], ways: usize) -> usize {
    let available = available_bytes(&Host::default()).unwrap_or(u64::MAX);
    max_pairs_within(available, sizes, ways)
}

fn max_pairs_within(available: u64, sizes: &[u64], ways: usize) -> usize {
    let largest = crate::job::stride_bytes(sizes.iter().copied().max().unwrap_or(0));
    let endpoints = ENDPOINT_BYTES.saturating_mul(ways as u64);
    let process = largest.saturating_mul(4).saturating_add(endpoints);
    usize::try_from(available / 2 / process.saturating_mul(2).max(1)).unwrap_or(usize::MAX)
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
    let bytes = wanted.min(ROTATION_MAX_BYTES / 2).min(of_memory) / 4096 * 4096;
    let reason = if of_memory < ROTATION_MAX_BYTES / 2 { "memory" } else { "time" };
    let shortfall = (bytes < for_cache / 4096 * 4096).then(|| {
        format!(
            "the last-level cache claims {}, and there is {reason} for rotating buffers of {} each, not of {}: part \
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
