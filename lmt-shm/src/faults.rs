//! What is told when the pipeline cannot be used, or cannot go on.

use lmt_core::errno_advice::advice;
use lmt_core::error::MemoryError;
use lmt_core::mechanism::{Fault, Unavailable};
use nix::errno::Errno;

pub(crate) fn unavailable(errno: Errno, sentence: &str) -> Unavailable {
    match errno {
        Errno::UnknownErrno => Unavailable { errno: 0, sentence: sentence.to_owned() },
        errno => Unavailable { errno: errno as i32, sentence: format!("{sentence} ({errno})") },
    }
}

/// The mechanism is not to be had for want of shared memory.
pub(crate) fn no_memory(error: MemoryError) -> Unavailable {
    Unavailable { errno: error.errno() as i32, sentence: error.to_string() }
}

pub(crate) fn short_of_memory(error: MemoryError) -> Fault {
    Fault::Demote { errno: error.errno() as i32, for_good: false, sentence: error.to_string() }
}

/// The pool cannot be handed to a peer.
pub(crate) fn no_duplicate(error: &std::io::Error) -> Unavailable {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let advice = advice("fcntl(F_DUPFD_CLOEXEC)", errno);
    unavailable(errno, &format!("duplicating the pool's descriptor failed; {advice}"))
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
        sentence: "the buffer is shorter than the transfer or has the wrong access; give the one prepare saw"
            .to_owned(),
    }
}
