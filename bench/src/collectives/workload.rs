//! What `lmt bench` can be asked to measure.

use std::fmt;
use std::str::FromStr;

use lmt_collectives::Kind;
use serde::{Deserialize, Serialize};

use super::access::Access;
use crate::patterns::{DEFINITIONS, Pattern};

/// A benchmark by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Messages.
    Pattern(Pattern),
    /// A collective operation.
    Collective(Kind),
    /// Many processes at the memory of one, or of each other.
    Contention(Access),
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        // The collective operation comes before the pattern of the same name.
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) {
            return Ok(Self::Collective(kind));
        }
        if let Some(access) = Access::ALL.into_iter().find(|access| access.name() == name) {
            return Ok(Self::Contention(access));
        }
        if let Some(found) = DEFINITIONS.iter().find(|definition| definition.name == name) {
            return Ok(Self::Pattern(found.pattern));
        }
        let mut known: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.name).collect();
        known.extend(Access::ALL.map(Access::name));
        known.extend(Kind::ALL.map(Kind::name).into_iter().filter(|name| *name != Pattern::Alltoall.name()));
        Err(crate::nearest::unknown("pattern", name, &known))
    }
}

/// What the ranks of one run do, as it is told to them by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Work {
    /// A collective operation.
    Collective(Kind),
    /// Accesses to other processes' memory.
    Contention(Access),
}

impl Work {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collective(kind) => kind.name(),
            Self::Contention(access) => access.name(),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Work> for String {
    fn from(work: Work) -> Self {
        work.name().to_owned()
    }
}

impl TryFrom<String> for Work {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.parse()? {
            Workload::Collective(kind) => Ok(Self::Collective(kind)),
            Workload::Contention(access) => Ok(Self::Contention(access)),
            Workload::Pattern(_) => Err(format!("{name} is a pattern of messages")),
        }
    }
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
