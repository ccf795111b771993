//! Which algorithm a call takes where none is named.
#![forbid(unsafe_code)]

use std::borrow::Cow;

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::Unsuitable;
use crate::call::{Blocks, Call};

/// What a group chooses by; the same on all its ranks.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Whether every rank may reach into every other's memory.
    pub single_copy: bool,
}

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
        if !is_listed && most_posted(call) <= call.slot_bytes {
            return Choice::new(Algorithm::Slots, "what each rank posts fits into its slot of shared memory");
        }
        if !self.single_copy {
            return Choice::new(Algorithm::Messages, "some ranks may not reach into others' memory");
        }
        Choice::new(native(call), "the built-in choice for so many ranks")
    }
}

/// The most that a rank posts if the call goes through slots.
fn most_posted(call: &Call) -> u64 {
    match (call.kind, &call.blocks) {
        (Kind::Scatter | Kind::Gather, _) => call.bytes.saturating_mul(call.size.into()),
        (Kind::Alltoall, Blocks::Equal(bytes)) => bytes.saturating_mul(call.size.into()),
        _ => call.bytes,
    }
}

fn native(call: &Call) -> Algorithm {
    let two = call.size == 2;
    match call.kind {
        Kind::Barrier => Algorithm::Slots,
        Kind::Broadcast | Kind::Scatter | Kind::Gather if two => Algorithm::Messages,
        Kind::Broadcast => Algorithm::Knomial(4),
        Kind::Scatter => Algorithm::ThrottledRead(4),
        Kind::Gather => Algorithm::ThrottledWrite(4),
        Kind::Allgather => Algorithm::RingSourceRead,
        Kind::Alltoall => Algorithm::Pairwise,
        Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter => Algorithm::DirectReduce,
        Kind::Scan | Kind::Exscan => Algorithm::Chain(64),
    }
}
