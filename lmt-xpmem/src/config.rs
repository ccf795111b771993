//! What can be set.

use lmt_core::config_key::{Key, Kind, Value};
use lmt_core::mapping_cache::Bound;
use lmt_core::mechanism::Settings;

/// How much of peers' memory stays attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes of address space.
    pub kept_bytes: u64,
}

impl Config {
    pub(crate) const fn bound(self) -> Bound {
        Bound { bytes: self.kept_bytes, number: u64::MAX }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { kept_bytes: 16 << 30 }
    }
}

/// What can be set: the fields of [`Config`].
pub const KEYS: &[Key] = &[Key {
    name: "kept_bytes",
    kind: Kind::Bytes { least: 0, most: 1 << 40, multiple_of: 1 },
    variable: None,
    meaning: "bytes of peers' address space that one endpoint keeps attached, in blocks of 16 MiB; the least recently used go first",
    reason: "1024 blocks, far from vm.max_map_count, which is 65530; their pages, where they were copied, cannot be swapped out",
}];

impl Settings for Config {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        (key == "kept_bytes").then_some(Value::Number(self.kept_bytes))
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            ("kept_bytes", Value::Number(bytes)) => self.kept_bytes = bytes,
            (_, value) => return Err(format!("xpmem has no key `{key}` that could be {value}")),
        }
        Ok(())
    }
}
