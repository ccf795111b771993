//! What comes of a check.

use std::fmt::Debug;

/// Why a check did not go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Something is not as expected.
    Fails(String),
    /// It cannot be tried here.
    Skipped(String),
}

/// All is as expected, with a remark or none.
pub type Verdict = Result<String, Stop>;

/// All is as expected.
pub fn holds() -> Verdict {
    Ok(String::new())
}

pub fn fails<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fails(text.into()))
}

pub fn skip<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skipped(why.into()))
}

/// Compares what was found with what was expected.
pub fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), Stop> {
    if found == expected {
        return Ok(());
    }
    fails(format!("{what}: expected {expected:?}, found {found:?}"))
}

/// Compares bytes, and names the first that is wrong.
pub fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Stop> {
    equal(&format!("{what}, length"), found.len(), expected.len())?;
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => fails(format!(
            "{what}: expected byte {at} of {} to be {:#04x}, found {:#04x}",
            found.len(),
            expected[at],
            found[at]
        )),
    }
}

/// What was needed to get to the point of a check.
pub fn needed<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Result<T, Stop> {
    result.or_else(|error| fails(format!("{what}: expected success, found {error}")))
}

/// One line for it, without the check's name.
pub fn to_line(verdict: &Verdict) -> String {
    let (word, text) = match verdict {
        Ok(note) => ("ok", note),
        Err(Stop::Fails(text)) => ("FAIL", text),
        Err(Stop::Skipped(why)) => ("skip", why),
    };
    format!("{word} {}", text.replace('\n', " ")).trim_end().to_owned()
}

/// Reads [`to_line`].
pub fn from_line(line: &str) -> Option<Verdict> {
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "ok" => Some(Ok(text.to_owned())),
        "FAIL" => Some(Err(Stop::Fails(text.to_owned()))),
        "skip" => Some(Err(Stop::Skipped(text.to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
