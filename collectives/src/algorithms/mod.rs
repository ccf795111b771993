//! What each rank does in each algorithm.
#![forbid(unsafe_code)]

mod allgather;
mod alltoall;
mod barrier;
mod broadcast;
mod broadcast_messages;
mod broadcast_trees;
mod common;
mod gather;
mod hierarchical;
mod pipelined;
mod reduce;
mod rooted;
mod scan;
mod scatter;
pub(crate) mod suits;
mod swap;
#[cfg(test)]
mod tried;

pub(crate) use allgather::goes_round;
pub(crate) use pipelined::{has_too_many_pieces, piece_bytes};
pub(crate) use swap::{MAX_BYTES as MOST_SWAPPED_BYTES, is_swap, is_swap_of};

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::Program;

/// What this rank does in a call. All ranks' programs fit together if their calls
/// are of the same kind, form (plain or v), root and lengths, and the algorithm is
/// the same.
///
/// ```
/// use lmt_collectives::algorithms::program;
/// use lmt_collectives::call::{Blocks, Call, Domain};
/// use lmt_collectives::{Algorithm, Kind};
/// let call = Call {
///     kind: Kind::Broadcast,
///     rank: 1,
///     size: 2,
///     root: 0,
///     bytes: 1 << 20,
///     blocks: Blocks::Equal(0),
///     input_blocks: Blocks::Equal(0),
///     in_place: false,
///     element_bytes: 1,
///     domains: [Domain::ALL; 2].into(),
///     slot_bytes: 4096,
/// };
/// assert_eq!(program(&call, Algorithm::DirectRead)?.steps.len(), 2); // reads, and says so
/// let error = program(&call, Algorithm::Slots).unwrap_err();
/// assert!(error.to_string().contains("fit into a slot"));
/// # Ok::<(), lmt_collectives::algorithms::Unsuitable>(())
/// ```
///
/// # Errors
/// The algorithm cannot do this call; the sentence says what could. In the v forms
/// of scatter and gather only some ranks may find that out: those know the lengths.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    suits::check(call, algorithm)?;
    made(call, algorithm).map(Program::with_slot)
}

fn made(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Pipelined(kib) => return pipelined::program(call, kib),
        Algorithm::Swap => return swap::program(call),
        _ => {}
    }
    match call.kind {
        Kind::Barrier => Ok(barrier::program(call, algorithm)),
        Kind::Broadcast => broadcast::program(call, algorithm),
        Kind::Scatter => scatter::program(call, algorithm),
        Kind::Gather => gather::program(call, algorithm),
        Kind::Allgather => allgather::program(call, algorithm),
        Kind::Alltoall => alltoall::program(call, algorithm),
        Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter => reduce::program(call, algorithm),
        Kind::Scan | Kind::Exscan => scan::program(call, algorithm),
    }
}

/// An algorithm that cannot do a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm} cannot do this call: {reason}")]
pub struct Unsuitable {
    /// Which.
    pub algorithm: Algorithm,
    /// Why, and what could.
    pub reason: String,
}

impl Unsuitable {
    /// Of an algorithm that [`Algorithm::does`] not do an operation.
    pub(crate) fn kind(algorithm: Algorithm, kind: Kind) -> Self {
        let those: Vec<String> = Algorithm::of(kind).map(|algorithm| algorithm.to_string()).collect();
        Self { algorithm, reason: format!("{kind} is done by {}", those.join(", ")) }
    }
}
