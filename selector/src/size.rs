//! Sizes and times as people write them.

/// A size with the largest unit of powers of 1024 that leaves it whole.
///
/// ```
/// assert_eq!(lmt_selector::size::written(65536), "64 KiB");
/// assert_eq!(lmt_selector::size::written(1000), "1000 B");
/// ```
pub fn written(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A time with the largest unit that leaves it whole.
///
/// ```
/// assert_eq!(lmt_selector::size::written_time(10_000), "10 s");
/// ```
pub fn written_time(milliseconds: u64) -> String {
    match milliseconds {
        ms if ms >= 60_000 && ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
        ms if ms >= 1000 && ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// What is wrong with a number that has a unit, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// It does not begin with a whole number.
    #[error("`{text}` does not begin with a whole number; {right}")]
    NoNumber {
        /// What was written.
        text: String,
        /// What would be right.
        right: String,
    },
    /// There is a number, and no unit or one that is not known.
    #[error("`{text}` has {}; {right}", unit_in_words(.unit))]
    Unit {
        /// What was written.
        text: String,
        /// The unit; empty when there is none.
        unit: String,
        /// What would be right.
        right: String,
    },
    /// It does not fit 64 bits.
    #[error("`{text}` is too large; {right}")]
    TooLarge {
        /// What was written.
        text: String,
        /// What would be right.
        right: String,
    },
}

fn unit_in_words(unit: &str) -> String {
    if unit.is_empty() {
        "no unit".to_owned()
    } else {
        format!("the unit `{unit}`, which is none of a size or time here")
    }
}

/// The units of sizes, with what people write for them.
const SIZES: Units = Units {
    what: "sizes are a number of bytes, or text with B, KiB, MiB or GiB (powers of 1024)",
    units: &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    meant: &[
        ("KiB", &["k", "kb", "kib", "kbyte", "kbytes"]),
        ("MiB", &["m", "mb", "mib", "mbyte", "mbytes"]),
        ("GiB", &["g", "gb", "gib", "gbyte", "gbytes"]),
        ("B", &["b", "byte", "bytes", ""]),
    ],
};

/// The units of times.
const TIMES: Units = Units {
    what: "times are a number of milliseconds, or text with ms, s or min",
    units: &[("ms", 1), ("s", 1000), ("min", 60_000)],
    meant: &[
        ("ms", &["ms", "msec", "millis", "milliseconds", ""]),
        ("s", &["s", "sec", "secs", "second", "seconds"]),
        ("min", &["m", "min", "mins", "minute", "minutes"]),
    ],
};

struct Units {
    what: &'static str,
    units: &'static [(&'static str, u64)],
    meant: &'static [(&'static str, &'static [&'static str])],
}

impl Units {
    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let owned = || text.to_owned();
        if number.is_empty() {
            return Err(QuantityError::NoNumber { text: owned(), right: self.what.to_owned() });
        }
        let too_large = || QuantityError::TooLarge { text: owned(), right: "take a smaller one".to_owned() };
        let number: u64 = number.parse().map_err(|_| too_large())?;
        match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => number.checked_mul(*factor).ok_or_else(too_large),
            None => {
                let right = self.right(number, unit);
                Err(QuantityError::Unit { text: owned(), unit: unit.to_owned(), right })
            }
        }
    }

    /// What to write for a unit that is not one.
    fn right(&self, number: u64, unit: &str) -> String {
        let lower = unit.to_lowercase();
        match self.meant.iter().find(|(_, words)| words.contains(&lower.as_str())) {
            Some((name, _)) => format!("{}: write \"{number} {name}\"", self.what),
            None => self.what.to_owned(),
        }
    }
}

/// Reads a size with its unit.
///
/// ```
/// assert_eq!(lmt_selector::size::parse("64 KiB"), Ok(65536));
/// assert!(lmt_selector::size::parse("64 kB").unwrap_err().to_string().contains("\"64 KiB\""));
/// ```
///
/// # Errors
/// [`QuantityError`] says what would be right.
pub fn parse(text: &str) -> Result<u64, QuantityError> {
    SIZES.parse(text)
}

/// Reads a time with its unit, in milliseconds.
///
/// ```
/// assert_eq!(lmt_selector::size::parse_time("10 s"), Ok(10_000));
/// ```
///
/// # Errors
/// [`QuantityError`] says what would be right.
pub fn parse_time(text: &str) -> Result<u64, QuantityError> {
    TIMES.parse(text)
}
