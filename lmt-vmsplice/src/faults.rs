//! What can go wrong with a transfer, in one sentence each.

use lmt_core::errno_advice::advice;
use lmt_core::mechanism::Fault;
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::incoming::PipeError;

/// So many pipes in a row whose descriptor did not arrive, and the mechanism is
/// given up with that peer.
pub(crate) const MISSING_FOR_GOOD: u32 = 3;

pub(crate) const WRITING: &str = "giving the message's memory to the pipe failed";
pub(crate) const READING: &str = "reading the message out of the pipe failed";

/// What an errno in the middle means for a transfer with this peer.
pub(crate) fn fault_of(errno: Errno, process: &PeerProcess, what: &str) -> Fault {
    if errno == Errno::EPIPE && !process.is_alive() {
        return Fault::PeerDead;
    }
    let help = match errno {
        Errno::EFAULT => "; every page of the buffer must be mapped and accessible",
        Errno::EACCES => ", as the buffer is read-only; pass it with Access::Write",
        Errno::EPERM | Errno::ENOSYS => "; a seccomp filter must allow vmsplice, writev and readv",
        _ => "",
    };
    let for_good = matches!(errno, Errno::EPERM | Errno::ENOSYS);
    demote(errno, for_good, &format!("{what}{help} ({errno})"))
}

/// What it means that nothing can be read.
pub(crate) fn refused(refusal: PipeError, process: &PeerProcess) -> Fault {
    match refusal {
        PipeError::Missing { times } => demote(
            Errno::EMFILE,
            times >= MISSING_FOR_GOOD,
            "the descriptor of the peer's pipe did not arrive; raise ulimit -n",
        ),
        PipeError::Garbage => garbage(),
        PipeError::CutShort if !process.is_alive() => Fault::PeerDead,
        PipeError::CutShort => demote(Errno::EPIPE, false, "the sender gave its pipe up in the middle"),
        PipeError::System(errno) => fault_of(errno, process, READING),
    }
}

pub(crate) fn no_pipe(errno: Errno) -> Fault {
    demote(errno, false, &no_pipe_sentence(errno))
}

/// That no pipe could be made, and what would help.
pub(crate) fn no_pipe_sentence(errno: Errno) -> String {
    let help = match errno {
        Errno::EMFILE => "raise ulimit -n, of which half, or 256, is kept for connections".to_owned(),
        Errno::ENFILE => "raise /proc/sys/fs/file-max or /proc/sys/fs/pipe-user-pages-hard".to_owned(),
        _ => advice("pipe2", errno),
    };
    format!("no pipe could be made ({errno}); {help}")
}

pub(crate) fn garbage() -> Fault {
    demote(
        Errno::EBADMSG,
        true,
        "the peer's cookie or pipe is none that lmt makes; its memory may be corrupt",
    )
}

pub(crate) fn short_buffer() -> Fault {
    demote(
        Errno::EINVAL,
        false,
        "the buffer here is shorter than the transfer; give the one that prepare saw",
    )
}

fn demote(errno: Errno, for_good: bool, sentence: &str) -> Fault {
    Fault::Demote { errno: errno as i32, for_good, sentence: sentence.to_owned() }
}
