//! What the messages of a benchmark lie in.

use std::ops::{Deref, DerefMut};

use clap::ValueEnum;
use lmt::SharedBuffer;
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
    Private(Vec<u8>),
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

impl Memory {
    /// In words.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Private => "from malloc",
            Self::Shared => "memory that other ranks can map",
        }
    }

    /// A buffer of it, every byte of which is `byte`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn filled(self, bytes: usize, byte: u8) -> Result<Held, BenchError> {
        match self {
            Self::Private => {
                let mut buffer = room(bytes)?;
                buffer.resize(bytes, byte);
                Ok(Held::Private(buffer))
            }
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
