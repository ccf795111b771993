//! What is told when a ring cannot be used, or cannot go on.

use lmt_core::errno_advice::advice;
use lmt_core::error::MemoryError;
use lmt_core::mechanism::{Fault, Unavailable};
use nix::errno::Errno;

pub(crate) fn unavailable(errno: i32, sentence: String) -> Unavailable {
    Unavailable { errno, sentence }
}

/// The mechanism is not to be had for want of shared memory.
pub(crate) fn no_memory(error: MemoryError) -> Unavailable {
    unavailable(error.errno() as i32, error.to_string())
}

/// The pool cannot be handed to a peer.
pub(crate) fn no_duplicate(error: &std::io::Error) -> Unavailable {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let advice = advice("fcntl(F_DUPFD_CLOEXEC)", errno);
    unavailable(errno as i32, format!("duplicating the pool's descriptor failed ({errno}); {advice}"))
}

fn demote(errno: i32, for_good: bool, sentence: impl Into<String>) -> Fault {
    Fault::Demote { errno, for_good, sentence: sentence.into() }
}

pub(crate) fn short_of_memory(error: MemoryError) -> Fault {
    demote(error.errno() as i32, false, error.to_string())
}

pub(crate) fn garbage() -> Fault {
    demote(0, true, "the peer wrote what cannot be into the ring; its memory may be corrupt")
}

pub(crate) fn short_buffer() -> Fault {
    demote(
        0,
        false,
        "the buffer is shorter than the transfer or has the wrong access; give the one prepare saw",
    )
}

/// For good: rings come back only when peers go, and each message would ask again.
pub(crate) fn no_ring() -> Fault {
    demote(
        Errno::ENOSPC as i32,
        true,
        "all rings of this endpoint's pool are taken by other peers; raise max_rings, or have another mechanism take what has none",
    )
}

pub(crate) fn no_slot() -> Fault {
    demote(Errno::EAGAIN as i32, false, "hundreds of messages to this peer are in flight in the ring already")
}

pub(crate) fn withdrawn() -> Fault {
    demote(Errno::ECANCELED as i32, false, "the sender took its message out of the ring")
}
