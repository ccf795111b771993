//! Message sizes as the command line gives them.
//!
//! The rule: a whole number, then a unit. No unit or `B` is bytes. `KiB`,
//! `MiB` and `GiB` are powers of 1024, and so are `k`, `K`, `M` and `G`, as in
//! the other message benchmarks. `kB`, `MB` and `GB` are refused, because half
//! of the world takes them for powers of 1000. A range `A..B` is every power
//! of two from A to B, both included; the range starts at 0 if A is 0.

pub use lmt_selector::size::written as human;

/// The longest message a benchmark sends, in bytes.
pub const MAX_MESSAGE_BYTES: u64 = 4 << 30;

/// What is wrong with a size, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Nothing where a size should be.
    #[error("a size is missing in '{text}'; write for example 8,64KiB,1MiB or 1..16MiB")]
    Missing {
        /// What was written.
        text: String,
    },
    /// It does not begin with a whole number.
    #[error("the size '{text}' does not begin with a whole number; write for example 8, 64KiB or 1MiB")]
    NoNumber {
        /// What was written.
        text: String,
    },
    /// The unit is unknown.
    #[error(
        "the size '{text}' has the unit '{unit}'; units are B, KiB, MiB and GiB (k, K, M and G mean the same powers of 1024)"
    )]
    Unit {
        /// What was written.
        text: String,
        /// Its unit.
        unit: String,
    },
    /// The size is more than a benchmark sends.
    #[error("the size '{text}' is too large; the largest is 4GiB")]
    TooLarge {
        /// What was written.
        text: String,
    },
    /// One end of a range is missing.
    #[error("the range '{text}' has no {end}; write for example 1..16MiB")]
    OpenRange {
        /// What was written.
        text: String,
        /// Which end.
        end: &'static str,
    },
    /// A range without a power of two in it.
    #[error("the range '{text}' holds no power of two; its start must be at most its end, as in 1..16MiB")]
    EmptyRange {
        /// What was written.
        text: String,
    },
}

/// Reads one size in bytes.
///
/// ```
/// assert_eq!(lmt_bench::sizes::parse_size("64KiB"), Ok(65536));
/// ```
///
/// # Errors
/// [`SizeError`] says what is wrong with it.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let owned = || text.to_owned();
    if text.is_empty() {
        return Err(SizeError::Missing { text: owned() });
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(SizeError::NoNumber { text: owned() });
    }
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start() {
        "" | "B" | "b" => 0,
        "k" | "K" | "KiB" | "kiB" | "kib" | "Ki" => 10,
        "M" | "MiB" | "mib" | "Mi" => 20,
        "G" | "GiB" | "gib" | "Gi" => 30,
        other => return Err(SizeError::Unit { text: owned(), unit: other.to_owned() }),
    };
    let too_large = || SizeError::TooLarge { text: owned() };
    // Only digits are left, so the one way to fail is a number beyond u64.
    let number: u64 = number.parse().map_err(|_| too_large())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(too_large)?;
    if bytes > MAX_MESSAGE_BYTES { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a list of sizes and ranges, separated by commas, into ascending order
/// without repetition.
///
/// ```
/// assert_eq!(lmt_bench::sizes::parse_sizes("1..4,64KiB"), Ok(vec![1, 2, 4, 65536]));
/// ```
///
/// # Errors
/// [`SizeError`] says what is wrong with the first bad part.
pub fn parse_sizes(text: &str) -> Result<Vec<u64>, SizeError> {
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        if part.is_empty() {
            return Err(SizeError::Missing { text: text.to_owned() });
        }
        match part.split_once("..") {
            Some((start, end)) => sizes.extend(range(part, start, end)?),
            None => sizes.push(parse_size(part)?),
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn range(text: &str, start: &str, end: &str) -> Result<Vec<u64>, SizeError> {
    let open = |end| SizeError::OpenRange { text: text.to_owned(), end };
    // Rust's own `..=` is what some will write.
    let end = end.strip_prefix('=').unwrap_or(end);
    if start.trim().is_empty() {
        return Err(open("start"));
    }
    if end.trim().is_empty() {
        return Err(open("end"));
    }
    let (start, end) = (parse_size(start)?, parse_size(end)?);
    let zero = (start == 0).then_some(0);
    let powers = (0..u64::BITS).map(|power| 1u64 << power).filter(|bytes| (start..=end).contains(bytes));
    let sizes: Vec<u64> = zero.into_iter().chain(powers).collect();
    if sizes.is_empty() || start > end {
        return Err(SizeError::EmptyRange { text: text.to_owned() });
    }
    Ok(sizes)
}

#[cfg(test)]
#[path = "sizes_tests.rs"]
mod tests;
