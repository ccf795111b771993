//! What each rank does in each algorithm.
#![forbid(unsafe_code)]

use crate::algorithm::Algorithm;
use crate::call::Call;
use crate::program::Program;

/// What this rank does in a call. All ranks' programs fit together if their calls
/// are of the same kind, root and lengths, and the algorithm is the same.
///
/// # Errors
/// The algorithm cannot do this call; the sentence says what could.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    Err(Unsuitable { algorithm, reason: format!("it does not do {}", call.kind) })
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
