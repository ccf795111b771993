//! DMAmin: from how many bytes on a copy had better not pass through the
//! receiver's cache.

use std::fmt;

use lmt_core::cpu_set::CpuSet;

use crate::size::written;
use crate::topology::{Cache, Machine};

/// How the users of a cache are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Formula {
    /// Every core that shares the cache: one process a core, as most groups
    /// run, from the machine alone.
    ByCores,
    /// The processes of the group that use the cache.
    ByProcesses,
}

/// The size of message from which on a copy by other hardware than the CPU, or
/// past its cache, pays.
///
/// A process that copies a message reads it into its cache and then fills the
/// cache again with what it writes. So that this does not flush all of it, the
/// cache must be twice as large as the message, and each process that uses the
/// cache has its share of it only (ICPP 2009 section 3.5):
///
/// DMAmin = cache bytes / (2 x processes using the cache), or, with one process
/// a core, cache bytes / (2 x cores sharing the cache).
///
/// The cache is the largest one of the process that receives, since that one
/// copies. The division is rounded down.
///
/// ```
/// use lmt_core::cpu_set::CpuSet;
/// use lmt_selector::dma_min::DmaMin;
/// use lmt_selector::topology::Machine;
///
/// let machine = Machine::synthetic("package:2 l2:2(size=4194304) core:2 pu:1")?;
/// let dma_min = DmaMin::by_cores(&machine, &CpuSet::from_iter([0])).unwrap();
/// assert_eq!(dma_min.to_string(), "DMAmin 1 MiB = 4 MiB of L2 / (2 x 2 cores that share it)");
/// # Ok::<(), lmt_selector::topology::TopologyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmaMin {
    /// The threshold.
    pub bytes: u64,
    /// The cache that it keeps from being flushed.
    pub cache: Cache,
    /// How many cores or processes use the cache, at least 1.
    pub sharing: u32,
    /// Which of both.
    pub formula: Formula,
}

impl DmaMin {
    /// By the cores that share the receiver's largest cache.
    ///
    /// A receiver that may run on several CPUs gets the smallest result of
    /// theirs, which is right wherever it runs. `None` where no cache of any of
    /// them is known, and for an empty set.
    pub fn by_cores(machine: &Machine, receiver: &CpuSet) -> Option<Self> {
        Self::smallest(machine, receiver, Formula::ByCores, |cache| cache.cores)
    }

    /// By the processes of the group that use the receiver's largest cache;
    /// `group` holds where each of them may run, the receiver included.
    ///
    /// A process uses a cache if it may run on one of the cache's CPUs. One that
    /// is not pinned so counts for every cache that it may come to: at times it
    /// does run there, and the threshold is to keep its data from being flushed
    /// at those times too. The result errs to the small side, never to the side
    /// that flushes, and pinned processes get it exact. For the same reason one of
    /// which it is not known where it may run (an empty set) counts for every
    /// cache.
    ///
    /// `None` as for [`DmaMin::by_cores`]. A cache that none of `group` uses
    /// counts one process, the receiver.
    pub fn by_processes(machine: &Machine, receiver: &CpuSet, group: &[CpuSet]) -> Option<Self> {
        Self::smallest(machine, receiver, Formula::ByProcesses, |cache| {
            let uses = |process: &&CpuSet| process.is_empty() || process.meets(&cache.cpus);
            let users = group.iter().filter(uses).count();
            u32::try_from(users).unwrap_or(u32::MAX)
        })
    }

    fn smallest(
        machine: &Machine,
        receiver: &CpuSet,
        formula: Formula,
        sharing: impl Fn(&Cache) -> u32,
    ) -> Option<Self> {
        let of_cache = |cache: &Cache| {
            let sharing = sharing(cache).max(1);
            let bytes = cache.bytes / (2 * u64::from(sharing));
            Self { bytes, cache: cache.clone(), sharing, formula }
        };
        let caches = receiver.iter().filter_map(|cpu| machine.largest_cache(cpu));
        caches.map(of_cache).min_by_key(|dma_min| dma_min.bytes)
    }
}

/// "DMAmin 1 MiB = 4 MiB of L2 / (2 x 2 cores that share it)".
impl fmt::Display for DmaMin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = match (self.formula, self.sharing) {
            (Formula::ByCores, 1) => "core that uses it",
            (Formula::ByCores, _) => "cores that share it",
            (Formula::ByProcesses, 1) => "process that uses it",
            (Formula::ByProcesses, _) => "processes that use it",
        };
        write!(f, "DMAmin {} = {} / (2 x {} {users})", written(self.bytes), self.cache, self.sharing)
    }
}

#[cfg(test)]
#[path = "dma_min_tests.rs"]
mod tests;
