//! Which algorithm a call takes where none is named.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use lmt_selector::configuration::Configuration;
use lmt_selector::contention::Parameters;

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{MOST_SWAPPED_BYTES, Unsuitable, has_too_many_pieces, is_swap, piece_bytes};
use crate::call::{Blocks, Call, bytes_of};
use crate::error::GroupError;
use crate::model;
use crate::rules::{Rules, Situation};

/// What a group chooses by; the same on all its ranks.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Whether every rank may reach into every other's memory.
    pub single_copy: bool,
    /// Whether all ranks share a cache, as far as is known.
    pub one_cache: bool,
    /// What a calibration of this machine has measured, if there is one.
    figures: Option<Arc<Parameters>>,
    /// What users and a calibration name.
    rules: Rules,
    /// What was chosen for the latest calls, by what it depends on.
    kept: VecDeque<((Kind, u32, bool, u64), Choice)>,
}

impl Default for Chooser {
    fn default() -> Self {
        let (figures, rules, kept) = (None, Rules::default(), VecDeque::new());
        Self { single_copy: false, one_cache: true, figures, rules, kept }
    }
}

/// What of a call and its group its lengths do not say.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Its blocks are listed: not all ranks know the lengths.
    in_lists: bool,
    one_cache: bool,
}

/// So many choices are kept; working one out takes microseconds.
const KEPT: usize = 16;

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub algorithm: Algorithm,
    /// Why, in words.
    pub reason: Cow<'static, str>,
}

impl Choice {
    const fn new(algorithm: Algorithm, reason: &'static str) -> Self {
        Self { algorithm, reason: Cow::Borrowed(reason) }
    }
}

impl Chooser {
    /// By this machine's figures, if they are known.
    pub fn new(figures: Option<Parameters>) -> Self {
        Self { figures: figures.map(Arc::new), ..Self::default() }
    }

    /// By a configuration.
    ///
    /// # Errors
    /// A rule cannot be read, or names what is not there.
    pub fn of(configuration: &Configuration) -> Result<Self, GroupError> {
        if let Some(failure) = &configuration.collective_failure {
            return Err(GroupError::Configuration(failure.to_string()));
        }
        let rules = Rules::read(&configuration.collectives)?;
        Ok(Self::new(configuration.contention.clone()).with_rules(rules))
    }

    /// With rules, which come before the figures.
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Before the ranks have told each other what they may do.
    pub fn before_entry_barrier(mut self) -> Self {
        self.single_copy = false;
        self
    }

    /// Whether an algorithm can be run in this group at all.
    ///
    /// # Errors
    /// The sentence says why not.
    pub fn check(&self, algorithm: Algorithm, kind: Kind) -> Result<(), Unsuitable> {
        if !algorithm.does(kind) {
            return Err(Unsuitable::kind(algorithm, kind));
        }
        if !algorithm.needs_single_copy() || self.single_copy {
            return Ok(());
        }
        let able = Algorithm::of(kind).filter(|one| !one.needs_single_copy());
        let able: Vec<String> = able.map(|one| one.to_string()).collect();
        let reason = format!("some ranks may not reach into others' memory; {} need not", able.join(", "));
        Err(Unsuitable { algorithm, reason })
    }

    /// The algorithm for a call, and why. All ranks must come to the same: only what
    /// they all know counts.
    pub fn choose(&mut self, call: &Call, is_listed: bool) -> Choice {
        if call.kind == Kind::Barrier {
            return Choice::new(Algorithm::Slots, "the meeting that every call begins with is a barrier");
        }
        let situation = self.situation(call, is_listed);
        if let Some(rule) = self.rules.ruled(call, situation) {
            return Choice { algorithm: rule.algorithm, reason: Cow::Owned(rule.to_string()) };
        }
        if situation.suits_slots {
            return match is_swap(call) {
                true => {
                    Choice::new(Algorithm::Swap, "two ranks hand each other what is short in shared memory")
                }
                false => Choice::new(
                    Algorithm::Slots,
                    "what each rank posts is short and goes through its slot of shared memory",
                ),
            };
        }
        // Of the forms with lists not all ranks know the lengths; they are taken to be long.
        let bytes = if is_listed { LONG_BYTES } else { bytes_of(call) };
        let form = Form { in_lists: is_listed, one_cache: self.one_cache };
        if !self.single_copy {
            let algorithm = through_slots(call, bytes, form).unwrap_or(Algorithm::Messages);
            return Choice::new(algorithm, "some ranks may not reach into others' memory");
        }
        let Some(figures) = self.figures.clone() else {
            return Choice::new(
                native(call, bytes, form),
                "the built-in choice for so many ranks; `lmt tune` would measure",
            );
        };
        let key = (call.kind, call.size, is_listed, bytes);
        if let Some((_, choice)) = self.kept.iter().find(|(kept, _)| *kept == key) {
            return choice.clone();
        }
        let choice = by_model(call, bytes, form, &figures);
        self.kept.truncate(KEPT - 1);
        self.kept.push_front((key, choice.clone()));
        choice
    }
}

impl Chooser {
    /// The algorithm for a call and why, and a sentence on each rule that is passed over.
    pub fn explain(&mut self, call: &Call, is_listed: bool) -> (Choice, Vec<String>) {
        let choice = self.choose(call, is_listed);
        let passed_over = match call.kind {
            Kind::Barrier => Vec::new(),
            _ => self.rules.passed_over(call, self.situation(call, is_listed)),
        };
        (choice, passed_over)
    }

    /// What rules are asked with.
    pub(crate) fn situation(&self, call: &Call, is_listed: bool) -> Situation {
        let fits_slot = !is_listed && max_posted(call) <= call.slot_bytes;
        let suits_slots = !is_listed && suits_slots(call);
        Situation { is_listed, fits_slot, suits_slots, single_copy: self.single_copy }
    }

    /// What each algorithm of an operation is predicted to take, in microseconds, the
    /// fastest first; nothing without figures.
    pub fn predictions(&self, call: &Call) -> Vec<(Algorithm, f64)> {
        let Some(figures) = &self.figures else { return Vec::new() };
        let model = model_of(call, figures);
        let best = |one| model.best_of(call.kind, one, call.size, bytes_of(call));
        let mut times: Vec<(Algorithm, f64)> = candidates(call, false).filter_map(best).collect();
        times.sort_by(|one, other| one.1.total_cmp(&other.1));
        times
    }
}

const LONG_BYTES: u64 = 1 << 20;

/// What the model chooses among.
fn candidates(call: &Call, in_lists: bool) -> impl Iterator<Item = Algorithm> {
    let can = move |one: &Algorithm| match one {
        Algorithm::Slots => false,
        Algorithm::Bruck | Algorithm::BruckMessages => !in_lists || call.kind != Kind::Alltoall,
        Algorithm::Swap => !in_lists && is_swap(call),
        Algorithm::Pipelined(kib) => !in_lists && !has_too_many_pieces(call, *kib),
        _ => true,
    };
    Algorithm::of(call.kind).filter(can)
}

/// The model of a group on this machine.
fn model_of<'p>(call: &Call, figures: &'p Parameters) -> model::Model<'p> {
    let model = model::Model::new(figures, model::Counting::Readers);
    model.with_hierarchy(model::Hierarchy::of(&call.domains))
}

fn by_model(call: &Call, bytes: u64, form: Form, figures: &Parameters) -> Choice {
    let candidates: Vec<Algorithm> = candidates(call, form.in_lists).collect();
    match model_of(call, figures).choose(call.kind, call.size, bytes, &candidates) {
        Some(choice) => Choice {
            algorithm: choice.algorithm,
            reason: Cow::Owned(format!("by the model with this machine's figures, {}", choice.reason)),
        },
        None => Choice::new(native(call, bytes, form), "the built-in choice, since the model predicts none"),
    }
}

/// The most that a rank posts if the call goes through slots.
fn max_posted(call: &Call) -> u64 {
    match (call.kind, &call.blocks) {
        (Kind::Scatter, _) => call.bytes.saturating_mul(u64::from(call.size - 1)),
        (Kind::Alltoall, Blocks::Equal(bytes)) => bytes.saturating_mul(u64::from(call.size - 1)),
        _ => call.bytes,
    }
}

/// Of two ranks, up to so many bytes go through slots whole.
const SLOT_OF_TWO_BYTES: u64 = 8 << 10;
/// The same where each rank would combine what it takes anyway.
const COMBINED_SLOT_OF_TWO_BYTES: u64 = 16 << 10;
/// Of more ranks, what all of them post.
const SLOTS_OF_ALL_BYTES: u64 = 512 << 10;
/// Up to so many bytes a message costs less than what a single copy begins with.
const MESSAGE_BYTES: u64 = 128 << 10;

/// Whether a call is so short that it goes through slots, whatever a rule says that
/// names no lengths.
fn suits_slots(call: &Call) -> bool {
    let most = match (call.size, call.kind.combines()) {
        (1 | 2, false) => SLOT_OF_TWO_BYTES,
        (1 | 2, true) => COMBINED_SLOT_OF_TWO_BYTES,
        (ranks, _) => (SLOTS_OF_ALL_BYTES / u64::from(ranks)).clamp(4 << 10, 128 << 10),
    };
    max_posted(call) <= call.slot_bytes.min(most)
}

/// As measured on two CPUs that share a cache, with 2 to 8 ranks
/// (docs/performance.md); `lmt tune` measures the machine at hand.
fn native(call: &Call, bytes: u64, form: Form) -> Algorithm {
    let (two, short) = (call.size <= 2, bytes <= MESSAGE_BYTES);
    if let Some(algorithm) = through_slots(call, bytes, form) {
        return algorithm;
    }
    match call.kind {
        Kind::Barrier => Algorithm::Slots,
        // Each of two copies one half.
        Kind::Broadcast if two => Algorithm::ScatterAllgather,
        // Both ends copy a message, and only one what is got or put.
        Kind::Scatter | Kind::Gather | Kind::Allgather | Kind::Alltoall if two => Algorithm::Messages,
        Kind::Alltoall if short => Algorithm::Messages,
        Kind::Broadcast => Algorithm::Knomial(4),
        Kind::Scatter => Algorithm::ThrottledRead(4),
        Kind::Gather => Algorithm::ThrottledWrite(4),
        Kind::Allgather => Algorithm::RingSourceRead,
        Kind::Alltoall => Algorithm::Pairwise,
        Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter => Algorithm::Messages,
        Kind::Scan | Kind::Exscan if two && short => Algorithm::Messages,
        Kind::Scan | Kind::Exscan => Algorithm::Chain(64),
    }
}

/// Up to so many bytes of a block two copies by the processor, through slots that a
/// cache holds, cost less than a single copy, whose pages the kernel pins.
pub(crate) const CACHED_BYTES: u64 = 4 << 20;
/// Of two ranks that both send and receive, more than so much is first posted whole:
/// what was just written moves more slowly than what has left its writer's own cache.
const OVERLAPPED_BYTES: u64 = 512 << 10;

/// Between two ranks, up to so many bytes go in pieces so short that the first is there
/// soon; of more there are more pieces, each of which costs a look.
const SHORT_PIECES_BYTES: u64 = 512 << 10;

/// Of many ranks each has little of another's slot for itself; in pieces shorter than this
/// what all have for each other takes longer than single copies do.
const MIN_PIECE_BYTES: u64 = 32 << 10;

/// Up to so many bytes for each rank all of them are posted at once; of more the first are
/// taken while the last are posted.
const ROOTED_BYTES: u64 = 128 << 10;
/// The same among more ranks than [`ROOTED_RANKS`].
const ROOTED_OF_MANY_BYTES: u64 = 64 << 10;
/// Among so many ranks a root copies the bytes of all itself in less time than they take
/// for single copies, which wait for each other; among more, single copies are made by many.
const ROOTED_RANKS: u32 = 8;

/// How a call goes through slots, if it had better do so.
fn through_slots(call: &Call, bytes: u64, form: Form) -> Option<Algorithm> {
    if call.kind.combines() || form.in_lists {
        return None;
    }
    let fits = max_posted(call) <= call.slot_bytes;
    let is_cached = bytes <= CACHED_BYTES;
    match (call.kind, call.size) {
        (Kind::Broadcast | Kind::Scatter | Kind::Gather, 0..=2) => {
            is_cached.then_some(Algorithm::Pipelined(if bytes <= SHORT_PIECES_BYTES { 32 } else { 64 }))
        }
        (Kind::Allgather | Kind::Alltoall, 0..=2) => match bytes {
            0..=MOST_SWAPPED_BYTES if call.size == 2 => Some(Algorithm::Swap),
            0..=OVERLAPPED_BYTES => Some(Algorithm::Pipelined(128)),
            _ => fits.then_some(Algorithm::Slots),
        },
        // What one has written into a cache others take from memory where they have another.
        _ if !form.one_cache => None,
        (Kind::Broadcast, _) => is_cached.then_some(Algorithm::Pipelined(64)),
        (Kind::Alltoall, _) if fits => Some(Algorithm::Pipelined(64)),
        (Kind::Alltoall, _) if is_cached => long_pieces(call),
        (Kind::Alltoall, _) => None,
        (Kind::Allgather, _) if is_cached && !fits => {
            Some(Algorithm::Pipelined(256)).filter(|_| !has_too_many_pieces(call, 256))
        }
        (Kind::Scatter | Kind::Gather, ..=ROOTED_RANKS) => match bytes {
            0..=ROOTED_BYTES if fits => Some(Algorithm::Slots),
            _ => long_pieces(call).filter(|_| is_cached),
        },
        (Kind::Scatter | Kind::Gather, _) => {
            (fits && bytes <= ROOTED_OF_MANY_BYTES).then_some(Algorithm::Slots)
        }
        _ => fits.then_some(Algorithm::Slots),
    }
}

/// In long pieces, if slots have room for such, and not too many are needed.
fn long_pieces(call: &Call) -> Option<Algorithm> {
    let piece_bytes = piece_bytes(call.kind, call.size, call.slot_bytes, 128 << 10);
    let does = piece_bytes >= MIN_PIECE_BYTES && !has_too_many_pieces(call, 128);
    does.then_some(Algorithm::Pipelined(128))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
