//! A pipe that this endpoint gives into, with both its ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::pipe2;
use zerocopy::IntoBytes;

use crate::sys;
use crate::wire::Header;

/// Larger pipes are not asked for, whatever the system allows: 64 MiB are more
/// than any cache, and one call can take as much back.
pub(crate) const LARGEST_PIPE_BYTES: usize = 1 << 26;

/// A pipe of this endpoint.
///
/// It keeps the read end too, for two reasons. As long as a read end is open,
/// giving into the pipe can end neither in EPIPE nor in SIGPIPE (pipe(7)):
/// whether the peer lives, its pidfd says. And what a message that is given up
/// has left in the pipe can be taken back, so that nobody reads the sender's
/// pages after the sender has gone on ([`Drop`]).
#[derive(Debug)]
pub(crate) struct Pipe {
    write: OwnedFd,
    read: OwnedFd,
    capacity_bytes: usize,
    /// The process that made it. A forked child has its descriptors too, and
    /// must not take out what is in the pipe.
    maker: u32,
}

impl Pipe {
    /// Makes a pipe that never blocks and holds `wanted_bytes`, or as many as
    /// this user may have.
    pub(crate) fn new(wanted_bytes: usize) -> Result<Self, Errno> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let capacity_bytes = grow(write.as_fd(), wanted_bytes)?;
        Ok(Self { write, read, capacity_bytes, maker: std::process::id() })
    }

    /// Where to give.
    pub(crate) fn inlet(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }

    /// Where it comes out, in this process.
    pub(crate) fn outlet_here(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// What the pipe holds at most.
    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// Another descriptor of the read end, for the peer.
    pub(crate) fn outlet(&self) -> Result<OwnedFd, Errno> {
        self.read.try_clone().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// Announces the message whose bytes are to follow. So few bytes are
    /// written whole or not at all (PIPE_BUF, pipe(7)).
    pub(crate) fn announce(&self, header: &Header) -> Result<(), Errno> {
        loop {
            match nix::unistd::write(&self.write, header.as_bytes()) {
                Err(Errno::EINTR) => {}
                result => return result.map(|_| ()),
            }
        }
    }

    /// Whether everything that was given has been read.
    pub(crate) fn is_empty(&self) -> bool {
        sys::bytes_in(self.inlet()) == Ok(0)
    }
}

impl Drop for Pipe {
    /// Takes back what is left in it.
    fn drop(&mut self) {
        if self.maker == std::process::id() && !self.is_empty() {
            // Emptied meanwhile, it answers EAGAIN, which is as good.
            let _taken = sys::discard(self.read.as_fd(), self.capacity_bytes);
        }
    }
}

/// Makes the pipe as large as is allowed, up to `wanted_bytes`; returns its
/// size. The system has a limit for one pipe and one for all pipes of a user
/// (pipe-max-size, pipe-user-pages-soft in proc_sys_fs(5)): where those refuse,
/// half of it is tried, and so on. A pipe of the size that it was born with will do.
fn grow(pipe: BorrowedFd<'_>, wanted_bytes: usize) -> Result<usize, Errno> {
    let born_bytes = usize::try_from(fcntl(pipe, FcntlArg::F_GETPIPE_SZ)?).unwrap_or(0);
    let mut wanted_bytes = wanted_bytes.min(LARGEST_PIPE_BYTES);
    while wanted_bytes > born_bytes {
        match fcntl(pipe, FcntlArg::F_SETPIPE_SZ(wanted_bytes as libc::c_int)) {
            Ok(bytes) => return Ok(usize::try_from(bytes).unwrap_or(born_bytes)),
            Err(Errno::EINTR) => {}
            Err(_) => wanted_bytes /= 2,
        }
    }
    Ok(born_bytes)
}

/// The largest pipe that any user may have.
pub(crate) fn system_limit_bytes() -> usize {
    // Its default since Linux 2.6.35, for where /proc is not mounted.
    const DEFAULT: usize = 1 << 20;
    let text = std::fs::read_to_string("/proc/sys/fs/pipe-max-size");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT)
}

#[cfg(test)]
#[path = "pipe_tests.rs"]
mod tests;
