//! What a snapshot asks of whatever describes the machine: hwloc, or the
//! kernel's files.

use std::ffi::c_uint;

/// An object type by hwloc 2's number (`hwloc_obj_type_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type(pub(super) c_uint);

impl Type {
    pub(super) const MACHINE: Self = Self(0);
    pub(super) const PACKAGE: Self = Self(1);
    pub(super) const CORE: Self = Self(2);
    pub(super) const PU: Self = Self(3);
    pub(super) const NUMA_NODE: Self = Self(13);

    /// The data or unified caches of a level from 1 to 5, with the level.
    pub(super) const CACHES: [(u8, Self); 5] =
        [(1, Self(4)), (2, Self(5)), (3, Self(6)), (4, Self(7)), (5, Self(8))];
}

/// One object, copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// The system's number, `None` where it gives none.
    pub(super) os_index: Option<u32>,
    /// The CPUs of the topology in it, by the system's numbers, ascending.
    pub(super) cpus: Vec<u32>,
    /// The CPUs in it with those that are offline or unknown.
    pub(super) complete_cpus: Vec<u32>,
    /// For a cache, its size in bytes, 0 where it is not known.
    pub(super) cache_bytes: u64,
}

/// A machine in objects.
pub(super) trait Objects {
    /// Whether it is the machine that runs this.
    fn is_this_system(&self) -> bool;

    /// The CPUs that this process may use, as far as cgroups say; `None` when
    /// nobody said.
    fn allowed(&self) -> Option<Vec<u32>>;

    /// All objects of a type; none when there are none.
    fn objects(&self, object_type: Type) -> Vec<Object>;
}
