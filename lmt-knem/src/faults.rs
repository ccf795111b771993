//! What an error of a driver means for a transfer.

use lmt_core::mechanism::Fault;
use lmt_core::process::PeerProcess;

use crate::error::KnemError;

pub(crate) fn demote(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

/// What an error of one's own side means for a transfer.
pub(crate) fn fault(error: &KnemError) -> Fault {
    let for_good = matches!(
        error,
        KnemError::OtherUser(_) | KnemError::Forked | KnemError::Unavailable { .. } | KnemError::UnknownOwner
    );
    Fault::Demote { errno: error.errno(), for_good, sentence: error.to_string() }
}

/// What an error of a copy means for a transfer with this peer: whose region is
/// gone may be gone itself.
pub(crate) fn fault_of(error: &KnemError, process: &PeerProcess) -> Fault {
    match error {
        KnemError::OwnerDead => Fault::PeerDead,
        KnemError::NotRegistered if !process.is_alive() => Fault::PeerDead,
        _ => fault(error),
    }
}
