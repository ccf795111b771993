//! How much memory this process may still take, and which limit says so.

use std::fs::read_to_string;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

use crate::error::MemoryShort;

/// The tightest limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Available {
    /// Bytes; none if nothing could be read.
    pub(crate) bytes: Option<u64>,
    /// Its name, in words.
    pub(crate) limit: String,
}

const FILE_SIZE: &str = "RLIMIT_FSIZE, ulimit -f";
const ADDRESS_SPACE: &str = "RLIMIT_AS, ulimit -v";

impl Available {
    /// The bytes, if the limit binds memory that is mapped but not touched too.
    pub(crate) fn uncommitted_bytes(&self) -> Option<u64> {
        self.bytes.filter(|_| self.limit == FILE_SIZE || self.limit == ADDRESS_SPACE)
    }
}

/// What limits an allocation of `needed_bytes`: a hard limit of this process
/// if it is too low for that, else whatever leaves least.
pub(crate) fn available(needed_bytes: u64) -> Available {
    let hard = [(rlimit(Resource::RLIMIT_FSIZE), FILE_SIZE), (address_space_left(), ADDRESS_SPACE)];
    let soft = [
        (free_memory(), "free memory, MemAvailable in /proc/meminfo"),
        (cgroup_left(), "memory.max of this process's cgroup"),
    ];
    let least = |limits: &[(Option<u64>, &str)]| {
        let known = limits.iter().filter_map(|(bytes, limit)| Some(((*bytes)?, limit.to_string())));
        known.min_by_key(|(bytes, _)| *bytes)
    };
    let found = match least(&hard) {
        Some(tight) if tight.0 < needed_bytes => Some(tight),
        _ => least(&[hard, soft].concat()),
    };
    match found {
        Some((bytes, limit)) => Available { bytes: Some(bytes), limit },
        None => Available { bytes: None, limit: "no limit could be read".into() },
    }
}

/// Whether `bytes` bytes may be mapped that an endpoint can do without: only where
/// `times` times as much address space is left. The rest is for what it cannot do
/// without, the inboxes of its peers, and for the program. `purpose` and `key` (a
/// configuration key) go into the error.
///
/// Without a limit on the address space (setrlimit(2), RLIMIT_AS) nothing is
/// looked at but that there is none.
///
/// # Errors
/// [`MemoryShort`] when less is left.
///
/// ```
/// use lmt_core::memory_limits::spare_address_space;
/// assert!(spare_address_space("a cache", "cache_bytes", 4096, 8).is_ok());
/// ```
pub fn spare_address_space(
    purpose: &'static str,
    key: &'static str,
    bytes: u64,
    times: u64,
) -> Result<(), MemoryShort> {
    spare_of(address_space_left(), purpose, key, bytes, times)
}

fn spare_of(
    left: Option<u64>,
    purpose: &'static str,
    key: &'static str,
    bytes: u64,
    times: u64,
) -> Result<(), MemoryShort> {
    let Some(left) = left.filter(|left| left / times.max(1) < bytes) else { return Ok(()) };
    Err(MemoryShort {
        purpose,
        needed_bytes: bytes,
        available: (left / times.max(1)).to_string(),
        limit: format!(
            "{ADDRESS_SPACE}: one part in {times} of the {left} bytes that are left, the rest is for connections and the program"
        ),
        key,
    })
}

fn rlimit(resource: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != libc::RLIM_INFINITY).then_some(soft)
}

fn address_space_left() -> Option<u64> {
    let most = rlimit(Resource::RLIMIT_AS)?;
    let status = read_to_string("/proc/self/status").ok()?;
    Some(most.saturating_sub(kib_field(&status, "VmSize:").unwrap_or(0)))
}

fn free_memory() -> Option<u64> {
    kib_field(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// The value of a line `NAME   123 kB`, in bytes.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The least that is left in this process's cgroup (version 2) and those above.
fn cgroup_left() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let group = root.join(path);
    group.ancestors().take_while(|dir| dir.starts_with(root)).filter_map(left_in).min()
}

fn left_in(group: &Path) -> Option<u64> {
    let number = |file: &str| read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    let most = number("memory.max")?; // "max" is no number: no limit.
    let used = number("memory.current")?;
    // Cached files count as used but make room when it is needed.
    let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached: u64 = statistics
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| matches!(*name, "inactive_file" | "active_file"))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum();
    Some(most.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
#[path = "memory_limits_tests.rs"]
mod tests;
