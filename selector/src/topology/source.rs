//! What describes the machine: the machine itself, or one of hwloc's variables.

use std::env;
use std::fmt;
use std::path::PathBuf;

/// What described a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The running system.
    ThisSystem,
    /// A variable of hwloc's.
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// [`super::Machine::synthetic`].
    Synthetic(String),
    /// [`super::Machine::from_xml`].
    Xml(PathBuf),
}

impl Source {
    /// The variable of hwloc's that gave the machine, if one did.
    pub fn variable(&self) -> Option<&'static str> {
        match self {
            Self::Variable { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The variable that hwloc is going to obey, in hwloc's order
    /// (hwloc_topology_load: the first that is set). When `HWLOC_COMPONENTS`
    /// is, it alone says which of the others count.
    pub(super) fn of_environment() -> Self {
        let order =
            ["HWLOC_COMPONENTS", "HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE"];
        let set = |name: &'static str| {
            let value = env::var_os(name)?.to_string_lossy().into_owned();
            Some(Self::Variable { name, value })
        };
        order.into_iter().find_map(set).unwrap_or(Self::ThisSystem)
    }
}

/// As an object of a sentence: "this machine".
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisSystem => f.write_str("this machine"),
            Self::Variable { name, value } => write!(f, "the machine of {name}='{value}'"),
            Self::Synthetic(description) => write!(f, "the synthetic machine '{description}'"),
            Self::Xml(path) => write!(f, "the machine of '{}'", path.display()),
        }
    }
}
