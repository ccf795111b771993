//! Memory for the bytes of unexpected messages: what is given back is taken
//! again, so that a message allocates nothing once as much was kept before.
#![forbid(unsafe_code)]

use std::ops::{Deref, DerefMut};

/// The least memory of one message, in bytes.
const MIN_BYTES: usize = 64;

/// Four sizes for each doubling, from [`MIN_BYTES`] to a MiB, the longest
/// message in cells: at most a quarter of the memory is not used.
const SIZES: usize = 60;

/// The bytes of one message.
#[derive(Debug)]
pub(crate) struct PooledBytes {
    memory: Box<[u8]>,
    bytes: usize,
}

impl Deref for PooledBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[..self.bytes]
    }
}

impl DerefMut for PooledBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }
}

/// Memory that is free, by its size. Both taking and giving back take the same
/// time whatever was kept before.
#[derive(Debug)]
pub(crate) struct UnexpectedPool {
    spare: Vec<Vec<Box<[u8]>>>,
    spare_bytes: u64,
    /// What is free beyond this goes back to the allocator.
    max_free_bytes: u64,
    /// The size of which memory goes back next.
    next: usize,
}

/// The number of the size for so many bytes, and that size in bytes.
const fn size_of(bytes: usize) -> (usize, usize) {
    let bytes = if bytes < MIN_BYTES { MIN_BYTES } else { bytes };
    // 2^shift is an eighth of the power of two at or above `bytes`.
    let shift = (bytes - 1).ilog2() - 2;
    let eighths = bytes.div_ceil(1 << shift);
    ((shift as usize - 3) * 4 + eighths - 5, eighths << shift)
}

impl UnexpectedPool {
    /// A store that keeps at most so many free bytes.
    pub fn new(max_free_bytes: u64) -> Self {
        Self { spare: vec![Vec::new(); SIZES], spare_bytes: 0, max_free_bytes, next: 0 }
    }

    /// Memory for a message of so many bytes, with any content.
    pub fn take(&mut self, bytes: usize) -> PooledBytes {
        let (number, size_bytes) = size_of(bytes);
        let memory = match self.spare.get_mut(number).and_then(Vec::pop) {
            Some(memory) => {
                self.spare_bytes -= memory.len() as u64;
                memory
            }
            None => vec![0; size_bytes].into_boxed_slice(),
        };
        PooledBytes { memory, bytes }
    }

    /// Takes back what a message no longer needs.
    pub fn give_back(&mut self, kept: PooledBytes) {
        let size_bytes = kept.memory.len() as u64;
        while self.spare_bytes + size_bytes > self.max_free_bytes {
            if !self.let_go() {
                return;
            }
        }
        let (number, _) = size_of(kept.memory.len());
        if let Some(spare) = self.spare.get_mut(number) {
            self.spare_bytes += size_bytes;
            spare.push(kept.memory);
        }
    }

    /// Gives one piece of free memory to the allocator, of each size in turn,
    /// so that sizes which nobody asks for any more make room for others.
    /// Returns whether there was one.
    fn let_go(&mut self) -> bool {
        for _ in 0..SIZES {
            self.next = (self.next + 1) % SIZES;
            if let Some(memory) = self.spare[self.next].pop() {
                self.spare_bytes -= memory.len() as u64;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
#[path = "unexpected_store_tests.rs"]
mod tests;
