//! What a group would do, without one.
#![forbid(unsafe_code)]

use lmt_selector::configuration::Configuration;

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms;
use crate::call::{Blocks, Call, Domain};
use crate::choice::{Choice, Chooser};
use crate::copies::{self, Copies};
use crate::create::slot_bytes;
use crate::error::GroupError;

/// A call that is to be explained: one of the forms whose blocks have one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The operation.
    pub kind: Kind,
    /// Ranks of the group, at least 1.
    pub ranks: u32,
    /// The message of a broadcast, one rank's block, or the vector of a reduction, in
    /// bytes.
    pub bytes: u64,
    /// Whether all ranks may reach into each other's memory.
    pub single_copy: bool,
}

/// What such a call takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Who has spoken and why.
    pub reason: String,
    /// The rules that fit and cannot do the call, a sentence each.
    pub passed_over: Vec<String>,
    /// What each algorithm is predicted to take, in microseconds, the fastest first;
    /// nothing where no figures of the machine are known.
    pub predicted_us: Vec<(Algorithm, f64)>,
    /// What ranks copy out of and into each other's memory, for which a mechanism is
    /// chosen; nothing where all goes through slots or as messages.
    pub copies: Vec<Copies>,
}

/// What a group of ranks with this configuration chooses for a call that names no
/// algorithm. No process is started.
///
/// ```
/// use lmt_collectives::explain::{Question, explain};
/// use lmt_collectives::{Algorithm, Kind};
/// use lmt_core::selection::Source;
/// use lmt_selector::collectives::CollectiveRule;
/// use lmt_selector::configuration::Configuration;
///
/// let source = Source::File { path: "lmt.toml".into(), line: 3 };
/// let rule = CollectiveRule::new("bcast", "knomial:2", source);
/// let configuration = Configuration { collectives: vec![rule], ..Configuration::default() };
/// let question = Question { kind: Kind::Broadcast, ranks: 4, bytes: 1 << 20, single_copy: true };
/// let explanation = explain(&configuration, question)?;
/// assert_eq!(explanation.algorithm, Algorithm::Knomial(2));
/// assert_eq!(explanation.reason, "bcast by knomial:2 at lmt.toml:3");
/// # Ok::<(), lmt_collectives::GroupError>(())
/// ```
///
/// # Errors
/// A rule of the configuration names what is not there.
pub fn explain(configuration: &Configuration, question: Question) -> Result<Explanation, GroupError> {
    let mut chooser = Chooser::of(configuration)?;
    chooser.single_copy = question.single_copy;
    let call = call(question);
    let (choice, passed_over) = chooser.explain(&call, false);
    let Choice { algorithm, reason } = choice;
    Ok(Explanation {
        algorithm,
        reason: reason.into_owned(),
        passed_over,
        predicted_us: chooser.predictions(&call),
        copies: copies_of(&call, algorithm),
    })
}

/// The copies of the first ranks and the last; those between copy as their neighbours.
fn copies_of(call: &Call, algorithm: Algorithm) -> Vec<Copies> {
    let program = |rank| algorithms::program(&Call { rank, ..call.clone() }, algorithm).ok();
    let last = call.size - 1;
    let mut ranks = vec![0, last.min(1), last];
    ranks.dedup();
    let programs: Vec<_> = ranks.into_iter().filter_map(program).collect();
    let all =
        programs.iter().flat_map(copies::of_program).map(|(_, direction, bytes)| (direction, bytes, ()));
    copies::gathered(all).into_iter().map(|(copies, ())| copies).collect()
}

/// Rank 0's call; all ranks choose the same.
pub(crate) fn call(question: Question) -> Call {
    let Question { kind, ranks, bytes, .. } = question;
    let size = ranks.max(1);
    let all = bytes.saturating_mul(size.into());
    Call {
        kind,
        rank: 0,
        size,
        root: 0,
        bytes: if kind == Kind::ReduceScatter { all } else { bytes },
        blocks: Blocks::Equal(bytes),
        input_blocks: Blocks::Equal(bytes),
        in_place: false,
        element_bytes: 1,
        domains: (0..size).map(|_| Domain::ALL).collect(),
        slot_bytes: slot_bytes(size),
    }
}
