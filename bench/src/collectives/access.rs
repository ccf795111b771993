//! The ways in which processes get at each other's memory at once (CLUSTER 2017,
//! figures 2, 3 and 6).
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// A pattern of concurrent accesses, without any protocol around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Many read from one process.
    OneToAll,
    /// Many write to one process.
    AllToOne,
    /// Each has a process of its own to read from or to write to.
    AllToAll,
}

/// Whose memory is read or written, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The same bytes of one process for all.
    Same,
    /// Other bytes of one process for each.
    Different,
    /// The memory of another process for each.
    Pairs,
}

impl Target {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Pairs => "pairs",
        }
    }
}

/// One case of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Where.
    pub target: Target,
    /// Whether they write; else they read.
    pub writes: bool,
    /// How many do so at once.
    pub at_once: u32,
}

impl Reach {
    /// The rank whose memory an active rank gets at; active are the ranks from 1 on.
    pub const fn owner(self, rank: u32) -> u32 {
        match self.target {
            Target::Same | Target::Different => 0,
            // In a ring; one that is alone takes the idle rank's memory.
            Target::Pairs if self.at_once == 1 => 0,
            Target::Pairs => rank % self.at_once + 1,
        }
    }

    /// Which of the blocks in the owner's memory.
    pub const fn block(self, rank: u32) -> u32 {
        match self.target {
            Target::Different => rank - 1,
            Target::Same | Target::Pairs => 0,
        }
    }

    /// Its name in tables.
    pub fn name(self) -> String {
        let what = if self.writes { "write" } else { "read" };
        format!("{} {what} {}", self.target.name(), self.at_once)
    }
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OneToAll, Self::AllToOne, Self::AllToAll];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneToAll => "one-to-all",
            Self::AllToOne => "all-to-one",
            Self::AllToAll => "all-to-all",
        }
    }

    /// What it does and what its figures are.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OneToAll => {
                "1, 2, 4 ... -n processes at once read from one process, the same or different bytes, and as many \
                 from a process each. MB/s: of all together; relative: by that of one reader alone. Sizes by \
                 default: 4KiB..4MiB."
            }
            Self::AllToOne => "The same with writers.",
            Self::AllToAll => "Readers and writers that have a process each.",
        }
    }

    /// The cases, the one alone first, which all others are compared with. Up to
    /// `most` take part.
    pub fn cases(self, most: u32) -> Vec<Reach> {
        let mut numbers: Vec<u32> =
            (0..u32::BITS).map(|power| 1 << power).take_while(|&number| number < most).collect();
        numbers.push(most);
        let of = |target, writes, numbers: &[u32]| -> Vec<Reach> {
            numbers.iter().map(|&at_once| Reach { target, writes, at_once }).collect()
        };
        // Alone, where makes no difference.
        let several: Vec<u32> = numbers.iter().copied().filter(|&number| number > 1).collect();
        match self {
            Self::OneToAll | Self::AllToOne => {
                let writes = self == Self::AllToOne;
                let mut cases = of(Target::Same, writes, &numbers);
                cases.extend(of(Target::Different, writes, &several));
                cases.extend(of(Target::Pairs, writes, &several));
                cases
            }
            Self::AllToAll => {
                let mut cases = of(Target::Pairs, false, &numbers);
                cases.extend(of(Target::Pairs, true, &numbers));
                cases
            }
        }
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
