//! The two system calls (process_vm_readv(2)), on memory that buffers lend, and
//! the one that says who may be read.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use lmt_core::iovec;
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
    if matches!(local, Local::Into(buffer) if buffer.access() != Access::Write) {
        return Err(Errno::EACCES);
    }
    let (mut ours, mut theirs) = ([iovec::EMPTY; N], [iovec::EMPTY; N]);
    let our_list = iovec::of_buffer(&mut ours, local.buffer(), &mut local_at, max_bytes);
    let their_list = iovec::fill(&mut theirs, our_list.bytes, |left| {
        let piece = remote_at.take(remote, left)?;
        // The peer's word for where its memory is: nothing here follows it,
        // the kernel does, in the peer.
        Some((remote[piece.index].address.wrapping_add(piece.offset) as usize, piece.bytes))
    });
    let (ours, theirs) = (&ours[..our_list.entries], &theirs[..their_list.entries]);
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

/// The call that this process may not make, whatever for, and what the kernel
/// answers it: a seccomp filter looks at the call alone, and without segments
/// the kernel looks at nothing else.
pub(crate) fn refused_call() -> Option<(&'static str, Errno)> {
    let (own, none) = (nix::unistd::getpid().as_raw(), std::ptr::null());
    // SAFETY: both lists are said to be empty, so that neither pointer is
    // followed and no memory is touched.
    let read = unsafe { libc::process_vm_readv(own, none, 0, none, 0, 0) };
    if read < 0 {
        return Some(("process_vm_readv", Errno::last()));
    }
    // SAFETY: as above.
    let written = unsafe { libc::process_vm_writev(own, none, 0, none, 0, 0) };
    (written < 0).then(|| ("process_vm_writev", Errno::last()))
}

/// Who may read this process's memory (PR_GET_DUMPABLE in prctl(2)): 1 the
/// processes of its user, 0 or 2 privileged ones only.
pub(crate) fn dumpable() -> Result<i32, Errno> {
    // SAFETY: this request takes no argument and answers with a number.
    Errno::result(unsafe { libc::prctl(libc::PR_GET_DUMPABLE) })
}
