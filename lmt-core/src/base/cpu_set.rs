//! Where processes may run.

use nix::sched::{CpuSet as KernelSet, sched_getaffinity};
use nix::unistd::Pid;

/// What the kernel tells of the calling thread.
const STATUS: &str = "/proc/thread-self/status";

/// The CPUs on which a process may run: one bit each, up to 1024.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuSet([u8; Self::BYTES]);

impl CpuSet {
    /// Its size on the wire.
    pub const BYTES: usize = 128;

    /// No CPU at all.
    pub const EMPTY: Self = Self([0; Self::BYTES]);

    /// Where the calling thread may run now (sched_getaffinity(2)). Empty when
    /// the kernel does not say.
    pub fn of_this_thread() -> Self {
        let mut set = Self::EMPTY;
        let kernel = match sched_getaffinity(Pid::from_raw(0)) {
            Ok(kernel) => kernel,
            // A kernel for more CPUs than such a set holds refuses it, even
            // where fewer are there. It writes them out as well (proc(5)).
            Err(_) => return Self::of_status(&std::fs::read_to_string(STATUS).unwrap_or_default()),
        };
        for cpu in 0..KernelSet::count().min(Self::BYTES * 8) {
            if kernel.is_set(cpu).unwrap_or(false) {
                set.0[cpu / 8] |= 1 << (cpu % 8);
            }
        }
        set
    }

    /// The CPUs that a thread's status has; none when it has none.
    fn of_status(status: &str) -> Self {
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.and_then(|list| Self::of_list(list.trim())).unwrap_or(Self::EMPTY)
    }

    /// The CPUs of a list as the kernel writes it, `0-3,8`; those beyond what a
    /// set holds are left out. `None` when it is no list.
    fn of_list(list: &str) -> Option<Self> {
        let mut set = Self::EMPTY;
        for part in list.split(',').filter(|_| !list.is_empty()) {
            let (first, last) = range(part)?;
            (first..=last.min(Self::BYTES * 8 - 1)).for_each(|cpu| {
                set.insert(cpu);
            });
        }
        Some(set)
    }

    /// The set with these bits; bit 0 of byte 0 is CPU 0.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bits.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
        self
    }

    /// Whether this CPU is in it.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.get(cpu / 8).is_some_and(|byte| byte & (1 << (cpu % 8)) != 0)
    }

    /// Adds a CPU; one beyond what a set holds is left out, and `false` says so.
    pub fn insert(&mut self, cpu: usize) -> bool {
        match self.0.get_mut(cpu / 8) {
            Some(byte) => {
                *byte |= 1 << (cpu % 8);
                true
            }
            None => false,
        }
    }

    /// Whether every CPU of this set is in `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether some CPU is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(mine, theirs)| mine & theirs != 0)
    }

    /// Whether there is no CPU in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Its CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::BYTES * 8).filter(|cpu| self.contains(*cpu))
    }

    /// How many CPUs.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|b| b.count_ones()).sum()
    }
}

/// The first and the last CPU of a part of a list.
fn range(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// How many CPUs a list of the kernel names, 5 for `0-3,8`, be they more than a set holds.
/// `None` when it is no list, or names none.
pub fn count_of_list(list: &str) -> Option<usize> {
    list.trim().split(',').try_fold(0_usize, |sum, part| {
        let (first, last) = range(part)?;
        sum.checked_add((last - first).checked_add(1)?)
    })
}

impl FromIterator<usize> for CpuSet {
    /// CPUs beyond what a set holds are left out.
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::EMPTY;
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

/// As the kernel writes lists of CPUs: `0-3,8`.
impl std::fmt::Display for CpuSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl std::fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
#[path = "cpu_set_tests.rs"]
mod tests;
