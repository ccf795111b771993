//! Which algorithm a call takes where none is named.
#![forbid(unsafe_code)]

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::Unsuitable;
use crate::call::{Blocks, Call};

/// What a group chooses by; the same on all its ranks.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Whether every rank may reach into every other's memory.
    pub single_copy: bool,
}

impl Chooser {
    /// Whether an algorithm can be run in this group at all.
    ///
    /// # Errors
    /// The sentence says why not.
    pub fn check(&self, algorithm: Algorithm, kind: Kind) -> Result<(), Unsuitable> {
        let reason = if !algorithm.does(kind) {
            let able: Vec<String> = Algorithm::of(kind).map(|one| one.to_string()).collect();
            format!("it does not do {kind}; {} do", able.join(", "))
        } else if algorithm.needs_single_copy() && !self.single_copy {
            let able: Vec<String> = Algorithm::of(kind)
                .filter(|one| !one.needs_single_copy())
                .map(|one| one.to_string())
                .collect();
            format!("some ranks may not reach into others' memory; {} need not", able.join(", "))
        } else {
            return Ok(());
        };
        Err(Unsuitable { algorithm, reason })
    }

    /// The algorithm for a call, and why. All ranks must come to the same: only what
    /// they all know counts.
    pub fn choose(&self, call: &Call, is_listed: bool) -> (Algorithm, String) {
        if call.kind == Kind::Barrier {
            return (Algorithm::Slots, "the meeting that every call begins with is a barrier".into());
        }
        let posted = most_posted(call);
        if !is_listed && posted <= call.slot_bytes {
            let reason = format!("{posted} bytes fit into a slot of {} in shared memory", call.slot_bytes);
            return (Algorithm::Slots, reason);
        }
        if !self.single_copy {
            return (Algorithm::Messages, "some ranks may not reach into others' memory".into());
        }
        (native(call), "by size and number of ranks".into())
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
