//! Lists of memory for the vectored system calls (readv(2),
//! process_vm_readv(2)), cut out of segments.

use super::buffer::Buffer;
use super::cursor::Cursor;

/// The most entries that one system call takes (IOV_MAX, sysconf(3)).
pub const MAX_ENTRIES: usize = 1024;

/// An entry without memory, to begin a list with.
pub const EMPTY: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// What of a list was filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filled {
    /// How many entries, from the first on.
    pub entries: usize,
    /// The bytes of these entries together.
    pub bytes: u64,
}

/// Fills `slots` with the addresses and bytes that `next` gives, until they or
/// `max_bytes` are used up. `next` is told how many bytes are left and gives no
/// more than that.
pub fn fill(
    slots: &mut [libc::iovec],
    max_bytes: u64,
    mut next: impl FnMut(u64) -> Option<(usize, u64)>,
) -> Filled {
    let mut filled = Filled { entries: 0, bytes: 0 };
    for slot in slots {
        let Some((address, piece_bytes)) = next(max_bytes - filled.bytes) else {
            break;
        };
        *slot = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(address),
            iov_len: piece_bytes as usize,
        };
        filled.bytes += piece_bytes;
        filled.entries += 1;
    }
    filled
}

/// Fills `slots` with the memory of `buffer` from `at` on, at most `max_bytes`
/// of it. Every entry filled lies within a segment of the buffer. `at` goes
/// behind what was filled.
///
/// ```
/// use lmt_core::{buffer::{Access, Buffer}, cursor::Cursor, iovec};
/// let mut slots = [iovec::EMPTY; 4];
/// let filled = iovec::of_buffer(&mut slots, &Buffer::empty(Access::Read), &mut Cursor::default(), 9);
/// assert_eq!((filled.entries, filled.bytes), (0, 0));
/// ```
pub fn of_buffer(slots: &mut [libc::iovec], buffer: &Buffer, at: &mut Cursor, max_bytes: u64) -> Filled {
    let segments = buffer.segments();
    fill(slots, max_bytes, |left_bytes| {
        let piece = at.take(segments, left_bytes)?;
        Some((segments[piece.index].address + piece.offset as usize, piece.bytes))
    })
}

#[cfg(test)]
#[path = "iovec_tests.rs"]
mod tests;
