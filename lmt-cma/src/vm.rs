//! Copying between two lists of segments, one here and one in a peer: what a
//! transfer's steps are made of, and regions' put and get.

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Direction, Fault, RegisteredCopy};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::refusal::sentence;
pub use crate::segments::RemoteSegment;
pub use crate::sys::Local;

/// The most segments one system call takes on either side (IOV_MAX).
pub const SEGMENTS_PER_CALL: usize = lmt_core::iovec::MAX_ENTRIES;
/// The most bytes one system call moves (MAX_RW_COUNT, read(2)).
pub const BYTES_PER_CALL: u64 = 0x7fff_f000;

/// Why a copy stopped early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The system call was refused.
    #[error("the kernel refused the copy: {0}")]
    Refused(Errno),
    /// The process is gone; its pid may name a stranger by now.
    #[error("the peer has died")]
    Dead,
}

/// What a copy achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Bytes moved; both cursors have gone forward by as many.
    pub bytes: u64,
    /// Why it stopped before `max_bytes` or the end of a list.
    pub error: Option<CopyError>,
}

/// Copies up to `max_bytes` between `local`, from `local_at` on, and the
/// peer's `remote`, from `remote_at` on, in the direction that `local` says.
///
/// It ends where either list does. Short copies are continued; bytes before a
/// bad page are moved and counted exactly, and the bad page is reported. The
/// peer's life is checked before each call that writes and after each that
/// reads: a stranger under a reused pid is never written, and what was read from
/// one is not counted.
///
/// What `remote` says is not checked here: a wrong address is the peer's loss
/// (EFAULT, or its own bytes garbled).
pub fn copy(
    process: &PeerProcess,
    mut local: Local<'_>,
    local_at: &mut Cursor,
    remote: &[RemoteSegment],
    remote_at: &mut Cursor,
    max_bytes: u64,
) -> Copied {
    let mut bytes = 0;
    loop {
        let want = (max_bytes - bytes).min(BYTES_PER_CALL);
        if want == 0 || at_end(*local_at, local.buffer().segments()) || at_end(*remote_at, remote) {
            return Copied { bytes, error: None };
        }
        match call(process, &mut local, *local_at, remote, *remote_at, want) {
            // There was something to move, so nothing moved is no progress
            // that a further call could make.
            Ok(0) => return Copied { bytes, error: Some(CopyError::Refused(Errno::EFAULT)) },
            Ok(moved) => {
                let moved = moved.min(want);
                local_at.advance(local.buffer().segments(), moved);
                remote_at.advance(remote, moved);
                bytes += moved;
            }
            Err(error) => return Copied { bytes, error: Some(error) },
        }
    }
}

fn at_end<E: lmt_core::cursor::Extent>(mut at: Cursor, list: &[E]) -> bool {
    at.take(list, 1).is_none()
}

/// One system call, between the two looks at the pidfd.
fn call(
    process: &PeerProcess,
    local: &mut Local<'_>,
    local_at: Cursor,
    remote: &[RemoteSegment],
    remote_at: Cursor,
    want: u64,
) -> Result<u64, CopyError> {
    let pid = process.pid().ok_or(CopyError::Refused(Errno::ESRCH))?;
    let segments = local.buffer().segments().len().max(remote.len());
    loop {
        // A write must not hit a stranger under a reused pid. A read needs no
        // look before: the process that still lives after it had its pid all
        // the while, and what was read otherwise is not counted.
        if matches!(local, Local::OutOf(_)) && !process.holds_pid() {
            return Err(CopyError::Dead);
        }
        // The arrays live on the stack and are cleared first: a contiguous
        // copy does not pay for the long ones.
        let result = match segments {
            ..=1 => crate::sys::copy_once::<1>(pid, local, local_at, remote, remote_at, want),
            2..=16 => crate::sys::copy_once::<16>(pid, local, local_at, remote, remote_at, want),
            _ => crate::sys::copy_once::<SEGMENTS_PER_CALL>(pid, local, local_at, remote, remote_at, want),
        };
        if matches!(local, Local::Into(_)) && !process.holds_pid() {
            return Err(CopyError::Dead);
        }
        match result {
            Ok(moved) => return Ok(moved),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(CopyError::Refused(errno)),
        }
    }
}

/// Reads `target.len()` bytes at `address` in the peer.
///
/// # Errors
/// [`CopyError`]; `target` then holds what came before.
pub fn read_bytes(process: &PeerProcess, address: u64, target: &mut [u8]) -> Result<(), CopyError> {
    lmt_core::buffer::lend_mut(target, |buffer| whole(process, Local::Into(buffer), address))
}

/// Writes `source` to `address` in the peer.
///
/// # Errors
/// [`CopyError`]; what came before is written then.
pub fn write_bytes(process: &PeerProcess, address: u64, source: &[u8]) -> Result<(), CopyError> {
    lmt_core::buffer::lend(source, |buffer| whole(process, Local::OutOf(buffer), address))
}

fn whole(process: &PeerProcess, local: Local<'_>, address: u64) -> Result<(), CopyError> {
    let bytes = local.buffer().total_bytes();
    let remote = [RemoteSegment { address, bytes }];
    let (mut here, mut there) = (Cursor::default(), Cursor::default());
    let copied = copy(process, local, &mut here, &remote, &mut there, bytes);
    copied.error.map_or(Ok(()), Err)
}

/// Fills `local` from the peer's `remote`, from `remote_offset` on, up to the
/// end of either or the first error: get, for regions.
pub fn read_peer(
    process: &PeerProcess,
    remote: &[RemoteSegment],
    remote_offset: u64,
    local: &mut Buffer,
) -> Copied {
    let (mut here, mut there) = (Cursor::default(), Cursor::at(remote, remote_offset));
    copy(process, Local::Into(local), &mut here, remote, &mut there, u64::MAX)
}

/// Copies `local` into the peer's `remote`, from `remote_offset` on, up to the
/// end of either or the first error: put, for regions.
pub fn write_peer(
    process: &PeerProcess,
    remote: &[RemoteSegment],
    remote_offset: u64,
    local: &Buffer,
) -> Copied {
    let (mut here, mut there) = (Cursor::default(), Cursor::at(remote, remote_offset));
    copy(process, Local::OutOf(local), &mut here, remote, &mut there, u64::MAX)
}

/// Copies between declared memory of a peer and `local`, at once, up to the end
/// of either or the first error.
pub fn copy_registered(process: &PeerProcess, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Copied {
    let mut local_at = Cursor::at(local.segments(), copy.local_offset);
    let side = match copy.direction {
        Direction::Get => Local::Into(local),
        Direction::Put => Local::OutOf(local),
    };
    let mut pieces = window(copy);
    let (one, many);
    // One piece, the usual case, needs no list in the heap.
    let remote = match (pieces.next(), pieces.next()) {
        (Some(only), None) => {
            one = [only];
            &one[..]
        }
        (first, second) => {
            many = first.into_iter().chain(second).chain(pieces).collect::<Vec<_>>();
            &many[..]
        }
    };
    self::copy(process, side, &mut local_at, remote, &mut Cursor::default(), copy.max_bytes)
}

/// As [`copy_registered`], for [`lmt_core::mechanism::Regions::copy_registered`].
///
/// # Errors
/// What [`fault_of`] makes of the error.
pub fn one_sided(process: &PeerProcess, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, Fault> {
    let copied = copy_registered(process, local, copy);
    copied.error.map_or(Ok(copied.bytes), |error| Err(fault_of(error, process)))
}

/// The pieces of a peer's memory that a copy is about, no more than it needs.
/// Impossible ones are cut: the kernel answers EFAULT to what is left.
fn window(copy: &RegisteredCopy<'_>) -> impl Iterator<Item = RemoteSegment> {
    let mut at = Cursor::at(copy.remote, copy.remote_offset);
    let mut left_bytes = copy.max_bytes;
    std::iter::from_fn(move || {
        let piece = at.take(copy.remote, left_bytes)?;
        left_bytes -= piece.bytes;
        let address = (copy.remote[piece.index].address as u64).saturating_add(piece.offset);
        Some(RemoteSegment { address, bytes: piece.bytes.min(u64::MAX - address) })
    })
}

/// What an error means for a transfer with this peer.
pub fn fault_of(error: CopyError, process: &PeerProcess) -> Fault {
    let CopyError::Refused(errno) = error else {
        return Fault::PeerDead;
    };
    if errno == Errno::ESRCH && process.has_ended() {
        return Fault::PeerDead;
    }
    Fault::Demote {
        errno: errno as i32,
        for_good: matches!(errno, Errno::EPERM | Errno::ESRCH | Errno::ENOSYS),
        sentence: sentence(errno, process),
    }
}
