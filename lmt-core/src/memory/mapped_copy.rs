//! Copies between a message here and a peer's memory that is mapped here, piece by piece,
//! whatever the segments of the two.

use lmt_copy::Distance;

use super::buffer::{Access, Buffer};
use super::cursor::Cursor;
use crate::vocabulary::model::Role;

/// One piece of such a copy: `bytes` bytes from `source` to `target`, of which one is in
/// the message and one in the peer's memory.
#[derive(Clone, Copy, Debug)]
pub struct PieceCopy {
    /// Where the bytes go.
    pub target: *mut u8,
    /// Where they are.
    pub source: *const u8,
    /// How many, at least 1.
    pub bytes: usize,
    /// Who reads the target next.
    pub distance: Distance,
}

/// Copies up to `max_bytes` between `data`, from `local_at` on, and a peer's memory: into
/// `data` for a receiver, out of it for a sender. Returns how many bytes; fewer where
/// either ends, where `data` is not lent for that, or where a copy fails.
///
/// `remote` gives the peer's next piece, of at most as many bytes as it is told: its
/// address here, and its length; one without bytes is the end. `copy` copies one piece and says whether it could: the
/// end in the message lies in a segment that is lent for just that, for a receiver for
/// writing, and which nobody else uses meanwhile; the other end in what `remote` gave.
pub fn copy_mapped(
    role: Role,
    data: &mut Buffer,
    local_at: &mut Cursor,
    max_bytes: u64,
    mut remote: impl FnMut(u64) -> Option<(*mut u8, u64)>,
    mut copy: impl FnMut(PieceCopy) -> bool,
) -> u64 {
    if role == Role::Receiver && data.access() != Access::Write {
        return 0;
    }
    let mut copied = 0;
    while copied < max_bytes
        && let Some((far, far_bytes)) = remote(max_bytes - copied)
    {
        let mut done = 0;
        while let Some(near) = local_at.take(data.segments(), far_bytes - done) {
            let address = data.segments()[near.index].address + near.offset as usize;
            let (bytes, far) = (near.bytes as usize, far.wrapping_add(done as usize));
            let is_copied = match role {
                Role::Receiver => {
                    let target = std::ptr::with_exposed_provenance_mut(address);
                    copy(PieceCopy { target, source: far, bytes, distance: Distance::Near })
                }
                Role::Sender => {
                    let source = std::ptr::with_exposed_provenance(address);
                    copy(PieceCopy { target: far, source, bytes, distance: Distance::Peer })
                }
            };
            if !is_copied {
                return copied + done;
            }
            done += near.bytes;
        }
        copied += done;
        if done < far_bytes.max(1) {
            break;
        }
    }
    copied
}

#[cfg(test)]
#[path = "mapped_copy_tests.rs"]
mod tests;
