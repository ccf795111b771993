//! How a pool is laid out, from three numbers that are checked before use,
//! whether they come from a configuration or from a peer.

use std::ops::Range;

use lmt_core::config_key::{Key, Kind, Value};
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What the pipeline can be told.
///
/// ```
/// let config = lmt_shm::Config { buffers: 4, ..Default::default() };
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes of one buffer, a multiple of 4096. Default 65536: large enough
    /// that handing it over costs nothing, small enough for a core's own cache.
    pub buffer_bytes: u32,
    /// Buffers of one transfer, 1 to 64. Default 2: one is filled while the
    /// other is emptied.
    pub buffers: u32,
    /// Transfers that this endpoint can send through the pipeline at once;
    /// further ones wait. Default 128. Memory is taken on first use only.
    pub pool_transfers: u32,
    /// Transfers whose buffers stay in memory when they are idle. Default 8:
    /// 1 MiB, with the default buffers.
    pub kept_transfers: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { buffer_bytes: 65536, buffers: 2, pool_transfers: 128, kept_transfers: 8 }
    }
}

/// What can be set of the pipeline: the fields of [`Config`].
pub const KEYS: &[Key] = &[
    Key {
        name: "buffer_bytes",
        kind: Kind::Bytes { least: PAGE_BYTES, most: 1 << 24, multiple_of: PAGE_BYTES },
        variable: None,
        meaning: "bytes of one buffer",
        reason: "large enough that handing it over costs nothing, small enough for a core's own cache",
    },
    Key {
        name: "buffers",
        kind: Kind::Count { least: 1, most: 64 },
        variable: None,
        meaning: "buffers of one transfer",
        reason: "with two, one is filled while the other is emptied",
    },
    Key {
        name: "pool_transfers",
        kind: Kind::Count { least: 1, most: 1 << 16 },
        variable: None,
        meaning: "transfers that this endpoint can send through the pipeline at once; further ones wait. Times buffers times buffer_bytes it is at most 64 GiB",
        reason: "a rank with a message to each of many others in flight, and memory is taken on first use only",
    },
    Key {
        name: "kept_transfers",
        kind: Kind::Count { least: 0, most: 1 << 16 },
        variable: None,
        meaning: "transfers whose buffers stay in memory when they are idle",
        reason: "enough for a few peers at a time, and not more than about 1 MiB with buffers of 64 KiB",
    },
];

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is outside what works.
    #[error("{key} is {value}; it must be {rule}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What it was set to.
        value: u32,
        /// What it must be.
        rule: &'static str,
    },
}

impl Config {
    /// Checks every number.
    ///
    /// # Errors
    /// The first key whose value cannot work, and what would.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.geometry().map(|_| ())
    }

    /// The value of one of [`KEYS`]; `None` when there is no such key.
    pub fn get(&self, key: &str) -> Option<Value> {
        let number = match key {
            "buffer_bytes" => self.buffer_bytes,
            "buffers" => self.buffers,
            "pool_transfers" => self.pool_transfers,
            "kept_transfers" => self.kept_transfers,
            _ => return None,
        };
        Some(Value::Number(number.into()))
    }

    /// Sets one of [`KEYS`] to a value that its key allows; whether there is
    /// such a key.
    pub(crate) fn set(&mut self, key: &str, number: u32) -> bool {
        match key {
            "buffer_bytes" => self.buffer_bytes = number,
            "buffers" => self.buffers = number,
            "pool_transfers" => self.pool_transfers = number,
            "kept_transfers" => self.kept_transfers = number,
            _ => return false,
        }
        true
    }

    pub(crate) fn geometry(&self) -> Result<Geometry, ConfigError> {
        Geometry { buffer_bytes: self.buffer_bytes, buffers: self.buffers, lanes: self.pool_transfers }
            .checked()
    }
}

/// Bytes of a page, or a multiple of it: lanes begin and end with whole ones.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Peers that can have a mailbox in one pool.
pub(crate) const MAILBOXES: u32 = 16384;
/// Slots of one mailbox: lanes that one peer can hold at once.
pub(crate) const SLOTS: u32 = 2;
const MAILBOX_BYTES: u64 = 64;
/// The two words of a lane: two pairs of cache lines, since neighbours are
/// prefetched in pairs.
const WORDS_BYTES: u64 = 256;
const WORDS_START: u64 = MAILBOXES as u64 * MAILBOX_BYTES;
/// The largest pool: no more is ever mapped for a peer.
const MAX_POOL_BYTES: u64 = 1 << 36;

/// The layout of a pool: mailboxes, then every lane's words, then its buffers.
/// Only [`Geometry::checked`] makes one that the methods may be called on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Geometry {
    pub(crate) buffer_bytes: u32,
    pub(crate) buffers: u32,
    pub(crate) lanes: u32,
}

impl Geometry {
    /// The same numbers, if they can be a pool's.
    pub(crate) fn checked(self) -> Result<Self, ConfigError> {
        let bytes_fit = u64::from(self.lanes) * u64::from(self.buffers) * u64::from(self.buffer_bytes);
        let checks = [
            (
                "buffer_bytes",
                self.buffer_bytes,
                u64::from(self.buffer_bytes).is_multiple_of(PAGE_BYTES)
                    && (4096..=1 << 24).contains(&self.buffer_bytes),
                "a multiple of 4096 from 4096 to 16777216",
            ),
            ("buffers", self.buffers, (1..=64).contains(&self.buffers), "from 1 to 64"),
            ("pool_transfers", self.lanes, (1..=1 << 16).contains(&self.lanes), "from 1 to 65536"),
            (
                "pool_transfers",
                self.lanes,
                bytes_fit <= MAX_POOL_BYTES,
                "small enough for a pool of at most 64 GiB; lower it, buffers or buffer_bytes",
            ),
        ];
        match checks.into_iter().find(|check| !check.2) {
            Some((key, value, _, rule)) => Err(ConfigError::OutOfRange { key, value, rule }),
            None => Ok(self),
        }
    }

    /// Bytes of one lane's buffers.
    pub(crate) const fn lane_bytes(self) -> u64 {
        self.buffers as u64 * self.buffer_bytes as u64
    }

    const fn data_start(self) -> u64 {
        WORDS_START + (self.lanes as u64 * WORDS_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of the whole pool.
    pub(crate) const fn pool_bytes(self) -> u64 {
        self.data_start() + self.lanes as u64 * self.lane_bytes()
    }

    /// Where a mailbox's slot stands.
    pub(crate) const fn slot_offset(mailbox: u32, slot: u32) -> u64 {
        mailbox as u64 * MAILBOX_BYTES + slot as u64 * 8
    }

    /// Where a lane's words stand: produced, consumed.
    pub(crate) const fn words_offsets(lane: u32) -> (u64, u64) {
        let start = WORDS_START + lane as u64 * WORDS_BYTES;
        (start, start + WORDS_BYTES / 2)
    }

    /// Where one of a lane's buffers begins.
    pub(crate) const fn buffer_offset(self, lane: u32, buffer: u32) -> u64 {
        self.data_start() + lane as u64 * self.lane_bytes() + buffer as u64 * self.buffer_bytes as u64
    }

    /// All of a lane's buffers.
    pub(crate) const fn lane_range(self, lane: u32) -> Range<u64> {
        let start = self.buffer_offset(lane, 0);
        start..start + self.lane_bytes()
    }
}

/// How a message is cut into chunks: known to both sides, so that no length
/// needs to be told or trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunks {
    pub(crate) total_bytes: u64,
    pub(crate) chunk_bytes: u32,
}

impl Chunks {
    /// How many there are.
    pub(crate) const fn count(self) -> u64 {
        self.total_bytes.div_ceil(self.chunk_bytes as u64)
    }

    /// Bytes of the first `chunks` of them.
    pub(crate) fn bytes_of(self, chunks: u64) -> u64 {
        chunks.saturating_mul(u64::from(self.chunk_bytes)).min(self.total_bytes)
    }

    /// Bytes of the chunk with this number.
    pub(crate) fn bytes_at(self, chunk: u64) -> u64 {
        self.bytes_of(chunk.saturating_add(1)) - self.bytes_of(chunk)
    }
}

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;
