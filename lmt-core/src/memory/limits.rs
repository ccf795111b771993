//! How much memory this process may still take, and which limit says so.

use std::fs::read_to_string;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::resource::{Resource, getrlimit};

use crate::vocabulary::error::MemoryShort;

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

    /// The error of who needs more.
    pub(crate) fn short(self, purpose: &'static str, key: &'static str, needed_bytes: u64) -> MemoryShort {
        let available = self.bytes.map_or("an unknown number".into(), |bytes| bytes.to_string());
        MemoryShort { purpose, needed_bytes, available, limit: self.limit, key }
    }
}

/// What limits an allocation of `needed_bytes`: a hard limit of this process
/// if it is too low for that, else whatever leaves least.
pub(crate) fn available(needed_bytes: u64) -> Available {
    let hard = hard_limits();
    let tightest = least(&hard);
    match tightest.bytes {
        Some(bytes) if bytes < needed_bytes => tightest,
        _ => least(&[hard, pages()].concat()),
    }
}

/// What limits the pages that this process may still take for memory that is
/// mapped already.
fn available_pages() -> Available {
    least(&pages())
}

type Limit = (Option<u64>, &'static str);

/// What binds memory that is mapped but not touched, too.
fn hard_limits() -> [Limit; 2] {
    [(rlimit(Resource::RLIMIT_FSIZE), FILE_SIZE), (address_space_left(), ADDRESS_SPACE)]
}

/// What binds pages, whatever they are for.
fn pages() -> [Limit; 2] {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    [
        (free_memory(), "free memory, MemAvailable in /proc/meminfo"),
        (cgroup_left(&groups, Path::new("/sys/fs/cgroup")), "memory.max of this process's cgroup"),
    ]
}

/// The limit that leaves least, of those that are known.
fn least(limits: &[Limit]) -> Available {
    let known = limits.iter().filter_map(|(bytes, limit)| Some(((*bytes)?, *limit)));
    match known.min_by_key(|(bytes, _)| *bytes) {
        Some((bytes, limit)) => Available { bytes: Some(bytes), limit: limit.into() },
        None => Available { bytes: None, limit: "no limit could be read".into() },
    }
}

/// Pages that may be taken without looking at the limits, which costs some system
/// calls, each time. Past a cgroup's limit the kernel kills (cgroups(7),
/// memory.max), and past the machine's too, so who takes pages looks first.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    bytes: AtomicU64,
}

/// What this process may take before it looks again: to read what a cgroup has left
/// takes milliseconds where there are many, and the limits are the process's.
pub(crate) static PAGES: Allowance = Allowance { bytes: AtomicU64::new(0) };

impl Allowance {
    /// What is left to others: the page tables, the program, other processes of
    /// the cgroup that take pages at the same time.
    const MARGIN_BYTES: u64 = 2 << 20;
    /// What one look allows at most.
    const MAX_BYTES: u64 = 16 << 20;
    /// And which part of what is left, since others look too.
    const PARTS: u64 = 16;

    /// Whether so many bytes may be taken now.
    ///
    /// # Errors
    /// The limit that is too low for that.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Available> {
        self.take_of(bytes, available_pages)
    }

    fn take_of(&self, bytes: u64, look: impl FnOnce() -> Available) -> Result<(), Available> {
        // Relaxed, all three: it is a budget that guards no other memory, and two
        // threads that look at once only allow twice as much.
        let rest = |allowed: u64| allowed.checked_sub(bytes);
        if self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok() {
            return Ok(());
        }
        let now = look();
        let left = now.bytes.unwrap_or(u64::MAX);
        if left < bytes.saturating_add(Self::MARGIN_BYTES) {
            return Err(now);
        }
        self.bytes.store(((left - bytes) / Self::PARTS).min(Self::MAX_BYTES), Ordering::Relaxed);
        Ok(())
    }
}

/// Whether there are `bytes` bytes for a memory file: past RLIMIT_FSIZE ftruncate(2)
/// kills with SIGXFSZ, past a cgroup's limit the kernel kills too. `is_committed` says
/// whether all its pages are taken now. `purpose` and `key` (a configuration key)
/// go into the error.
///
/// # Errors
/// [`MemoryShort`] with the limit that is too low.
///
/// ```
/// use lmt_core::memory_limits::ensure_available;
/// assert!(ensure_available("a cache", "cache_bytes", 4096, true).is_ok());
/// assert!(ensure_available("a cache", "cache_bytes", u64::MAX, true).is_err());
/// ```
pub fn ensure_available(
    purpose: &'static str,
    key: &'static str,
    bytes: u64,
    is_committed: bool,
) -> Result<(), MemoryShort> {
    let limit = least(&hard_limits());
    if limit.bytes.is_some_and(|most| most < bytes) {
        return Err(limit.short(purpose, key, bytes));
    }
    match is_committed {
        true => PAGES.take(bytes).map_err(|limit| limit.short(purpose, key, bytes)),
        false => Ok(()),
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
    let limit = format!(
        "{ADDRESS_SPACE}: one part in {times} of the {left} bytes that are left, the rest is for connections and the program"
    );
    Err(Available { bytes: Some(left / times.max(1)), limit }.short(purpose, key, bytes))
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

/// The least that is left in this process's cgroup and those above. `groups` is
/// what /proc/self/cgroup says, `root` where cgroups are mounted (cgroups(7)).
fn cgroup_left(groups: &str, root: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| left_above(line, root)).min()
}

/// The same of one line: `0::PATH` of version 2, or `N:CONTROLLERS:PATH`.
fn left_above(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (root, files) = match controllers {
        "" => (root.to_owned(), &VERSION_TWO),
        named if named.split(',').any(|name| name == "memory") => (root.join("memory"), &VERSION_ONE),
        _ => return None,
    };
    // Where the group is not visible from here, its mount's root may be it.
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|dir| dir.starts_with(&root)).filter_map(|dir| left_in(dir, files)).min()
}

/// The files of a version of cgroups.
struct Files {
    most: &'static str,
    used: &'static str,
    /// The lines of memory.stat about cached files.
    cached: [&'static str; 2],
}

const VERSION_TWO: Files =
    Files { most: "memory.max", used: "memory.current", cached: ["inactive_file", "active_file"] };

const VERSION_ONE: Files = Files {
    most: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};

fn left_in(group: &Path, files: &Files) -> Option<u64> {
    let number = |file: &str| read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    let most = number(files.most)?; // "max" is no number: no limit.
    let used = number(files.used)?;
    // Cached files count as used but make room when it is needed.
    let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached: u64 = statistics
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| files.cached.contains(name))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum();
    Some(most.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
