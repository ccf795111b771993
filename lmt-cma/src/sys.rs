//! The two system calls (process_vm_readv(2)), on memory that buffers lend.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use nix::errno::Errno;

use crate::segments::RemoteSegment;

/// This process's side of a copy, which says its direction too.
#[derive(Debug)]
pub enum Local<'a> {
    /// The peer's bytes are copied into this buffer (process_vm_readv).
    Into(&'a mut Buffer),
    /// This buffer's bytes are copied into the peer (process_vm_writev).
    OutOf(&'a Buffer),
}

impl Local<'_> {
    /// The buffer, whatever the direction.
    pub fn buffer(&self) -> &Buffer {
        match self {
            Self::Into(buffer) => buffer,
            Self::OutOf(buffer) => buffer,
        }
    }
}

/// Makes one system call that moves at most `max_bytes`, from the two places
/// on, with at most `N` segments on either side; returns the bytes moved, which
/// may be fewer than were there. The cursors stay where they are.
pub(crate) fn copy_once<const N: usize>(
    pid: i32,
    local: &mut Local<'_>,
    mut local_at: Cursor,
    remote: &[RemoteSegment],
    mut remote_at: Cursor,
    max_bytes: u64,
) -> Result<u64, Errno> {
    const EMPTY: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    if matches!(local, Local::Into(buffer) if buffer.access() != Access::Write) {
        return Err(Errno::EACCES);
    }
    let (mut ours, mut theirs) = ([EMPTY; N], [EMPTY; N]);
    let segments = local.buffer().segments();
    let (our_count, our_bytes) = fill(&mut ours, max_bytes, |left| {
        let piece = local_at.take(segments, left)?;
        Some((segments[piece.index].address + piece.offset as usize, piece.bytes))
    });
    let (their_count, _) = fill(&mut theirs, our_bytes, |left| {
        let piece = remote_at.take(remote, left)?;
        // The peer's word for where its memory is: nothing here follows it,
        // the kernel does, in the peer.
        Some((remote[piece.index].address.wrapping_add(piece.offset) as usize, piece.bytes))
    });
    let (ours, theirs) = (&ours[..our_count], &theirs[..their_count]);
    let moved = match local {
        // SAFETY: every entry of `ours` lies within a segment of a buffer lent
        // for writing and borrowed exclusively here, whose maker promised
        // memory that is valid and used by nobody else; the kernel writes no
        // more than they describe. `theirs` is only looked up in the peer.
        // Both lists live across the call and their lengths are as stated.
        Local::Into(_) => unsafe {
            libc::process_vm_readv(
                pid,
                ours.as_ptr(),
                ours.len() as libc::c_ulong,
                theirs.as_ptr(),
                theirs.len() as libc::c_ulong,
                0,
            )
        },
        // SAFETY: as above, the kernel only reading what `ours` describes,
        // which the buffer's maker promised to be valid and unwritten. What is
        // written is memory of the peer, which the peer lent for just that.
        Local::OutOf(_) => unsafe {
            libc::process_vm_writev(
                pid,
                ours.as_ptr(),
                ours.len() as libc::c_ulong,
                theirs.as_ptr(),
                theirs.len() as libc::c_ulong,
                0,
            )
        },
    };
    u64::try_from(moved).map_err(|_| Errno::last())
}

/// Fills `slots` from `next` until they or `max_bytes` are used up; returns how
/// many were filled, and their bytes.
fn fill(
    slots: &mut [libc::iovec],
    max_bytes: u64,
    mut next: impl FnMut(u64) -> Option<(usize, u64)>,
) -> (usize, u64) {
    let (mut count, mut bytes) = (0, 0);
    for slot in slots {
        let Some((address, piece_bytes)) = next(max_bytes - bytes) else {
            break;
        };
        *slot = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(address),
            iov_len: piece_bytes as usize,
        };
        bytes += piece_bytes;
        count += 1;
    }
    (count, bytes)
}

/// Lends `bytes` of this process's own to a copy for as long as `work` runs.
pub(crate) fn with_lent<T>(bytes: &mut [u8], work: impl FnOnce(&mut Buffer) -> T) -> T {
    let segment = lmt_core::buffer::Segment::of_mut(bytes);
    // SAFETY: `bytes` is borrowed exclusively until this function returns, and
    // the buffer, which does not leave it, is gone by then.
    let lent = unsafe { Buffer::new(&[segment], Access::Write) };
    // A live slice never reaches past the address space.
    let mut buffer = lent.unwrap_or_else(|_| Buffer::empty(Access::Write));
    work(&mut buffer)
}

/// Lends `bytes` of this process's own for reading for as long as `work` runs.
pub(crate) fn with_shared<T>(bytes: &[u8], work: impl FnOnce(&Buffer) -> T) -> T {
    let segment = lmt_core::buffer::Segment::of(bytes);
    // SAFETY: `bytes` is borrowed, so unwritten, until this function returns,
    // and the buffer, which does not leave it, is gone by then.
    let lent = unsafe { Buffer::new(&[segment], Access::Read) };
    // A live slice never reaches past the address space.
    work(&lent.unwrap_or_else(|_| Buffer::empty(Access::Read)))
}
