//! How near two processes are to each other.

use std::fmt;
use std::str::FromStr;

/// The narrowest part of the machine that holds all CPUs where either of two
/// processes may run, from the narrowest to the widest.
///
/// Bytes that one process has just written are nearest to the other through the
/// narrowest cache that both share (ICPP 2009 section 4.1, JPDC 2013 section
/// 5.1), so what is fastest depends on the place.
///
/// NUMA nodes come before packages because memory is what a copy reads and
/// writes. Where a package has several nodes, two CPUs of it on different nodes
/// are [`Place::SamePackage`]. Where a node has several packages, two CPUs on it
/// are [`Place::SameNuma`] whatever their packages. The exception is a node with
/// all CPUs of the machine, which is what hwloc describes where there is no NUMA
/// information, and what a machine with one memory behind a front-side bus has:
/// it puts nobody nearer to anybody, so each package counts as a node there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// One core: the same CPU, or hardware threads of one core.
    SameCore,
    /// One L1 data cache, several cores.
    SharedL1,
    /// One L2 cache.
    SharedL2,
    /// One cache of level 3 or beyond.
    SharedL3,
    /// One NUMA node, or one package where one node has the whole machine.
    SameNuma,
    /// One package with several NUMA nodes.
    SamePackage,
    /// Nothing narrower than the machine, or not known.
    Other,
}

impl Place {
    /// All, from the narrowest to the widest.
    pub const ALL: [Self; 7] = [
        Self::SameCore,
        Self::SharedL1,
        Self::SharedL2,
        Self::SharedL3,
        Self::SameNuma,
        Self::SamePackage,
        Self::Other,
    ];

    /// Its name in files of configuration, which [`Place::from_str`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameCore => "same-core",
            Self::SharedL1 => "shared-l1",
            Self::SharedL2 => "shared-l2",
            Self::SharedL3 => "shared-l3",
            Self::SameNuma => "same-numa",
            Self::SamePackage => "same-package",
            Self::Other => "other",
        }
    }

    /// The place of two that share a cache of this level.
    pub(super) const fn of_cache(level: u8) -> Self {
        match level {
            0 | 1 => Self::SharedL1,
            2 => Self::SharedL2,
            _ => Self::SharedL3,
        }
    }
}

/// In words: "shared L2".
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SameCore => "same core",
            Self::SharedL1 => "shared L1",
            Self::SharedL2 => "shared L2",
            Self::SharedL3 => "shared L3",
            Self::SameNuma => "same NUMA node",
            Self::SamePackage => "same package",
            Self::Other => "other",
        })
    }
}

/// A place that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a place: it is one of same-core, shared-l1, shared-l2, shared-l3, same-numa, same-package, other"
)]
pub struct UnknownPlace(pub String);

impl FromStr for Place {
    type Err = UnknownPlace;

    fn from_str(name: &str) -> Result<Self, UnknownPlace> {
        Self::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| UnknownPlace(name.to_owned()))
    }
}
