//! Rules: which ways messages of some lengths, between some places, are to try.

use std::fmt;
use std::path::PathBuf;

use lmt_core::selection::{PathName, Reuse, Source, Warmth};

use crate::topology::Place;

/// A bound of a rule's lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Bound {
    /// So many bytes.
    Bytes(u64),
    /// What DMAmin is for the two processes (nemesis-lmt, section 3.5).
    DmaMin,
}

/// What a rule says is to be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Take {
    /// Inbox cells. Such a rule begins at 0, and ends at 1 MiB at most.
    Eager,
    /// These ways, in order; what else works follows them in its usual order.
    Ways(Vec<PathName>),
}

/// How fast the kernel copies between two processes where it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SingleCopy {
    /// In at most [`SingleCopy::MAX_FAST_RATIO`] times the time of a plain copy.
    Fast,
    /// More slowly, or not at all, or nobody can say.
    Slow,
}

impl SingleCopy {
    /// Two copies through shared memory cost each core a plain copy of the whole
    /// message, a single copy by both ends costs it half a single copy: at twice a
    /// plain copy's time they cost cores the same, and the single copy moves each
    /// line between the caches once less. The bound stands between the two machines that
    /// were measured: on a virtual machine of Intel's the look found 1.9 to 2.1; on one of
    /// AMD's, where two copies were faster by far, a message of 1 MiB took four times a
    /// plain copy's time by a single copy.
    pub const MAX_FAST_RATIO: f32 = 3.0;

    /// What it is where a single copy takes so many times a plain copy's time.
    pub fn of(times_plain_copy: Option<f32>) -> Self {
        match times_plain_copy {
            Some(times) if times <= Self::MAX_FAST_RATIO => Self::Fast,
            _ => Self::Slow,
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }

    /// What a file says by this word, if it is one of the two.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Fast, Self::Slow].into_iter().find(|speed| speed.name() == name)
    }
}

/// One rule. What is absent holds for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Messages longer than this; the bound itself is not in it.
    pub above: Option<Bound>,
    /// Messages up to this length, which is in it.
    pub up_to: Option<Bound>,
    /// Between processes that share no more and no less than one of these; any
    /// place when empty.
    pub places: Vec<Place>,
    /// Messages of one segment at the sender, or of several.
    pub contiguous: Option<bool>,
    /// What the caller told of the sender's cache.
    pub warmth: Option<Warmth>,
    /// What the caller told of the buffer's future.
    pub reuse: Option<Reuse>,
    /// When this endpoint knows at least so many processes, itself among them.
    pub min_processes: Option<u32>,
    /// How fast the kernel's copies between the two processes are.
    pub single_copy: Option<SingleCopy>,
    /// What is taken.
    pub take: Take,
    /// How many messages of one process may be read at once under this rule.
    pub max_readers: Option<u32>,
    /// Where it stands in its file, from 1.
    pub line: u32,
}

/// The lengths for which a mechanism may be taken by any rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MechanismRange {
    /// The mechanism or family.
    pub mechanism: String,
    /// Longer than this.
    pub above: Option<Bound>,
    /// Up to this.
    pub up_to: Option<Bound>,
    /// Where it stands in its file, from 1.
    pub line: u32,
}

/// Whose rules they are. The earlier ones outrank the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Authority {
    /// The user's file.
    User,
    /// A calibration of this machine.
    Calibration,
    /// What is built in.
    Default,
}

/// The rules of one file, in its order: the first that fits a message speaks.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Whose they are.
    pub authority: Authority,
    /// The file; for the built-in ones the name under which they are shown.
    pub path: PathBuf,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The lengths for which mechanisms may be taken.
    pub ranges: Vec<MechanismRange>,
    /// What was measured, in a calibration.
    pub figures: Vec<Figure>,
}

impl Layer {
    /// What stands on a line of its file, as who set something.
    pub fn source(&self, line: u32) -> Source {
        let path = self.path.display().to_string();
        match self.authority {
            Authority::User => Source::File { path, line },
            Authority::Calibration => Source::Calibration { path, line },
            Authority::Default => Source::Default { line: Some(line) },
        }
    }
}

/// One median that a calibration has measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What the two processes shared.
    pub place: Place,
    /// How many pairs were at it at once.
    pub pairs: u32,
    /// Whether the buffers were out of the caches.
    pub off_cache: bool,
    /// The message's length.
    pub bytes: u64,
    /// By which way: `eager`, or a mechanism and who copied.
    pub way: String,
    /// The time of one transfer, in nanoseconds.
    pub median_ns: u64,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DmaMin => f.write_str("DMAmin"),
            Self::Bytes(bytes) => f.write_str(&crate::size::written(*bytes)),
        }
    }
}
