//! Where things are in an inbox's shared memory, and the only code that makes
//! references and copies of it.
//!
//! ```text
//! control   3 lines: what this is, sleeping, tail hint
//! claims    cells x 8 B, rounded up to a line
//! lines     cells x 64 B
//! credits   max_peers x 64 B
//! cells     cells x cell_bytes, from a page boundary on
//! ```
#![allow(unsafe_code)] // Turns offsets into references and copies cells.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use lmt_copy::Distance;

use super::ring::{LINE_WORDS, Line, Ring};
use crate::memory::buffer::{Buffer, Leaving, Taking};
use crate::memory::shared_memory::{AttachError, SharedMemory};
use crate::vocabulary::error::MemoryError;

/// "lmtinb" and the layout's version in one word; changes with the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"lmtinb\0\x01");

const LINE_BYTES: usize = 64;

const PAGE_BYTES: usize = 4096;

/// Words of a line in front of its payload: publish, length and aux, tag.
pub(crate) const HEADER_WORDS: usize = 3;

/// The longest message that travels in one cache line, in bytes.
pub const INLINE_BYTES: usize = (LINE_WORDS - HEADER_WORDS) * 8;

/// The first lines. Written by the creator before anyone else has the memory,
/// but for `sleeping` (receiver and senders) and `tail_hint` (senders).
#[repr(C, align(64))]
struct Control {
    magic: AtomicU64,
    cells: AtomicU64,
    cell_bytes: AtomicU64,
    max_peers: AtomicU64,
    sleeping: PaddedWord,
    tail_hint: PaddedWord,
}

/// A word on a line of its own.
#[repr(C, align(64))]
struct PaddedWord(AtomicU64);

/// What one peer tells the inbox's owner; written by that peer only.
#[repr(C, align(64))]
struct CreditLine {
    drained_cells: AtomicU64,
    released_bytes: AtomicU64,
    released_messages: AtomicU64,
}

const _: () = assert!(size_of::<Control>() == 3 * LINE_BYTES);

const _: () = assert!(std::mem::offset_of!(Control, sleeping) == LINE_BYTES);

const _: () = assert!(std::mem::offset_of!(Control, tail_hint) == 2 * LINE_BYTES);

const _: () = assert!(size_of::<Line>() == LINE_BYTES && align_of::<Line>() == LINE_BYTES);

const _: () = assert!(size_of::<CreditLine>() == LINE_BYTES);

const _: () = assert!(size_of::<AtomicU64>() == 8 && align_of::<AtomicU64>() == 8);

/// Counters that a peer keeps in its line of this inbox's credit table, all
/// cumulative and wrapping. What they grant is the business of the layer above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Credit {
    /// Cells that the peer has drained of those that this endpoint sent it.
    pub drained_cells: u64,
    /// Bytes of unexpected messages from this endpoint that it has let go of.
    pub released_bytes: u64,
    /// How many unexpected messages those were.
    pub released_messages: u64,
}

/// The sizes of an inbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    cells: usize,
    cell_bytes: usize,
    max_peers: usize,
}

/// Why sizes make no inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// Not a power of two, too few or too many.
    #[error("an inbox of {cells} cells is impossible; inbox_cells must be a power of two from 4 to 65536")]
    Cells {
        /// What was asked for.
        cells: u64,
    },
    /// No multiple of a cache line, too small or too large.
    #[error("cells of {cell_bytes} bytes are impossible; cell_bytes must be a multiple of 64 up to 1048576")]
    CellBytes {
        /// What was asked for.
        cell_bytes: u64,
    },
    /// None or too many.
    #[error("an inbox for {max_peers} peers is impossible; there must be 1 to 65535")]
    Peers {
        /// What was asked for.
        max_peers: u64,
    },
}

impl Geometry {
    /// `cells` slots with payloads up to `cell_bytes` bytes, for senders with
    /// numbers below `max_peers`.
    ///
    /// # Errors
    /// [`GeometryError`] says which number is wrong and what would be right.
    pub fn new(cells: u32, cell_bytes: u32, max_peers: u32) -> Result<Self, GeometryError> {
        Self::checked(cells.into(), cell_bytes.into(), max_peers.into())
    }

    fn checked(cells: u64, cell_bytes: u64, max_peers: u64) -> Result<Self, GeometryError> {
        if !cells.is_power_of_two() || !(4..=1 << 16).contains(&cells) {
            return Err(GeometryError::Cells { cells });
        }
        if !cell_bytes.is_multiple_of(LINE_BYTES as u64) || !(64..=1 << 20).contains(&cell_bytes) {
            return Err(GeometryError::CellBytes { cell_bytes });
        }
        if !(1..1 << 16).contains(&max_peers) {
            return Err(GeometryError::Peers { max_peers });
        }
        let (cells, cell_bytes) = (cells as usize, cell_bytes as usize);
        Ok(Self { cells, cell_bytes, max_peers: max_peers as usize })
    }

    /// Slots; but see [`Geometry::usable_cells`].
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// The longest message in bytes.
    pub fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// Sender numbers are below this.
    pub fn max_peers(&self) -> usize {
        self.max_peers
    }

    /// How many messages can wait at once however the receiver is doing: it
    /// gives consumed slots back in batches, up to a quarter of all.
    pub fn usable_cells(&self) -> usize {
        self.cells - self.lazy_cells()
    }

    pub(super) fn lazy_cells(&self) -> usize {
        self.cells / 4
    }

    /// The bytes of shared memory that it takes.
    pub fn bytes(&self) -> usize {
        self.cells_offset() + self.cells * self.cell_bytes
    }

    const CLAIMS_OFFSET: usize = size_of::<Control>();

    #[inline]
    fn lines_offset(&self) -> usize {
        Self::CLAIMS_OFFSET + (self.cells * 8).next_multiple_of(LINE_BYTES)
    }

    #[inline]
    fn credits_offset(&self) -> usize {
        self.lines_offset() + self.cells * LINE_BYTES
    }

    #[inline]
    fn cells_offset(&self) -> usize {
        (self.credits_offset() + self.max_peers * LINE_BYTES).next_multiple_of(PAGE_BYTES)
    }
}

/// A mapped inbox, whose size fits its geometry.
#[derive(Debug)]
pub(super) struct InboxMemory {
    memory: SharedMemory,
    /// This process's own copy, checked; the shared one is not read again.
    geometry: Geometry,
    lines_offset: usize,
    credits_offset: usize,
    cells_offset: usize,
}

impl InboxMemory {
    pub(super) fn create(geometry: Geometry) -> Result<(Self, OwnedFd), MemoryError> {
        let (memory, fd) =
            SharedMemory::create("an endpoint's inbox", "inbox_cells", geometry.bytes(), true)?;
        let inbox = Self::new(memory, geometry);
        let control = inbox.control();
        // Relaxed: a peer gets the descriptor by a system call after this.
        control.cells.store(geometry.cells as u64, Ordering::Relaxed);
        control.cell_bytes.store(geometry.cell_bytes as u64, Ordering::Relaxed);
        control.max_peers.store(geometry.max_peers as u64, Ordering::Relaxed);
        control.magic.store(MAGIC, Ordering::Relaxed);
        Ok((inbox, fd))
    }

    pub(super) fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        let largest = Geometry { cells: 1 << 16, cell_bytes: 1 << 20, max_peers: (1 << 16) - 1 };
        let memory = SharedMemory::attach(fd, size_of::<Control>(), largest.bytes())?;
        // The offsets of an empty geometry are never used: only `control` is.
        let none = Geometry { cells: 0, cell_bytes: 0, max_peers: 0 };
        let unchecked = Self::new(memory, none);
        let control = unchecked.control();
        // Relaxed: written before the descriptor was sent here.
        if control.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(AttachError::WrongContent { what: "it is no inbox of this version" });
        }
        let geometry = Geometry::checked(
            control.cells.load(Ordering::Relaxed),
            control.cell_bytes.load(Ordering::Relaxed),
            control.max_peers.load(Ordering::Relaxed),
        );
        let Ok(geometry) = geometry else {
            return Err(AttachError::WrongContent { what: "the inbox's sizes are impossible" });
        };
        if geometry.bytes() != unchecked.memory.len() {
            return Err(AttachError::WrongContent { what: "the inbox's sizes do not fit the memory's" });
        }
        Ok(Self::new(unchecked.memory, geometry))
    }

    fn new(memory: SharedMemory, geometry: Geometry) -> Self {
        let lines_offset = geometry.lines_offset();
        let (credits_offset, cells_offset) = (geometry.credits_offset(), geometry.cells_offset());
        Self { memory, geometry, lines_offset, credits_offset, cells_offset }
    }

    #[inline]
    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(super) fn is_usable_here(&self) -> bool {
        self.memory.is_usable_here()
    }

    #[inline]
    fn control(&self) -> &Control {
        let control = self.memory.base().cast::<Control>();
        // SAFETY: the mapping is page-aligned, has at least a Control's size
        // (checked or made so), lives as long as `self`; all fields are atomics,
        // for which every value is valid and other processes' stores are fine.
        unsafe { control.as_ref() }
    }

    /// The shared words.
    #[inline]
    pub(super) fn ring(&self) -> Ring<'_> {
        let control = self.control();
        Ring {
            claims: self.slice(Geometry::CLAIMS_OFFSET, self.geometry.cells),
            lines: self.slice(self.lines_offset, self.geometry.cells),
            tail_hint: &control.tail_hint.0,
            sleeping: &control.sleeping.0,
        }
    }

    /// `count` values of a type made of atomics. Private, and called with the
    /// offsets above only.
    #[inline]
    fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        debug_assert!(offset + count * size_of::<T>() <= self.memory.len());
        // SAFETY: `bytes()` counts each table at its offset in full, and the
        // mapping has that size, so the address is within it.
        let first = unsafe { self.memory.base().add(offset) };
        // SAFETY: within the mapping as above, aligned (all offsets are
        // multiples of 64, the base of 4096), alive as long as `self`; T is
        // AtomicU64, Line or CreditLine: atomics, valid for any bytes, shared.
        unsafe { std::slice::from_raw_parts(first.cast::<T>().as_ptr(), count) }
    }

    fn credit_line(&self, peer: usize) -> Option<&CreditLine> {
        self.slice::<CreditLine>(self.credits_offset, self.geometry.max_peers).get(peer)
    }

    /// What `peer` last stored; none for a number that no peer can have.
    ///
    /// Each counter only grows, and they are read one by one: together they are
    /// a lower bound.
    #[inline]
    pub(super) fn credit(&self, peer: usize) -> Option<Credit> {
        let line = self.credit_line(peer)?;
        // Relaxed: the numbers order no access to other memory; a slot that is
        // free again says so itself, in its claim.
        Some(Credit {
            drained_cells: line.drained_cells.load(Ordering::Relaxed),
            released_bytes: line.released_bytes.load(Ordering::Relaxed),
            released_messages: line.released_messages.load(Ordering::Relaxed),
        })
    }

    #[inline]
    pub(super) fn store_credit(&self, peer: usize, credit: Credit) {
        let Some(line) = self.credit_line(peer) else {
            return;
        };
        // Relaxed: as in `credit`.
        line.drained_cells.store(credit.drained_cells, Ordering::Relaxed);
        line.released_bytes.store(credit.released_bytes, Ordering::Relaxed);
        line.released_messages.store(credit.released_messages, Ordering::Relaxed);
    }

    /// The bytes from `at` on of the cell of slot `slot`, and how many there
    /// are; `slot` is taken modulo the ring, `at` cut to the cell.
    #[inline]
    fn cell(&self, slot: usize, at: usize) -> (*mut u8, usize) {
        let at = at.min(self.geometry.cell_bytes);
        let slot = slot & (self.geometry.cells - 1);
        let offset = self.cells_offset + slot * self.geometry.cell_bytes + at;
        // SAFETY: `slot < cells` and `at <= cell_bytes`, so the offset is at
        // most `bytes()`, the mapping's size.
        let first = unsafe { self.memory.base().as_ptr().add(offset) };
        (first, self.geometry.cell_bytes - at)
    }

    /// Copies `bytes` into a cell, from its byte `at` on, as far as it goes.
    /// The caller holds the slot's claim, so nobody else uses the cell.
    #[inline]
    pub(super) fn write_cell(&self, slot: usize, at: usize, bytes: &[u8]) {
        let (target, room) = self.cell(slot, at);
        let length = bytes.len().min(room);
        // SAFETY: `length` bytes are in `bytes` and in the cell; a slice of this
        // process does not overlap the mapping, which is reached by raw
        // pointers only. Others do not touch a claimed cell; if a misbehaving
        // peer does, the message's bytes are wrong and nothing else.
        unsafe { lmt_copy::copy_toward(target, bytes.as_ptr(), length, Distance::Peer) };
    }

    /// The same from a buffer's bytes `range`.
    #[inline]
    pub(super) fn write_cell_from(&self, slot: usize, buffer: &Buffer, range: Range<u64>) {
        let (target, room) = self.cell(slot, 0);
        let length = range.end.saturating_sub(range.start).min(room as u64) as usize;
        // SAFETY: `target` has `room >= length` writable bytes, see `write_cell`.
        unsafe { buffer.read_raw(range.start, target, length, Leaving::For(Distance::Peer)) };
    }

    /// Copies the first bytes of a published cell that is not consumed yet.
    #[inline]
    pub(super) fn read_cell(&self, slot: usize, target: &mut [u8]) {
        let (source, room) = self.cell(slot, 0);
        let length = target.len().min(room);
        // SAFETY: `length` bytes are in the cell and in `target`, which do not
        // overlap (see `write_cell`); the sender wrote them before it published.
        unsafe { lmt_copy::copy_nonoverlapping(target.as_mut_ptr(), source, length) };
    }

    /// The same, `bytes` of them, to a buffer from its byte `offset` on;
    /// returns how many fitted.
    #[inline]
    pub(super) fn read_cell_to(&self, slot: usize, bytes: usize, buffer: &mut Buffer, offset: u64) -> usize {
        let (source, room) = self.cell(slot, 0);
        // SAFETY: as in `read_cell`; a buffer's segments are memory lent by
        // this process's application, not this mapping.
        unsafe { buffer.write_raw(offset, source, bytes.min(room), Taking::Near) }
    }
}
