//! What goes wrong in a group.
#![forbid(unsafe_code)]

use lmt_core::endpoint::OperationError;

use crate::algorithms::Unsuitable;

/// Why a collective call ended without its result, or a group was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// This rank's arguments are wrong. The others are told, and the group goes on.
    #[error("{0}")]
    Arguments(String),
    /// Ranks call different things. All of them hear of it, and the group goes on.
    #[error(
        "rank {rank} calls {theirs}, and rank {own_rank} {ours}; all ranks of a group must call the same"
    )]
    Mismatch {
        /// Another rank.
        rank: u32,
        /// What it calls.
        theirs: String,
        /// This rank.
        own_rank: u32,
        /// What it calls.
        ours: String,
    },
    /// The algorithm cannot do this call. All ranks hear of it, and the group goes on.
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    /// A rank has died or closed its endpoint; the group is broken.
    #[error("rank {rank} has died or closed its endpoint; make a group of those that live")]
    Died {
        /// Which.
        rank: u32,
    },
    /// A rank could not go on; the group is broken.
    #[error("rank {rank} could not go on, and its own error says why; make a new group")]
    Failed {
        /// Which.
        rank: u32,
    },
    /// What this rank did for the call failed; the group is broken.
    #[error("{what} rank {rank}: {source}; make a new group")]
    Transfer {
        /// What it was.
        what: &'static str,
        /// With which rank.
        rank: u32,
        /// Why.
        source: OperationError,
    },
    /// The ranks' lengths of one block differ; the group is broken.
    #[error(
        "rank {rank} has {theirs_bytes} bytes for a block of which this rank has {ours_bytes}; both must have the same"
    )]
    Length {
        /// Which.
        rank: u32,
        /// What it has.
        theirs_bytes: u64,
        /// What this rank has.
        ours_bytes: u64,
    },
    /// The list of members is no group.
    #[error("{0}")]
    Members(String),
    /// A configuration file, or a variable, is wrong.
    #[error("{0}")]
    Configuration(String),
    /// The endpoint refused something.
    #[error(transparent)]
    Endpoint(#[from] OperationError),
}

/// Why a group is broken, as a word that all ranks see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// A rank has died.
    Died(u32),
    /// A rank gave up.
    Failed(u32),
}

impl Broken {
    /// Never 0.
    pub fn word(self) -> u64 {
        match self {
            Self::Died(rank) => 1 << 32 | u64::from(rank),
            Self::Failed(rank) => 2 << 32 | u64::from(rank),
        }
    }

    /// What a word other than 0 says; anything may stand there.
    pub fn read(word: u64, size: u32) -> Self {
        let rank = (word as u32).min(size - 1);
        if word >> 32 == 1 { Self::Died(rank) } else { Self::Failed(rank) }
    }
}

impl From<Broken> for GroupError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Died(rank) => Self::Died { rank },
            Broken::Failed(rank) => Self::Failed { rank },
        }
    }
}
