//! Which algorithms users and calibrations name for collective operations.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use lmt_selector::collectives::{ANY_OPERATION, CollectiveRule, Misnamed};

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{goes_round, has_too_many_pieces, is_swap};
use crate::call::{Call, bytes_of};
use crate::error::GroupError;

/// The rules of a configuration, by authority, with their names understood.
#[derive(Clone, Debug)]
pub(crate) struct Rules(Arc<[Rule]>);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The operation; none where it is any.
    kind: Option<Kind>,
    pub algorithm: Algorithm,
    written: CollectiveRule,
}

/// What beside a call itself decides which rules fit it; the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Situation {
    /// Whether it is one of the forms with lists.
    pub is_listed: bool,
    /// Whether what each rank posts is known to fit into its slot.
    pub fits_slot: bool,
    /// Whether it goes through slots where no rule speaks.
    pub suits_slots: bool,
    /// Whether all ranks may reach into each other's memory.
    pub single_copy: bool,
}

/// Why a rule that fits cannot be followed. All ranks come to the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RuleMismatch {
    Denied,
    Slot,
    Ring {
        size: u32,
    },
    Lists,
    /// Not two ranks, or not short blocks of one length.
    Swap,
    Pieces,
}

impl Default for Rules {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl Rules {
    /// Reads the names.
    ///
    /// # Errors
    /// A name means nothing, or the algorithm does not do the operation; the sentence
    /// begins with the rule's place.
    pub fn read(rules: &[CollectiveRule]) -> Result<Self, GroupError> {
        let read = |written: &CollectiveRule| {
            let (kind, algorithm) = checked(written).map_err(|misnamed| {
                GroupError::Configuration(format!("{}: {}", written.source, misnamed.sentence()))
            })?;
            Ok(Rule { kind, algorithm, written: written.clone() })
        };
        rules.iter().map(read).collect::<Result<Arc<[Rule]>, _>>().map(Self)
    }

    /// The first rule that fits a call and can do it.
    pub fn ruled(&self, call: &Call, situation: Situation) -> Option<&Rule> {
        let mut fitting = self.0.iter().filter(|rule| rule.fits(call, situation));
        fitting.find(|rule| unfit(rule.algorithm, call, situation).is_none())
    }

    /// A sentence on each rule that fits and is passed over before that one.
    pub fn passed_over(&self, call: &Call, situation: Situation) -> Vec<String> {
        let fitting = self.0.iter().filter(|rule| rule.fits(call, situation));
        let unfit = fitting.map_while(|rule| {
            let why = unfit(rule.algorithm, call, situation)?;
            Some(format!("{rule} is passed over: {why}"))
        });
        unfit.collect()
    }
}

impl Rule {
    /// Of the forms with lists not all ranks know the lengths, so no rule with bounds
    /// fits them. What had better go through slots is left to them where a rule has no
    /// bounds.
    fn fits(&self, call: &Call, situation: Situation) -> bool {
        let is_meant = match self.kind {
            Some(kind) => kind == call.kind,
            None => self.algorithm.does(call.kind),
        };
        is_meant
            && !(if self.written.has_bounds() { situation.is_listed } else { situation.suits_slots })
            && self.written.fits(bytes_of(call), call.size)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CollectiveRule { operation, source, .. } = &self.written;
        write!(f, "{operation} by {} at {source}", self.algorithm)
    }
}

/// Why an algorithm cannot do a call of an operation that it does.
fn unfit(algorithm: Algorithm, call: &Call, situation: Situation) -> Option<RuleMismatch> {
    let Situation { is_listed, fits_slot, single_copy, .. } = situation;
    if algorithm.needs_single_copy() && !single_copy {
        return Some(RuleMismatch::Denied);
    }
    match algorithm {
        // Of listed blocks alltoall sends by messages what does not fit.
        Algorithm::Slots if !(fits_slot || is_listed && call.kind == Kind::Alltoall) => {
            Some(RuleMismatch::Slot)
        }
        Algorithm::RingNeighbor(j) if !goes_round(call.size, j) => {
            Some(RuleMismatch::Ring { size: call.size })
        }
        Algorithm::Bruck | Algorithm::BruckMessages if is_listed && call.kind == Kind::Alltoall => {
            Some(RuleMismatch::Lists)
        }
        Algorithm::Swap if !is_swap(call) => Some(RuleMismatch::Swap),
        Algorithm::Pipelined(_) if is_listed => Some(RuleMismatch::Lists),
        Algorithm::Pipelined(kib) if has_too_many_pieces(call, kib) => Some(RuleMismatch::Pieces),
        _ => None,
    }
}

impl fmt::Display for RuleMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("some ranks may not reach into others' memory"),
            Self::Slot => {
                f.write_str("what a rank posts does not fit into its slot, or not all know that it does")
            }
            Self::Ring { size } => {
                write!(f, "its number and the {size} ranks have a common divisor")
            }
            Self::Swap => f.write_str("it is for two ranks and blocks of one length up to 192 KiB"),
            Self::Pieces => f.write_str("it would be of too many pieces"),
            Self::Lists => f.write_str("it needs blocks of one length"),
        }
    }
}

/// Whether a group can follow a rule of a file or variable, for
/// [`lmt_selector::config::Known::with_collectives`].
///
/// ```
/// use lmt_collectives::check_rule;
/// use lmt_core::selection::Source;
/// use lmt_selector::collectives::CollectiveRule;
///
/// let rule = |operation, algorithm| CollectiveRule::new(operation, algorithm, Source::Call);
/// assert!(check_rule(&rule("bcast", "knomial:4")).is_ok());
/// assert!(check_rule(&rule("*", "messages")).is_ok());
/// let misnamed = check_rule(&rule("bcast", "pairwise")).unwrap_err();
/// assert!(misnamed.sentence().starts_with("pairwise does not do bcast; it is done by slots, messages"));
/// let bounded = CollectiveRule { up_to: Some(8), ..rule("barrier", "slots") };
/// assert!(check_rule(&bounded).is_err());
/// ```
///
/// # Errors
/// A name means nothing, the algorithm does not do the operation, or the rule has bounds
/// of length for a barrier.
pub fn check_rule(rule: &CollectiveRule) -> Result<(), Misnamed> {
    checked(rule).map(drop)
}

/// What a rule's names mean.
fn checked(rule: &CollectiveRule) -> Result<(Option<Kind>, Algorithm), Misnamed> {
    let (kind, algorithm) = named(&rule.operation, &rule.algorithm)?;
    if kind == Some(Kind::Barrier) && rule.has_bounds() {
        let sentence = "a barrier has no bytes; leave `above` and `up_to` out";
        return Err(Misnamed::Lengths(sentence.to_owned()));
    }
    Ok((kind, algorithm))
}

/// What the names mean.
fn named(operation: &str, algorithm: &str) -> Result<(Option<Kind>, Algorithm), Misnamed> {
    let kind = match operation {
        ANY_OPERATION => None,
        name => Some(Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::name).join(", ");
            Misnamed::Operation(format!(
                "there is no operation {name}; there are {names}, and * for all that an algorithm can do"
            ))
        })?),
    };
    let able = |kind: Kind| {
        let names: Vec<String> = Algorithm::of(kind).map(|one| one.to_string()).collect();
        format!("it is done by {}", names.join(", "))
    };
    match (algorithm.parse::<Algorithm>(), kind) {
        (Ok(algorithm), None) => Ok((None, algorithm)),
        (Ok(algorithm), Some(kind)) if algorithm.does(kind) => Ok((Some(kind), algorithm)),
        (Ok(algorithm), Some(kind)) => {
            Err(Misnamed::Algorithm(format!("{algorithm} does not do {kind}; {}", able(kind))))
        }
        (Err(_), Some(kind)) => Err(Misnamed::Algorithm(format!(
            "there is no algorithm {algorithm} of {kind}; {}, with a number of at least 1 behind a colon where one stands here",
            able(kind)
        ))),
        (Err(unknown), None) => Err(Misnamed::Algorithm(unknown.to_string())),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
