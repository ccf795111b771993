//! Rules of collective operations: which algorithm does them.
//!
//! Operations and algorithms are texts here: whoever carries them out knows their
//! names, and says so by [`Known::collectives`](crate::config::Known::collectives).

use std::fmt;

use lmt_core::selection::Source;

use crate::size::written;

/// What stands for all operations that an algorithm can do.
pub const ANY_OPERATION: &str = "*";

/// One rule. What is absent holds for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectiveRule {
    /// The operation, or [`ANY_OPERATION`].
    pub operation: String,
    /// What it is done by.
    pub algorithm: String,
    /// Calls of more than this; the bound itself is not in it. The message of a
    /// broadcast, one rank's block, or the vector of a reduction, in bytes.
    pub above: Option<u64>,
    /// Calls of up to this, which is in it, in bytes.
    pub up_to: Option<u64>,
    /// In groups of at least so many ranks.
    pub min_ranks: Option<u32>,
    /// In groups of at most so many ranks.
    pub max_ranks: Option<u32>,
    /// Where it stands.
    pub source: Source,
}

impl CollectiveRule {
    /// One without conditions.
    pub fn new(operation: &str, algorithm: &str, source: Source) -> Self {
        Self {
            operation: operation.to_owned(),
            algorithm: algorithm.to_owned(),
            above: None,
            up_to: None,
            min_ranks: None,
            max_ranks: None,
            source,
        }
    }

    /// Whether it asks for lengths.
    pub const fn has_bounds(&self) -> bool {
        self.above.is_some() || self.up_to.is_some()
    }

    /// Whether it fits a call of so many bytes in a group of so many ranks, whatever
    /// the operation.
    ///
    /// ```
    /// use lmt_core::selection::Source;
    /// use lmt_selector::collectives::CollectiveRule;
    ///
    /// let rule = CollectiveRule::new("spread", "tree:4", Source::Call);
    /// let rule = CollectiveRule { above: Some(4096), up_to: Some(65536), ..rule };
    /// assert!(!rule.fits(4096, 8) && rule.fits(4097, 8) && rule.fits(65536, 8) && !rule.fits(65537, 8));
    /// ```
    pub fn fits(&self, bytes: u64, ranks: u32) -> bool {
        self.above.is_none_or(|above| bytes > above)
            && self.up_to.is_none_or(|up_to| bytes <= up_to)
            && self.min_ranks.is_none_or(|least| ranks >= least)
            && self.max_ranks.is_none_or(|most| ranks <= most)
    }
}

/// In one line: `spread above 64 KiB on 2 ranks: tree:4`.
impl fmt::Display for CollectiveRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        if let Some(above) = self.above {
            write!(f, " above {}", written(above))?;
        }
        if let Some(up_to) = self.up_to {
            write!(f, " up to {}", written(up_to))?;
        }
        match (self.min_ranks, self.max_ranks) {
            (None, None) => {}
            (Some(least), Some(most)) if least == most => write!(f, " on {least} ranks")?,
            (Some(least), Some(most)) => write!(f, " on {least} to {most} ranks")?,
            (Some(least), None) => write!(f, " on {least} ranks or more")?,
            (None, Some(most)) => write!(f, " on {most} ranks or fewer")?,
        }
        write!(f, ": {}", self.algorithm)
    }
}

/// What of a rule means nothing to whoever carries operations out: one sentence, with what
/// would be right behind a semicolon, and without the rule's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misnamed {
    /// There is no such operation.
    Operation(String),
    /// There is no such algorithm, or it does not do the operation.
    Algorithm(String),
    /// The operation has no bytes, and the rule asks for lengths.
    Lengths(String),
}

impl Misnamed {
    /// The sentence.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Operation(sentence) | Self::Algorithm(sentence) | Self::Lengths(sentence) => sentence,
        }
    }

    /// What is wrong, and what would be right.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.sentence().split_once("; ").unwrap_or((self.sentence(), "docs/collectives.md has the names"))
    }
}

/// Whether whoever carries operations out can follow a rule.
pub type CheckRule = fn(rule: &CollectiveRule) -> Result<(), Misnamed>;
