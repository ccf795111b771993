//! What the messages of a benchmark lie in.

use std::ops::{Deref, DerefMut};

use clap::ValueEnum;
use lmt::SharedBuffer;
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::sizes::human;

/// A kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// From malloc.
    #[default]
    Private,
    /// From `lmt::alloc`: peers can map it.
    Shared,
}

/// One buffer of it.
pub enum Held {
    /// From malloc.
    Private(Pages),
    /// From `lmt::alloc`.
    Shared(SharedBuffer),
}

/// Room for so many bytes of malloc's memory.
///
/// # Errors
/// There is none: this process may not have so much, or the machine has not.
pub fn room(bytes: usize) -> Result<Vec<u8>, BenchError> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map(|()| room).map_err(|_| {
        BenchError::Failure(format!(
            "{} of memory cannot be had; take smaller sizes or fewer ranks, or raise the limit on address space (RLIMIT_AS, ulimit -v)",
            human(bytes as u64)
        ))
    })
}

/// Memory of malloc's that begins with a page, every byte of which was written.
///
/// Where the bytes of a message lie in their pages says much of how fast they are
/// copied: a target 16 to 48 bytes behind its source, counted within a page, takes up
/// to a third longer (a load there waits for stores whose addresses end alike). malloc
/// returns now the one and now the other, so contenders would differ by chance.
pub struct Pages {
    memory: Vec<u8>,
    start: usize,
}

impl Pages {
    /// So many bytes, each `byte`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn filled(bytes: usize, byte: u8) -> Result<Self, BenchError> {
        // A page is no more than a size.
        let page = page_bytes() as usize;
        let mut memory = room(bytes.saturating_add(page))?;
        let start = memory.as_ptr().align_offset(page).min(page);
        memory.resize(start + bytes, byte);
        Ok(Self { memory, start })
    }
}

/// Fills memory with bytes of which no two lines say the same, and no two seeds: a message is
/// to look like an application's, and like no other that lies elsewhere. Taken for numbers of
/// 32 bits with a fraction they are from 2^-63 to 2, so that their sums cost what sums cost.
pub fn mix(data: &mut [u8], seed: u8) {
    let words = data.chunks_mut(size_of::<u64>());
    for (number, word) in (u64::from(seed) << 56..).zip(words) {
        let mixed = number.wrapping_mul(MIX).rotate_left(31).wrapping_mul(MIX);
        let mixed = (mixed & BELOW_TWO | MIN_EXPONENT).to_le_bytes();
        word.copy_from_slice(&mixed[..word.len()]);
    }
}

/// With no other bits the two numbers in a word are positive and below 2...
const BELOW_TWO: u64 = 0x3FFF_FFFF_3FFF_FFFF;
/// ...and with these at least 2^-63.
const MIN_EXPONENT: u64 = 0x2000_0000_2000_0000;
/// An odd number: to multiply with it loses nothing.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

impl Memory {
    /// In words.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Private => "from malloc, beginning with a page",
            Self::Shared => "memory that other ranks can map",
        }
    }

    /// A buffer of it, with bytes as [`mix`] makes them.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn mixed(self, bytes: usize, seed: u8) -> Result<Held, BenchError> {
        let mut buffer = self.filled(bytes, seed)?;
        mix(&mut buffer, seed);
        Ok(buffer)
    }

    /// A buffer of it, every byte of which is `byte`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn filled(self, bytes: usize, byte: u8) -> Result<Held, BenchError> {
        match self {
            Self::Private => Ok(Held::Private(Pages::filled(bytes, byte)?)),
            Self::Shared => {
                let mut buffer = lmt::alloc(bytes).map_err(|short| BenchError::Failure(short.to_string()))?;
                buffer.fill(byte);
                Ok(Held::Shared(buffer))
            }
        }
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Private(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Private(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

/// The size of a page, in bytes.
pub fn page_bytes() -> u64 {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4096)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
