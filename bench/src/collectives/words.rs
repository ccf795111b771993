//! What the command and its ranks say to each other.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::error::BenchError;
use crate::processes::Word;

/// What a rank is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// Its number.
    pub rank: u32,
    /// The command's process.
    pub parent: i32,
    /// The group's id: 32 hexadecimal digits.
    pub group: String,
    /// What all of them do.
    pub plan: Plan,
}

/// What all ranks do together next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// A turn.
    Turn {
        /// Whose, by its place in the plan.
        contender: usize,
        /// The size.
        bytes: u64,
        /// Iterations inside the time.
        iterations: u64,
        /// Iterations before it.
        warm_up: u64,
    },
    /// A call of which every byte is checked.
    Verify {
        /// Whose.
        contender: usize,
        /// The size.
        bytes: u64,
    },
    /// Which algorithm the library chooses for this size.
    Explain {
        /// The size.
        bytes: u64,
    },
}

/// What a rank answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It knows the others.
    Ready,
    /// What this rank's part took.
    Timed {
        /// In the whole turn.
        seconds: f64,
    },
    /// The algorithm cannot do this call: why.
    Unsuitable(String),
    /// All bytes are what they should be.
    Verified,
    /// What the library chooses.
    Chosen {
        /// The algorithm.
        algorithm: String,
        /// Why.
        reason: String,
    },
    /// It cannot go on; one sentence.
    Failed(String),
}

impl Word for Answer {
    fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(sentence) => Some(sentence),
            _ => None,
        }
    }
}

/// What a turn of one rank comes to.
pub(super) type Outcome = Result<Answer, BenchError>;
