//! What each rank does in each algorithm.
#![forbid(unsafe_code)]

mod allgather;
mod alltoall;
mod common;
mod reduce;
mod scan;
#[cfg(test)]
mod tried;

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::Program;

/// What this rank does in a call. All ranks' programs fit together if their calls
/// are of the same kind, root and lengths, and the algorithm is the same.
///
/// # Errors
/// The algorithm cannot do this call; the sentence says what could.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match call.kind {
        Kind::Allgather => allgather::program(call, algorithm),
        Kind::Alltoall => alltoall::program(call, algorithm),
        Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter => reduce::program(call, algorithm),
        Kind::Scan | Kind::Exscan => scan::program(call, algorithm),
        kind => Err(Unsuitable { algorithm, reason: format!("it does not do {kind}") }),
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
