//! What can be set of the DSA, in a configuration's terms.

use std::time::Duration;

use lmt_core::config_key::{Key, Kind, Value};

use super::Config;

/// What can be set: the fields of [`Config`].
pub const KEYS: &[Key] = &[
    Key {
        name: "min_copy_bytes",
        kind: Kind::Bytes { least: 0, most: u32::MAX as u64, multiple_of: 1 },
        variable: None,
        meaning: "copies shorter than this are done by the CPU",
        reason: "a descriptor's round trip takes as long as the CPU takes for a page or two",
    },
    Key {
        name: "units",
        kind: Kind::Count { least: 1, most: 1024 },
        variable: None,
        meaning: "descriptors or batches that are in flight at once",
        reason: "a quarter of a device's entries",
    },
    Key {
        name: "max_retries",
        kind: Kind::Count { least: 0, most: u32::MAX as u64 },
        variable: None,
        meaning: "how often a unit is offered to a full queue before the CPU copies it",
        reason: "others share the queue, and none of them may stop us",
    },
    Key {
        name: "to_cache",
        kind: Kind::Flag,
        variable: None,
        meaning: "whether what is written goes to the cache instead of memory",
        reason: "the receiver reads the pipeline's buffers at once",
    },
    Key {
        name: "block_on_fault",
        kind: Kind::Flag,
        variable: None,
        meaning: "whether the device waits for the kernel where a page is missing, where the queue allows that; otherwise the CPU copies the rest",
        reason: "waiting holds up all who share the device",
    },
    Key {
        name: "answer_limit_ms",
        kind: Kind::Milliseconds { least: 1, most: 60_000 },
        variable: None,
        meaning: "how long the device may take to answer the first, empty descriptor",
        reason: "it takes microseconds, and whoever greets a peer waits",
    },
    Key {
        name: "stall_limit_ms",
        kind: Kind::Milliseconds { least: 1, most: 86_400_000 },
        variable: None,
        meaning: "how long one descriptor may be in flight before the device is given up",
        reason: "a copy takes milliseconds even when others share the device",
    },
];

impl Config {
    /// The value of one of [`KEYS`]; `None` when there is no such key.
    pub fn get(&self, key: &str) -> Option<Value> {
        let time = |limit: Duration| Value::Number(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        Some(match key {
            "min_copy_bytes" => Value::Number(self.min_copy_bytes.into()),
            "units" => Value::Number(self.units.into()),
            "max_retries" => Value::Number(self.max_retries.into()),
            "to_cache" => Value::Flag(self.to_cache),
            "block_on_fault" => Value::Flag(self.block_on_fault),
            "answer_limit_ms" => time(self.answer_limit),
            "stall_limit_ms" => time(self.stall_limit),
            _ => return None,
        })
    }

    /// Sets one of [`KEYS`] to a value that its key allows.
    ///
    /// # Errors
    /// One sentence: there is no such key, or the value is of another kind.
    pub fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        let wrong = || format!("{key} cannot have such a value");
        let number = |value| match value {
            Value::Number(number) => u32::try_from(number).map_err(|_| wrong()),
            _ => Err(wrong()),
        };
        let flag = |value| match value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(wrong()),
        };
        match key {
            "min_copy_bytes" => self.min_copy_bytes = number(value)?,
            "units" => self.units = number(value)?,
            "max_retries" => self.max_retries = number(value)?,
            "to_cache" => self.to_cache = flag(value)?,
            "block_on_fault" => self.block_on_fault = flag(value)?,
            "answer_limit_ms" => self.answer_limit = Duration::from_millis(number(value)?.into()),
            "stall_limit_ms" => self.stall_limit = Duration::from_millis(number(value)?.into()),
            _ => return Err(format!("the DSA has no key `{key}`")),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
