//! What can be set.

use lmt_core::config_key::{Key, Kind, Value};
use lmt_core::mapping_cache::Bound;
use lmt_core::mechanism::Settings;

/// How many mappings of peers' arenas are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes of address space.
    pub kept_bytes: u64,
    /// Their number.
    pub kept_arenas: u64,
}

impl Config {
    pub(crate) const fn bound(&self) -> Bound {
        Bound { bytes: self.kept_bytes, number: self.kept_arenas }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { kept_bytes: 64 << 30, kept_arenas: 1024 }
    }
}

/// What can be set: the fields of [`Config`].
pub const KEYS: &[Key] = &[
    Key {
        name: "kept_bytes",
        kind: Kind::Bytes { least: 0, most: 1 << 46, multiple_of: 1 },
        variable: None,
        meaning: "bytes of peers' shared buffers that stay mapped by one endpoint beyond what messages in flight use; the least recently used go first",
        reason: "address space costs nothing, but the memory of a peer that has ended is given back only when it is no longer mapped",
    },
    Key {
        name: "kept_arenas",
        kind: Kind::Count { least: 0, most: 1 << 15 },
        variable: None,
        meaning: "pieces of peers' shared memory that stay mapped by one endpoint beyond what messages in flight use; the least recently used go first",
        reason: "sixteen of each of 64 peers, and far from vm.max_map_count, which is 65530",
    },
];

impl Settings for Config {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        match key {
            "kept_bytes" => Some(Value::Number(self.kept_bytes)),
            "kept_arenas" => Some(Value::Number(self.kept_arenas)),
            _ => None,
        }
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            ("kept_bytes", Value::Number(bytes)) => self.kept_bytes = bytes,
            ("kept_arenas", Value::Number(number)) => self.kept_arenas = number,
            (_, value) => return Err(format!("mapped has no key `{key}` that could be {value}")),
        }
        Ok(())
    }
}
