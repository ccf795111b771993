//! What the places of two processes have in common.

use std::fmt;
use std::str::FromStr;

/// What two processes share at least, the narrowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Place {
    /// A core: its hardware threads, or the same one.
    SameCore,
    /// A first-level data cache.
    SharedL1,
    /// A second-level cache.
    SharedL2,
    /// A cache of the third or a further level.
    SharedL3,
    /// A NUMA node.
    SameNuma,
    /// A package.
    SamePackage,
    /// Nothing nearer than the machine, or it is not known.
    Other,
}

/// No place has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no place `{name}`; the places are {}", names())]
pub struct UnknownPlace {
    /// What was given.
    pub name: String,
}

fn names() -> String {
    Place::ALL.map(Place::name).join(", ")
}

impl Place {
    /// All of them, the narrowest first.
    pub const ALL: [Self; 7] = [
        Self::SameCore,
        Self::SharedL1,
        Self::SharedL2,
        Self::SharedL3,
        Self::SameNuma,
        Self::SamePackage,
        Self::Other,
    ];

    /// The name that it has in files.
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
}

impl FromStr for Place {
    type Err = UnknownPlace;

    fn from_str(name: &str) -> Result<Self, UnknownPlace> {
        let found = Self::ALL.into_iter().find(|place| place.name() == name);
        found.ok_or_else(|| UnknownPlace { name: name.to_owned() })
    }
}

/// For people: `shared L2`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCore => "same core",
            Self::SharedL1 => "shared L1",
            Self::SharedL2 => "shared L2",
            Self::SharedL3 => "shared L3",
            Self::SameNuma => "same NUMA node",
            Self::SamePackage => "same package",
            Self::Other => "nothing shared but the machine",
        })
    }
}
