//! The machine as hwloc describes it: who shares which cache, NUMA node and
//! package, and so how near two processes are.
//!
//! A [`Machine`] is plain data, read once from libhwloc and then shared. It may
//! describe a machine that is not this one: hwloc's own variables
//! `HWLOC_SYNTHETIC`, `HWLOC_XMLFILE` and `HWLOC_FSROOT` are obeyed, and tests
//! use [`Machine::synthetic`] and [`Machine::from_xml`].
//!
//! ```
//! use lmt_core::cpu_set::CpuSet;
//! use lmt_selector::topology::{Machine, Place};
//!
//! // The Xeon E5345 of the ICPP 2009 paper, in two packages.
//! let machine = Machine::synthetic("package:2 l2:2(size=4194304) core:2 pu:1")?;
//! let cpu = |index| CpuSet::from_iter([index]);
//! assert_eq!(machine.place(&cpu(0), &cpu(1)), Place::SharedL2);
//! assert_eq!(machine.place(&cpu(0), &cpu(2)), Place::SameNuma);
//! assert_eq!(machine.place(&cpu(0), &cpu(4)), Place::Other);
//! # Ok::<(), lmt_selector::topology::TopologyError>(())
//! ```
//!
//! libhwloc is looked for at run time. Where it is missing, and without the feature `hwloc` (on by
//! default), the machine is what the kernel's files say, and no other machine can be described.

mod describe;
mod error;
mod load;
mod objects;
mod place;
mod snapshot;
mod source;
mod synthetic;
mod sys;
mod sysfs;
#[cfg(test)]
pub(crate) mod testing;
mod xml;

use lmt_core::cpu_set::CpuSet;

pub use error::{TopologyError, WithoutHwloc};
pub use load::without_hwloc;
pub use place::{Place, UnknownPlace};
pub use source::Source;

/// A data or unified cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 for the one nearest to the core.
    pub level: u8,
    /// Its size in bytes, 0 where hwloc does not know it.
    pub bytes: u64,
    /// The CPUs that use it.
    pub cpus: CpuSet,
    /// How many physical cores share it, at least 1: hardware threads of one
    /// core count once, and cores that this process may not use count too.
    pub cores: u32,
}

/// A package, a NUMA node or a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The system's number for it, `None` where it gives none. A core's is
    /// unique within its package only.
    pub os_index: Option<u32>,
    /// The CPUs in it, or for a NUMA node, near it; empty for memory alone.
    pub cpus: CpuSet,
}

/// A CPU that is online: what the kernel schedules on, a hardware thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number for it.
    pub index: usize,
    /// Which of [`Machine::cores`], where hwloc knows.
    pub core: Option<usize>,
    /// Which of [`Machine::packages`], where hwloc knows.
    pub package: Option<usize>,
    /// Which of [`Machine::numa_nodes`]: several where, say, ordinary and
    /// high-bandwidth memory are near the same CPUs.
    pub numa_nodes: Vec<usize>,
    /// Which of [`Machine::caches`], from the narrowest level to the widest.
    pub caches: Vec<usize>,
}

/// A machine as hwloc described it when it was asked.
///
/// CPUs that go online or offline afterwards are not noticed. Share it by
/// `Arc`: it is some kilobytes for each hundred CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    source: Source,
    is_this_system: bool,
    online: CpuSet,
    allowed: CpuSet,
    offline: CpuSet,
    left_out: u32,
    /// Ascending by index.
    cpus: Vec<Cpu>,
    cores: Vec<Part>,
    packages: Vec<Part>,
    numa_nodes: Vec<Part>,
    caches: Vec<Cache>,
    /// The sets of CPUs that count as one NUMA node.
    rooms: Vec<CpuSet>,
}

impl Machine {
    /// What described it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether it describes the machine that runs this, by hwloc's word: `false`
    /// when it was given by a variable or a file, unless `HWLOC_THISSYSTEM=1`
    /// vouches for that.
    pub fn is_this_system(&self) -> bool {
        self.is_this_system
    }

    /// The CPUs that are online, also those that this process may not use.
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The CPUs that cgroups let this process use. Pinning narrows that
    /// further: see [`CpuSet::of_this_thread`].
    pub fn allowed(&self) -> &CpuSet {
        &self.allowed
    }

    /// The CPUs that hwloc knows of and that are not online.
    pub fn offline(&self) -> &CpuSet {
        &self.offline
    }

    /// How many CPUs online are not described because their number is beyond
    /// what a [`CpuSet`] holds.
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// The CPUs that are online, ascending.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The cores with a CPU online; none where hwloc does not know them.
    pub fn cores(&self) -> &[Part] {
        &self.cores
    }

    /// The packages (sockets); none where hwloc does not know them.
    pub fn packages(&self) -> &[Part] {
        &self.packages
    }

    /// The NUMA nodes. Where there is no NUMA information, hwloc describes one
    /// that spans the machine.
    pub fn numa_nodes(&self) -> &[Part] {
        &self.numa_nodes
    }

    /// All data and unified caches, by level from the narrowest.
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// A CPU by the kernel's number; `None` when it is not online here.
    pub fn cpu(&self, index: usize) -> Option<&Cpu> {
        let position = self.cpus.binary_search_by_key(&index, |cpu| cpu.index).ok()?;
        self.cpus.get(position)
    }

    /// The caches of a CPU from the narrowest level to the widest; none for a
    /// CPU that is not online here.
    pub fn caches_of(&self, cpu: usize) -> impl Iterator<Item = &Cache> {
        self.cpu(cpu).into_iter().flat_map(|cpu| &cpu.caches).filter_map(|c| self.caches.get(*c))
    }

    /// The largest cache of a CPU by bytes, of equal ones the one nearest to
    /// memory; `None` where no cache's size is known.
    pub fn largest_cache(&self, cpu: usize) -> Option<&Cache> {
        self.caches_of(cpu).filter(|cache| cache.bytes > 0).max_by_key(|cache| (cache.bytes, cache.level))
    }

    /// How near two processes are that may run on these CPUs: the narrowest
    /// place that holds all of both, so that it is true wherever the scheduler
    /// puts them. An empty set, and a CPU that is not online here, is
    /// [`Place::Other`].
    pub fn place(&self, a: &CpuSet, b: &CpuSet) -> Place {
        if a.is_empty() || b.is_empty() {
            return Place::Other;
        }
        let both = a.union(b);
        if !both.is_within(&self.online) {
            return Place::Other;
        }
        // What holds all of them holds the first.
        let Some(first) = both.iter().next().and_then(|index| self.cpu(index)) else {
            return Place::Other;
        };
        let core = first.core.and_then(|core| self.cores.get(core)).map(|core| core.cpus);
        let alone = CpuSet::from_iter([first.index]);
        if both.is_within(&core.unwrap_or(alone)) {
            return Place::SameCore;
        }
        let shared = self.caches_of(first.index).filter(|cache| both.is_within(&cache.cpus));
        if let Some(narrowest) = shared.map(|cache| Place::of_cache(cache.level)).min() {
            return narrowest;
        }
        if self.rooms.iter().any(|room| both.is_within(room)) {
            return Place::SameNuma;
        }
        match first.package.and_then(|package| self.packages.get(package)) {
            Some(package) if both.is_within(&package.cpus) => Place::SamePackage,
            _ => Place::Other,
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "machine_properties.rs"]
mod properties;
