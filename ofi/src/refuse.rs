//! What the engine refuses, as libfabric says it.

use lmt::{CreateError, OperationError, PeerError, RegionError};

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

/// The number for an engine that cannot be made: the system's, or that the
/// configuration is wrong.
pub fn errno_of_creation(error: &CreateError) -> Errno {
    error.errno().map_or(Errno::INVAL, errno_of_system)
}

/// The number for what the system answered, or a peer says that its system did. Who is
/// told [`Errno::AGAIN`] or EINTR calls again, and 0 is no error: none of them may end
/// an operation.
fn errno_of_system(errno: nix::errno::Errno) -> Errno {
    match errno {
        // A limit: on locked memory, processes or timers.
        nix::errno::Errno::EAGAIN => Errno::NOMEM,
        nix::errno::Errno::EINTR | nix::errno::Errno::UnknownErrno => Errno::IO,
        errno => Errno(errno as i32),
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
            PeerError::System { errno, .. } => errno_of_system(*errno),
            _ => Errno::IO,
        },
        OperationError::Region(error) => match error {
            RegionError::NotRegistered | RegionError::UsedUp => Errno::NOKEY,
            RegionError::Forbidden(_) => Errno::ACCES,
            RegionError::OutOfBounds { .. } => Errno::INVAL,
            RegionError::TooMany(_) => Errno::NOMEM,
            RegionError::Memory(error) => errno_of_system(error.errno()),
            RegionError::BadMemory(_) => Errno::FAULT,
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
        assert_eq!(errno_of(&RegionError::NotRegistered.into()), Errno::NOKEY);
        let errno = nix::errno::Errno::EMFILE;
        let short = PeerError::System { id, errno, reason: "no descriptor".to_owned() };
        assert_eq!(errno_of(&short.into()), Errno(errno as i32));
        assert_eq!(errno_of(&OperationError::Forked), Errno::OTHER);
    }

    #[test]
    fn a_failure_is_never_try_again() {
        use nix::errno::Errno as System;
        let id = EndpointId::from_bytes([1; 16]);
        let all = [
            (System::EAGAIN, Errno::NOMEM),
            (System::EINTR, Errno::IO),
            (System::from_raw(0), Errno::IO),
            (System::from_raw(1 << 20), Errno::IO),
        ];
        for (errno, told) in all {
            let peer = PeerError::System { id, errno, reason: "no".to_owned() };
            assert_eq!(errno_of(&peer.into()), told, "{errno}");
            let memory = lmt::MemoryError::Call { purpose: "a test", call: "mmap", errno };
            assert_eq!(errno_of_creation(&CreateError::Memory(memory.clone())), told, "{errno}");
            assert_eq!(errno_of(&OperationError::Region(RegionError::Memory(memory))), told, "{errno}");
        }
    }

    #[test]
    fn an_endpoint_that_cannot_be_made_gives_the_number_of_the_system() {
        for errno in [nix::errno::Errno::EMFILE, nix::errno::Errno::EPERM, nix::errno::Errno::ENOSYS] {
            let error = lmt::MemoryError::Call { purpose: "a test", call: "memfd_create", errno };
            assert_eq!(errno_of_creation(&CreateError::Memory(error.clone())), Errno(errno as i32));
            let region = OperationError::Region(RegionError::Memory(error));
            assert_eq!(errno_of(&region), Errno(errno as i32));
        }
        let wrong = CreateError::Configuration { sentence: "no".to_owned() };
        assert_eq!(errno_of_creation(&wrong), Errno::INVAL);
    }
}
