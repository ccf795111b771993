//! What can be set of the mechanism.

use lmt_core::config_key::{Key, Kind, Value};

use crate::layout::{CELL_BYTES, MAX_CELLS, MAX_RINGS, MIN_CELLS};

/// What the rings can be told.
///
/// ```
/// assert_eq!(lmt_ring::Config::default().ring_bytes, 4 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of one ring's cells, a multiple of 32 KiB. Default 4 MiB.
    pub ring_bytes: u64,
    /// Where so many bytes and more are in flight from one process to another, further messages
    /// are copied out past the caches. Default 8 MiB.
    pub streaming_bytes: u64,
    /// Rings of this endpoint's pool. Default 16.
    pub max_rings: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { ring_bytes: 4 << 20, streaming_bytes: 8 << 20, max_rings: 16 }
    }
}

/// What can be set of the mechanism: the fields of [`Config`].
pub const KEYS: &[Key] = &[
    Key {
        name: "ring_bytes",
        kind: Kind::Bytes {
            least: MIN_CELLS * CELL_BYTES,
            most: MAX_CELLS * CELL_BYTES,
            multiple_of: CELL_BYTES,
        },
        variable: None,
        meaning: "bytes of one ring, which two processes share; either of them has a quarter of it at least",
        reason: "in a ping-pong messages of up to three quarters of it use no cell twice, which is slow where two cores share no cache",
    },
    Key {
        name: "streaming_bytes",
        kind: Kind::Bytes { least: CELL_BYTES, most: u64::MAX, multiple_of: 1 },
        variable: None,
        meaning: "a message with which so many bytes and more are in flight from its sender to its receiver is copied out of the ring past the receiver's caches",
        reason: "where a copy past the caches was the faster one, of single messages and in windows, on a machine with 32 MiB of last-level cache",
    },
    Key {
        name: "max_rings",
        kind: Kind::Count { least: 1, most: MAX_RINGS },
        variable: None,
        meaning: "rings in this endpoint's pool, one for each peer that it was the first to send to; messages to further peers take other paths",
        reason: "the neighbours of a process in most programs, and 64 MiB of memory at most, where all exchange long messages",
    },
];

impl Config {
    /// The value of one of [`KEYS`]; `None` when there is no such key.
    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        match key {
            "ring_bytes" => Some(Value::Number(self.ring_bytes)),
            "streaming_bytes" => Some(Value::Number(self.streaming_bytes)),
            "max_rings" => Some(Value::Number(self.max_rings.into())),
            _ => None,
        }
    }

    /// Sets one of [`KEYS`] to a value that its key allows.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match (key, value) {
            ("ring_bytes", Value::Number(bytes)) => self.ring_bytes = *bytes,
            ("streaming_bytes", Value::Number(bytes)) => self.streaming_bytes = *bytes,
            ("max_rings", Value::Number(rings)) => {
                self.max_rings = u32::try_from(*rings).map_err(|_| "max_rings must be below 2^32")?;
            }
            ("ring_bytes" | "streaming_bytes" | "max_rings", _) => {
                return Err(format!("{key} must be a whole number"));
            }
            _ => return Err(format!("ring has no key `{key}`")),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
