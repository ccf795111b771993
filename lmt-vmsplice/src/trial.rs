//! Whether this process may use pipes in this way at all, found by doing it.

use lmt_core::cursor::Cursor;
use lmt_core::mechanism::Unavailable;
use nix::errno::Errno;

use crate::faults::no_pipe_sentence;
use crate::pipe::Pipe;
use crate::sys::{self, Way};

/// Bytes of the trial, not to be found in a pipe by chance.
const BYTES: [u8; 8] = *b"lmt pipe";

/// Gives a few bytes into a pipe of this process and reads them again.
pub(crate) fn run(way: Way) -> Result<(), Unavailable> {
    let no_pipe = |errno| Unavailable { errno: errno as i32, sentence: no_pipe_sentence(errno) };
    let pipe = Pipe::new(0).map_err(no_pipe)?;
    let refused = |errno| {
        unavailable(
            errno,
            "the kernel does not let this process use vmsplice, writev or readv on a pipe; it needs a kernel \
             with them, and a seccomp filter must allow them",
        )
    };
    let given = lmt_core::buffer::lend(&BYTES, |data| {
        sys::give(way, pipe.inlet(), data, &mut Cursor::default(), BYTES.len() as u64)
    });
    let mut found = [0; BYTES.len()];
    let read = given.and_then(|_| sys::read(pipe.outlet_here(), &mut found)).map_err(refused)?;
    if read != BYTES.len() as u64 || found != BYTES {
        return Err(unavailable(Errno::EIO, "a pipe did not give back what was put into it"));
    }
    Ok(())
}

/// Whether a refusal is the system's last word, and not of the moment.
pub(crate) fn is_final(why: &Unavailable) -> bool {
    !matches!(
        Errno::from_raw(why.errno),
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS | Errno::EAGAIN | Errno::EINTR
    )
}

fn unavailable(errno: Errno, sentence: &str) -> Unavailable {
    Unavailable { errno: errno as i32, sentence: format!("{sentence} ({errno})") }
}
