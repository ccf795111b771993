//! What the engine refuses, as libfabric says it.

use lmt::{OperationError, PeerError, RegionError};

use crate::abi::Errno;
use crate::log::{self, Subsystem};

/// Says why something is refused, and hands the error on.
#[cold]
pub fn because(subsystem: Subsystem, errno: Errno, why: std::fmt::Arguments<'_>) -> Errno {
    log::warn(subsystem, why);
    errno
}

/// Refuses flags to a call that has none.
///
/// # Errors
/// [`Errno::BADFLAGS`]: there are some.
pub fn no_flags(subsystem: Subsystem, flags: u64, call: &str) -> Result<(), Errno> {
    match flags {
        0 => Ok(()),
        _ => {
            Err(because(subsystem, Errno::BADFLAGS, format_args!("{call} has no flags; {flags:#x} is given")))
        }
    }
}

/// The number for an error of the engine.
pub fn errno_of(error: &OperationError) -> Errno {
    match error {
        OperationError::Truncated { .. } => Errno::TRUNC,
        OperationError::Cancelled => Errno::CANCELED,
        OperationError::WouldBlock { .. } => Errno::AGAIN,
        OperationError::PeerBusy { .. } => Errno::BUSY,
        OperationError::UnknownPeer | OperationError::ReadOnlyBuffer => Errno::INVAL,
        OperationError::Peer(error) => match error {
            PeerError::Dead { .. } | PeerError::Removed { .. } => Errno::CONNRESET,
            PeerError::Unreachable { .. } => Errno::TIMEDOUT,
            PeerError::Refused { .. } => Errno::HOSTUNREACH,
            _ => Errno::IO,
        },
        OperationError::Region(error) => match error {
            RegionError::NotDeclared | RegionError::UsedUp => Errno::NOKEY,
            RegionError::Forbidden(_) => Errno::ACCES,
            RegionError::OutOfBounds { .. } => Errno::INVAL,
            RegionError::BadMemory(_) => Errno::FAULT,
            RegionError::TooMany(_) | RegionError::Memory(_) => Errno::NOMEM,
            _ => Errno::IO,
        },
        OperationError::TooManyPeers { .. } | OperationError::System(_) => Errno::NOMEM,
        _ => Errno::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use lmt::EndpointId;

    use super::*;

    #[test]
    fn errors_have_the_numbers_of_the_man_pages() {
        let id = EndpointId::from_bytes([1; 16]);
        assert_eq!(errno_of(&OperationError::WouldBlock { id, pending: 1 }), Errno::AGAIN);
        assert_eq!(errno_of(&OperationError::Cancelled), Errno::CANCELED);
        assert_eq!(errno_of(&PeerError::Dead { id }.into()), Errno::CONNRESET);
        assert_eq!(errno_of(&RegionError::NotDeclared.into()), Errno::NOKEY);
        assert_eq!(errno_of(&OperationError::Forked), Errno::OTHER);
    }
}
