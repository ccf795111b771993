//! What is told when a ring cannot be used, or cannot go on.

use lmt_core::error::MemoryShort;
use lmt_core::mechanism::{Fault, Unavailable};
use nix::errno::Errno;

pub(crate) fn unavailable(errno: i32, sentence: String) -> Unavailable {
    Unavailable { errno, sentence }
}

/// The mechanism is not to be had for want of memory or address space.
pub(crate) fn no_memory(short: MemoryShort) -> Unavailable {
    unavailable(Errno::ENOMEM as i32, short.to_string())
}

fn demote(errno: i32, for_good: bool, sentence: impl Into<String>) -> Fault {
    Fault::Demote { errno, for_good, sentence: sentence.into() }
}

pub(crate) fn short_of_memory(short: MemoryShort) -> Fault {
    demote(Errno::ENOMEM as i32, false, short.to_string())
}

pub(crate) fn garbage() -> Fault {
    demote(0, true, "the peer wrote what cannot be into the ring; its memory may be corrupt")
}

pub(crate) fn short_buffer() -> Fault {
    demote(
        0,
        false,
        "the buffer is shorter than the transfer or lent for the wrong access; give the one prepare saw",
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
    demote(Errno::EAGAIN as i32, false, "hundreds of messages to this peer are under way in the ring already")
}

pub(crate) fn withdrawn() -> Fault {
    demote(Errno::ECANCELED as i32, false, "the sender took its message out of the ring")
}

pub(crate) fn slow_cells() -> Fault {
    demote(
        0,
        false,
        "the cells of the ring that come back are slow to fill; the next mechanism takes the rest",
    )
}
