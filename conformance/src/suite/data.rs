//! Messages in memory: bytes that depend on their position, in pieces with
//! guard bytes around them.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use lmt_core::mechanism::Reach;
use lmt_core::shared_buffer::{SharedBuffer, alloc};

/// What stands where nothing may be written, and where a message is still to
/// arrive.
const POISON: u8 = 0xa5;
/// Guard bytes before the first and behind the last piece.
const GUARD_BYTES: usize = 256;
const PAGE_BYTES: usize = 4096;

/// The byte at `offset` of message `seed`.
pub(super) fn byte_at(seed: u64, offset: u64) -> u8 {
    let mixed = (offset ^ seed.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ (mixed >> 32) as u8
}

/// Numbers that look random and are the same in every run.
#[derive(Clone)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Whether messages of this process are in shared buffers.
static IN_SHARED_BUFFERS: AtomicBool = AtomicBool::new(false);

/// From now on messages are in the memory that a mechanism of this reach copies.
pub(super) fn fit(reach: Reach) {
    // Relaxed: one thread sets up what it uses itself.
    IN_SHARED_BUFFERS.store(reach == Reach::SharedBuffers, Ordering::Relaxed);
}

/// Whether messages are in shared buffers.
pub(super) fn in_shared_buffers() -> bool {
    // Relaxed: see `fit`.
    IN_SHARED_BUFFERS.load(Ordering::Relaxed)
}

/// Memory of the kind that the mechanism copies.
enum Memory {
    Private(Vec<u8>),
    Shared(SharedBuffer),
}

impl Memory {
    fn poisoned(bytes: usize) -> Self {
        if !in_shared_buffers() {
            return Self::Private(vec![POISON; bytes]);
        }
        let mut memory = alloc(bytes).expect("there is memory for a message");
        memory.fill(POISON);
        Self::Shared(memory)
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Private(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Private(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

/// Memory for one message, in pieces. All of it is poisoned at first.
pub(super) struct Scattered {
    memory: Memory,
    /// In order, and apart.
    pieces: Vec<Range<usize>>,
}

impl Scattered {
    /// Pieces of these lengths; the first begins `offset_in_page` bytes behind
    /// the start of a page, the others where the one before ends and `gap` bytes
    /// further.
    pub fn new(offset_in_page: usize, lengths: &[usize], mut gap: impl FnMut() -> usize) -> Self {
        let mut at = GUARD_BYTES.next_multiple_of(PAGE_BYTES) + offset_in_page;
        let mut pieces: Vec<Range<usize>> = Vec::with_capacity(lengths.len());
        for length in lengths {
            pieces.push(at..at + length);
            at += length + gap();
        }
        let memory = Memory::poisoned(at + GUARD_BYTES + PAGE_BYTES);
        let to_page = memory.as_ptr().addr().next_multiple_of(PAGE_BYTES) - memory.as_ptr().addr();
        for piece in &mut pieces {
            *piece = piece.start + to_page..piece.end + to_page;
        }
        Self { memory, pieces }
    }

    /// One piece at the start of a page.
    pub fn contiguous(bytes: usize) -> Self {
        Self::new(0, &[bytes], || 0)
    }

    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(ExactSizeIterator::len).sum()
    }

    /// Writes message `seed` into the pieces.
    pub fn fill(mut self, seed: u64) -> Self {
        let mut offset = 0;
        for piece in self.pieces.clone() {
            for byte in &mut self.memory[piece] {
                *byte = byte_at(seed, offset);
                offset += 1;
            }
        }
        self
    }

    /// Checks that the first `bytes` bytes are those of message `seed`, and all
    /// else is untouched.
    pub fn check(&self, seed: u64, bytes: usize) {
        let (mut offset, mut behind) = (0_usize, 0);
        for piece in &self.pieces {
            self.check_untouched(behind..piece.start);
            behind = piece.end;
            let arrived = piece.len().min(bytes - offset);
            for (at, found) in self.memory[piece.start..piece.start + arrived].iter().enumerate() {
                let expected = byte_at(seed, (offset + at) as u64);
                assert!(
                    *found == expected,
                    "byte {} of {bytes} of message {seed} is {found:#x} and should be {expected:#x}",
                    offset + at,
                );
            }
            offset += arrived;
            self.check_untouched(piece.start + arrived..piece.end);
        }
        assert_eq!(offset, bytes, "the buffer of message {seed} is too short to have been given all of it");
        self.check_untouched(behind..self.memory.len());
    }

    fn check_untouched(&self, range: Range<usize>) {
        let changed = self.memory[range].iter().position(|byte| *byte != POISON);
        assert_eq!(changed, None, "a byte outside of the message was written");
    }

    pub fn slices(&self) -> Vec<IoSlice<'_>> {
        self.pieces.iter().map(|piece| IoSlice::new(&self.memory[piece.clone()])).collect()
    }

    pub fn slices_mut(&mut self) -> Vec<IoSliceMut<'_>> {
        let mut slices = Vec::with_capacity(self.pieces.len());
        let (mut rest, mut at) = (&mut *self.memory, 0);
        for piece in &self.pieces {
            let (_, from) = rest.split_at_mut(piece.start - at);
            let (slice, behind) = from.split_at_mut(piece.len());
            slices.push(IoSliceMut::new(slice));
            (rest, at) = (behind, piece.end);
        }
        slices
    }
}

/// Cuts `bytes` into up to `most` pieces, some of them empty.
pub(super) fn cut(random: &mut Random, bytes: usize, most: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..most).map(|_| random.below(bytes as u64 + 1) as usize).collect();
    ends.push(bytes);
    ends.sort_unstable();
    let mut start = 0;
    let lengths = ends.into_iter().map(|end| end - std::mem::replace(&mut start, end));
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.insert(random.below(lengths.len() as u64) as usize, 0);
    lengths
}
