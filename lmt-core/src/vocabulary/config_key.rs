//! What can be set, and how: the vocabulary of the one table of keys from which
//! configuration files are read, checked and documented.
//!
//! The endpoint's keys are [`super::config::KEYS`]; a mechanism brings its own
//! ([`crate::mechanism::Settings::keys`]).

use std::fmt;

/// What kind of value a key takes, with its bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A size: a number of bytes, or text with a unit of powers of 1024
    /// (`"64 KiB"`).
    Bytes {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
        /// It must be a multiple of this; 1 where any will do.
        multiple_of: u64,
    },
    /// A whole number.
    Count {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A power of two.
    PowerOfTwo {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A time: a number of milliseconds, or text with a unit (`"10 s"`).
    Milliseconds {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Yes or no.
    Flag,
    /// The number of a CPU, or none.
    Cpu,
    /// A folder, or none.
    Folder,
    /// A list of mechanisms, or all.
    Mechanisms,
    /// What bytes are copied by, as [`lmt_copy::Plan`] reads it.
    Copies,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Bytes, milliseconds, a count or the number of a CPU.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// A word or a path.
    Text(String),
    /// Names in order.
    Names(Vec<String>),
    /// None, or all: what stands where nothing is set.
    Absent,
}

/// One thing that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name, with its unit; the same in files and in the code.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The environment variable that sets it.
    pub variable: Option<&'static str>,
    /// What it does, in one sentence without a full stop.
    pub meaning: &'static str,
    /// Why the default is what it is, in one sentence without a full stop.
    pub reason: &'static str,
}

impl Key {
    /// Whether the key can have this value, within its bounds.
    ///
    /// # Errors
    /// What it must be.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if self.kind.allows(value) { Ok(()) } else { Err(self.kind.to_string()) }
    }
}

impl Kind {
    /// Whether it has this value, within its bounds.
    pub fn allows(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bytes { least, most, multiple_of }, Value::Number(bytes)) => {
                (least..=most).contains(bytes) && bytes.is_multiple_of(multiple_of)
            }
            (Self::Count { least, most } | Self::Milliseconds { least, most }, Value::Number(number)) => {
                (least..=most).contains(number)
            }
            (Self::PowerOfTwo { least, most }, Value::Number(number)) => {
                (least..=most).contains(number) && number.is_power_of_two()
            }
            (Self::Flag, Value::Flag(_))
            | (Self::Cpu, Value::Number(_) | Value::Absent)
            | (Self::Folder, Value::Text(_) | Value::Absent)
            | (Self::Mechanisms, Value::Absent) => true,
            (Self::Mechanisms, Value::Names(names)) => !names.is_empty(),
            (Self::Copies, Value::Text(text)) => text.parse::<lmt_copy::Plan>().is_ok(),
            (Self::Word(words), Value::Text(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

/// What a value must be, to follow "it must be".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |f: &mut fmt::Formatter<'_>, least: u64, most: u64| match (least, most) {
            (0, u64::MAX) => Ok(()),
            (0, most) => write!(f, ", at most {most}"),
            (least, u64::MAX) => write!(f, ", at least {least}"),
            (least, most) => write!(f, " from {least} to {most}"),
        };
        match *self {
            Self::Bytes { least, most, multiple_of } => {
                f.write_str("a number of bytes")?;
                if multiple_of > 1 {
                    write!(f, " that is a multiple of {multiple_of}")?;
                }
                range(f, least, most)
            }
            Self::Count { least, most } => {
                f.write_str("a whole number")?;
                range(f, least, most)
            }
            Self::PowerOfTwo { least, most } => {
                f.write_str("a power of two")?;
                range(f, least, most)
            }
            Self::Milliseconds { least, most } => {
                f.write_str("a number of milliseconds")?;
                range(f, least, most)
            }
            Self::Flag => f.write_str("true or false"),
            Self::Cpu => f.write_str("the number of a CPU"),
            Self::Folder => f.write_str("a folder"),
            Self::Mechanisms => f.write_str("a list of mechanisms"),
            Self::Copies => {
                let names = lmt_copy::Routine::ALL.map(lmt_copy::Routine::name).join(", ");
                write!(f, "auto, or one of {names}, or a list of them by alignment, distance and length")
            }
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// As a configuration file has it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Names(names) => write!(f, "{names:?}"),
            Self::Absent => f.write_str("none"),
        }
    }
}

#[cfg(test)]
#[path = "config_key_tests.rs"]
mod tests;
