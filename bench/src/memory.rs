//! What the messages of a benchmark lie in.

use std::ops::{Deref, DerefMut};

use clap::ValueEnum;
use lmt::SharedBuffer;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

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
            Self::Private => Ok(Held::Private(vec![byte; bytes])),
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
