//! What is told when the pipeline cannot be used, or cannot go on.

use lmt_core::error::MemoryShort;
use lmt_core::mechanism::{Fault, Unavailable};
use nix::errno::Errno;

pub(crate) fn unavailable(errno: Errno, sentence: &str) -> Unavailable {
    match errno {
        Errno::UnknownErrno => Unavailable { errno: 0, sentence: sentence.to_owned() },
        errno => Unavailable { errno: errno as i32, sentence: format!("{sentence} ({errno})") },
    }
}

/// The mechanism is not to be had for want of memory or address space.
pub(crate) fn no_memory(short: MemoryShort) -> Unavailable {
    unavailable(Errno::ENOMEM, &short.to_string())
}

pub(crate) fn short_of_memory(short: MemoryShort) -> Fault {
    Fault::Demote { errno: Errno::ENOMEM as i32, for_good: false, sentence: short.to_string() }
}

pub(crate) fn garbage() -> Fault {
    Fault::Demote {
        errno: 0,
        for_good: true,
        sentence: "the peer wrote what cannot be into the pipeline; its memory may be corrupt".to_owned(),
    }
}

pub(crate) fn short_buffer() -> Fault {
    Fault::Demote {
        errno: 0,
        for_good: false,
        sentence:
            "the buffer is shorter than the transfer or lent for the wrong access; give the one prepare saw"
                .to_owned(),
    }
}
