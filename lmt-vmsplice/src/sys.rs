//! The system calls on a pipe and on memory that buffers lend: vmsplice(2),
//! writev(2), readv(2).
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::os::fd::{AsRawFd, BorrowedFd};

use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use lmt_core::iovec;
use nix::errno::Errno;

/// How bytes get into the pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The pipe refers to the buffer's own pages.
    Vmsplice,
    /// The kernel copies the bytes into pages of the pipe.
    Writev,
}

/// Puts at most `max_bytes` of `data`, from `at` on, into the pipe by one
/// system call and moves `at` behind them. 0 means that the buffer ends at `at`.
///
/// By [`Way::Vmsplice`] the bytes go on being read where they are until the
/// other end has read them: they must not change before.
pub(crate) fn give(
    way: Way,
    pipe: BorrowedFd<'_>,
    data: &Buffer,
    at: &mut Cursor,
    max_bytes: u64,
) -> Result<u64, Errno> {
    match data.segments().len() {
        ..=1 => give_listed::<1>(way, pipe, data, at, max_bytes),
        2..=16 => give_listed::<16>(way, pipe, data, at, max_bytes),
        _ => give_listed::<{ iovec::MAX_ENTRIES }>(way, pipe, data, at, max_bytes),
    }
}

fn give_listed<const N: usize>(
    way: Way,
    pipe: BorrowedFd<'_>,
    data: &Buffer,
    at: &mut Cursor,
    max_bytes: u64,
) -> Result<u64, Errno> {
    let mut slots = [iovec::EMPTY; N];
    let mut behind = *at;
    let filled = iovec::of_buffer(&mut slots, data, &mut behind, max_bytes);
    if filled.bytes == 0 {
        return Ok(0);
    }
    let list = &slots[..filled.entries];
    let given = again(|| match way {
        // SAFETY: each entry lies within a segment of `data`, which its maker
        // promised to be valid and unwritten; the kernel only reads there, also
        // later: it holds the pages itself, so none is freed under the pipe.
        // The list lives across the call and is as long as stated.
        Way::Vmsplice => unsafe {
            libc::vmsplice(pipe.as_raw_fd(), list.as_ptr(), list.len(), libc::SPLICE_F_NONBLOCK)
        },
        // SAFETY: as above, and the kernel has copied when the call returns.
        Way::Writev => unsafe { libc::writev(pipe.as_raw_fd(), list.as_ptr(), list.len() as libc::c_int) },
    })?;
    move_on(at, behind, data, given, filled.bytes);
    Ok(given)
}

/// Reads at most `max_bytes` from the pipe into `data`, from `at` on, by one
/// system call and moves `at` behind them. `None` when nobody can write to the
/// pipe any more and all is read; `Some(0)` that the buffer ends at `at`.
pub(crate) fn take(
    pipe: BorrowedFd<'_>,
    data: &mut Buffer,
    at: &mut Cursor,
    max_bytes: u64,
) -> Result<Option<u64>, Errno> {
    match data.segments().len() {
        ..=1 => take_listed::<1>(pipe, data, at, max_bytes),
        2..=16 => take_listed::<16>(pipe, data, at, max_bytes),
        _ => take_listed::<{ iovec::MAX_ENTRIES }>(pipe, data, at, max_bytes),
    }
}

fn take_listed<const N: usize>(
    pipe: BorrowedFd<'_>,
    data: &mut Buffer,
    at: &mut Cursor,
    max_bytes: u64,
) -> Result<Option<u64>, Errno> {
    if data.access() != Access::Write {
        return Err(Errno::EACCES);
    }
    let mut slots = [iovec::EMPTY; N];
    let mut behind = *at;
    let filled = iovec::of_buffer(&mut slots, data, &mut behind, max_bytes);
    if filled.bytes == 0 {
        return Ok(Some(0));
    }
    // SAFETY: each entry lies within a segment of `data`, a buffer lent for
    // writing and borrowed exclusively here, whose maker promised valid memory
    // that nobody else uses.
    let taken = unsafe { read_listed(pipe, &slots[..filled.entries]) }?;
    if taken == 0 {
        return Ok(None);
    }
    move_on(at, behind, data, taken, filled.bytes);
    Ok(Some(taken))
}

/// Reads at most `bytes.len()` bytes from the pipe; 0 when nobody can write to
/// it any more and all is read.
pub(crate) fn read(pipe: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<u64, Errno> {
    let slot = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the one entry is a live slice, borrowed exclusively.
    unsafe { read_listed(pipe, &[slot]) }
}

/// Takes up to `capacity_bytes`, all that such a pipe can hold, out of the pipe
/// and throws them away. One read, under the pipe's lock in the kernel: whoever
/// reads at the same time gets what lies before or nothing.
pub(crate) fn discard(pipe: BorrowedFd<'_>, capacity_bytes: usize) -> Result<u64, Errno> {
    let mut scratch = vec![0u8; 1 << 16];
    let slot = libc::iovec { iov_base: scratch.as_mut_ptr().cast(), iov_len: scratch.len() };
    let slots = vec![slot; capacity_bytes.div_ceil(scratch.len()).clamp(1, iovec::MAX_ENTRIES)];
    // SAFETY: every entry is all of `scratch`, which lives across the call and
    // is not looked at; that the kernel writes it over and over is harmless.
    unsafe { read_listed(pipe, &slots) }
}

/// One read that does not wait, even if the other process has taken O_NONBLOCK
/// from the descriptor, which both share. (Before Linux 6.4 see
/// [`read_unless_empty`].)
///
/// # Safety
/// Every entry of `list` must be valid for writes that disturb nobody.
unsafe fn read_listed(pipe: BorrowedFd<'_>, list: &[libc::iovec]) -> Result<u64, Errno> {
    let (fd, count) = (pipe.as_raw_fd(), list.len() as libc::c_int);
    // SAFETY: the caller's promise; the list lives across the call and is as
    // long as stated. Offset -1 is the descriptor's own place.
    let read = again(|| unsafe { libc::preadv2(fd, list.as_ptr(), count, -1, libc::RWF_NOWAIT) });
    match read {
        // Before Linux 6.4 pipes do not know RWF_NOWAIT, and preadv2 of a pipe
        // may be unknown as well.
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::ESPIPE) => {
            // SAFETY: the caller's promise.
            unsafe { read_unless_empty(pipe, list) }
        }
        read => read,
    }
}

/// A read that is made only if there is something to read, or nobody who could
/// still write: then it does not wait, whatever the descriptor's flags, unless
/// another process takes the bytes out between the two calls.
///
/// # Safety
/// As [`read_listed`].
unsafe fn read_unless_empty(pipe: BorrowedFd<'_>, list: &[libc::iovec]) -> Result<u64, Errno> {
    if bytes_in(pipe)? == 0 && !is_hung_up(pipe)? {
        return Err(Errno::EAGAIN);
    }
    let (fd, count) = (pipe.as_raw_fd(), list.len() as libc::c_int);
    // SAFETY: the caller's promise; the list lives across the call and is as
    // long as stated.
    again(|| unsafe { libc::readv(fd, list.as_ptr(), count) })
}

/// Whether nobody can write to the pipe any more (POLLHUP, poll(2)).
fn is_hung_up(pipe: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut asked = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one live entry, as stated; with a time limit of 0 it never waits.
    again(|| unsafe { libc::poll(&raw mut asked, 1, 0) } as libc::ssize_t)?;
    Ok(asked.revents & libc::POLLHUP != 0)
}

/// How many bytes are in the pipe (FIONREAD, pipe(7)).
pub(crate) fn bytes_in(pipe: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int, to where a live one is.
    let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    Errno::result(result)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Makes a system call until no signal interrupts it.
fn again(mut call: impl FnMut() -> libc::ssize_t) -> Result<u64, Errno> {
    loop {
        match u64::try_from(call()).map_err(|_| Errno::last()) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Moves `at` over `moved` bytes; `behind` is where all of `listed_bytes` end.
fn move_on(at: &mut Cursor, behind: Cursor, data: &Buffer, moved: u64, listed_bytes: u64) {
    if moved == listed_bytes {
        *at = behind;
    } else {
        at.advance(data.segments(), moved);
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
