//! The few steps of regions that touch memory: entries in shared memory, and
//! bytes that are reachable from here.
#![allow(unsafe_code)] // Views shared memory as atomics, and mapped memory as bytes.

use std::os::fd::OwnedFd;

use lmt_copy::Distance;

use super::entry::{Entry, Place, Words};
use super::{ENTRY_BYTES, RegionError, RegionKey};
use crate::base::sync::AtomicU64;
use crate::mechanism::Direction;
use crate::memory::buffer::{Access, Buffer, Leaving, Segment, Taking};
use crate::memory::shared_memory::{AttachError, SharedMemory};

/// A part of lent memory, as the other side of a copy.
pub(super) fn view_lent(lent: &Buffer, offset: u64, bytes: u64, access: Access) -> Option<Buffer> {
    let pieces: Vec<Segment> = lent.pieces(offset..offset.saturating_add(bytes)).collect();
    view_of(&pieces, access)
}

/// The first line of a table, which says what it is.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Head {
    /// [`super::remote::MAGIC`], written once.
    pub magic: AtomicU64,
    /// The owner's id, as two words in memory order; written once.
    pub owner: [AtomicU64; 2],
    /// Lines whose memory the owner has taken, the head among them; grows. A
    /// look at others would take memory, which may not be there.
    pub lines: AtomicU64,
    /// For peers that find out whether they can write here; says nothing.
    scratch: [AtomicU64; 4],
}

/// Where [`Head::scratch`] is.
pub(super) const SCRATCH_OFFSET: usize = std::mem::offset_of!(Head, scratch);

const _: () = assert!(size_of::<Head>() == ENTRY_BYTES && align_of::<Head>() == 64);

/// The head of a table; none if the memory has not even one line.
pub(super) fn head(memory: &SharedMemory) -> Option<&Head> {
    if memory.len() < ENTRY_BYTES || !memory.is_usable_here() {
        return None;
    }
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and is at
    // least a line long. Head is all atomics, which any bytes are valid for
    // and which other processes may change.
    Some(unsafe { memory.base().cast::<Head>().as_ref() })
}

/// Entry `index` of a table. 0 is the head, and no entry.
pub(super) fn words(memory: &SharedMemory, index: u16) -> Option<&Words> {
    let start = usize::from(index) * ENTRY_BYTES;
    if index == 0 || start + ENTRY_BYTES > memory.len() || !memory.is_usable_here() {
        return None;
    }
    let at = memory.base().as_ptr().wrapping_add(start);
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and the
    // line at `start` lies in it, aligned to 64. Words is all atomics, which
    // any bytes are valid for and which other processes may change.
    Some(unsafe { &*at.cast::<Words>() })
}

/// Maps the memory of a peer's allocated region, which must be just as long as
/// the peer's table says.
///
/// # Errors
/// It is not what an owner allocates: [`AttachError`].
pub fn attach_shared(fd: OwnedFd, key: &RegionKey) -> Result<SharedMemory, AttachError> {
    let bytes = usize::try_from(key.total_bytes).unwrap_or(usize::MAX).max(1);
    SharedMemory::attach(fd, bytes, bytes)
}

/// Copies up to `bytes` between shared memory, from `offset` on, and `local`,
/// from `local_offset` on; what lies past the end of the shared memory is left
/// out. Returns how many bytes.
pub fn copy_shared(
    memory: &SharedMemory,
    direction: Direction,
    offset: u64,
    local: &mut Buffer,
    local_offset: u64,
    bytes: u64,
) -> u64 {
    match shared_piece(memory, offset, bytes) {
        Some(piece) => local_copy(piece, direction, local, local_offset, Taking::Near),
        None => 0,
    }
}

/// Copies up to `bytes` out of shared memory, from `offset` on, past the caches into
/// `local`, where the CPU has such stores: for more than the caches hold, which need not
/// read then what is written. Returns how many bytes.
pub fn take_shared_past_caches(memory: &SharedMemory, offset: u64, local: &mut Buffer, bytes: u64) -> u64 {
    let Some(piece) = shared_piece(memory, offset, bytes) else { return 0 };
    // SAFETY: a piece of a mapping that is in this process, apart from `local` as in
    // `put_shared`.
    unsafe { take_piece(piece, local, 0, Taking::PastCaches) }
}

/// As [`copy_shared`] into the shared memory, out of a buffer that is only read; or past
/// the caches, where the CPU has such stores: for lines that other cores hold so far away
/// that to take them back takes longer than memory does.
pub fn put_shared(
    memory: &SharedMemory,
    offset: u64,
    local: &Buffer,
    local_offset: u64,
    bytes: u64,
    past_caches: bool,
) -> u64 {
    let Some(piece) = shared_piece(memory, offset, bytes) else { return 0 };
    let leaving = if past_caches { Leaving::PastCaches } else { Leaving::For(Distance::Peer) };
    // SAFETY: a piece of a mapping that is in this process, which all that have it may
    // write. `local` is apart from it: `Buffer::new`'s caller has promised that nobody
    // else writes its segments while it lives, and peers may write this mapping.
    unsafe { put_piece(piece, local, local_offset, leaving) }
}

fn shared_piece(memory: &SharedMemory, offset: u64, bytes: u64) -> Option<Segment> {
    // Where it was mapped by a parent process there is nothing here.
    if !memory.is_usable_here() {
        return None;
    }
    let start = offset.min(memory.len() as u64);
    let bytes = bytes.min(memory.len() as u64 - start) as usize;
    Some(Segment { address: memory.base().as_ptr().expose_provenance() + start as usize, bytes })
}

/// Copies between a part of lent memory and `local`, from `local_offset` on.
/// Returns how many bytes, fewer where either ends.
pub(super) fn copy_lent(
    lent: &Buffer,
    direction: Direction,
    offset: u64,
    local: &mut Buffer,
    local_offset: u64,
    bytes: u64,
) -> u64 {
    if direction == Direction::Put && lent.access() != Access::Write {
        return 0;
    }
    let mut done = 0;
    for piece in lent.pieces(offset..offset.saturating_add(bytes)) {
        done += local_copy(piece, direction, local, local_offset.saturating_add(done), Taking::Near);
    }
    done
}

/// Copies all of one view of mapped memory to another; none, and nothing is
/// copied, where the two share bytes here.
pub(super) fn copy_apart(source: &Buffer, target: &mut Buffer) -> Option<u64> {
    let overlap = |a: &Segment, b: &Segment| {
        a.address < b.address.saturating_add(b.bytes) && b.address < a.address.saturating_add(a.bytes)
    };
    if source.segments().iter().any(|a| target.segments().iter().any(|b| overlap(a, b))) {
        return None;
    }
    Some(copy_lent(source, Direction::Get, 0, target, 0, source.total_bytes()))
}

/// Copies between one piece of memory that is reachable here and `local`, from
/// `local_offset` on. The piece must have been checked to lie in a mapping or a
/// lent buffer, one lent for writing if it is to be written.
fn local_copy(
    piece: Segment,
    direction: Direction,
    local: &mut Buffer,
    local_offset: u64,
    taking: Taking,
) -> u64 {
    match direction {
        // SAFETY: the callers cut the piece out of memory that is mapped
        // and readable here, and that `local` does not overlap: it is
        // lent to that operation only, or `copy_apart` has compared the
        // addresses.
        Direction::Get => unsafe { take_piece(piece, local, local_offset, taking) },
        // SAFETY: as above, and writable: the callers have checked that it was lent for
        // writing, or it is shared memory.
        Direction::Put => unsafe { put_piece(piece, local, local_offset, Leaving::For(Distance::Peer)) },
    }
}

/// The same out of the piece.
///
/// # Safety
/// The piece must be mapped here, and apart from `local`'s segments.
unsafe fn take_piece(piece: Segment, local: &mut Buffer, local_offset: u64, taking: Taking) -> u64 {
    let from = std::ptr::with_exposed_provenance::<u8>(piece.address);
    // SAFETY: the caller's promise. Peers may write shared memory meanwhile; any bytes are
    // valid, and no reference is made.
    unsafe { local.write_raw(local_offset, from, piece.bytes, taking) as u64 }
}

/// The same into the piece.
///
/// # Safety
/// The piece must be mapped and writable here, and apart from `local`'s segments.
unsafe fn put_piece(piece: Segment, local: &Buffer, local_offset: u64, leaving: Leaving) -> u64 {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(piece.address);
    // SAFETY: the caller's promise.
    unsafe { local.read_raw(local_offset, to, piece.bytes, leaving) as u64 }
}

/// A part of memory that is reachable here, as the other side of a copy with
/// another region. The view must not outlive what it shows.
pub(super) fn view_of(pieces: &[Segment], access: Access) -> Option<Buffer> {
    // SAFETY: the callers cut the pieces out of a mapping or of memory lent to
    // a region (for writing, if `access` is that), which they hold for as long
    // as they use the view. Peers may write it at the same time: the bytes are
    // only copied by raw pointers or by the kernel, and any bytes are valid.
    unsafe { Buffer::new(pieces, access) }.ok()
}

/// The same for a part of shared memory.
pub(super) fn view_shared(memory: &SharedMemory, offset: u64, bytes: u64) -> Option<Buffer> {
    view_of(&[shared_piece(memory, offset, bytes)?], Access::Write)
}

/// Calls `work` with memory of this call's own as a buffer.
pub(super) fn with_bounce<T>(bounce: &mut [u8], work: impl FnOnce(&mut Buffer) -> T) -> Option<T> {
    // SAFETY: the slice is borrowed exclusively for as long as the buffer,
    // which does not leave this function, lives.
    let mut buffer = unsafe { Buffer::new(&[Segment::of_mut(bounce)], Access::Write) }.ok()?;
    Some(work(&mut buffer))
}

/// The most pieces of a region's list that are taken from a peer.
pub(super) const LIST_MAX: u64 = 1 << 20;

/// Fetches the list of a region's pieces out of its owner by `get`, which
/// copies the given remote segment into the buffer. Checks it: its pieces must
/// add up to the region's length.
pub(super) fn fetch_list<E: From<RegionError>>(
    entry: &Entry,
    get: impl FnOnce(Segment, &mut Buffer) -> Result<(), E>,
) -> Result<Vec<Segment>, E> {
    let (address, count) = match entry.place {
        Place::One(segment) => return Ok(vec![segment]),
        Place::Shared { .. } => return Ok(Vec::new()),
        Place::List { address, count } => (address, count),
    };
    if count > LIST_MAX {
        return Err(RegionError::NotRegistered.into());
    }
    let mut list = vec![[0u8; size_of::<Segment>()]; count as usize];
    let raw = list.as_flattened_mut();
    let bytes = raw.len();
    let fetched = with_bounce(raw, |buffer| get(Segment { address, bytes }, buffer));
    fetched.unwrap_or_else(|| Err(RegionError::NotRegistered.into()))?;
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
    let segment = |raw: &[u8; 16]| Segment { address: word(&raw[..8]), bytes: word(&raw[8..]) };
    let list: Vec<Segment> = list.iter().map(segment).collect();
    let total = list.iter().try_fold(0u64, |sum, s| sum.checked_add(s.bytes as u64));
    if total == Some(entry.total_bytes) { Ok(list) } else { Err(RegionError::NotRegistered.into()) }
}
