//! What is written to standard output and standard error.

use std::io;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::BenchError;

/// Says where the report is.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn say_report(path: &Path) -> Result<(), BenchError> {
    print(&format!("report: {}\n", path.display()))
}

/// One JSON object on lines of its own.
///
/// # Errors
/// A figure is no number.
pub fn json(value: &impl Serialize) -> Result<String, BenchError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| BenchError::Failure(format!("the results cannot be written: {error}")))
}

/// What something writes, as one text.
///
/// # Errors
/// It cannot be written.
pub fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<String, BenchError> {
    let mut text = Vec::new();
    write(&mut text).map_err(|error| BenchError::from_output(&error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes to standard output.
///
/// # Errors
/// It is closed or full.
pub fn print(text: &str) -> Result<(), BenchError> {
    to_output(|out| out.write_all(text.as_bytes()))
}

/// Has something write to standard output.
///
/// # Errors
/// It is closed or full.
pub fn to_output(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), BenchError> {
    let mut out = io::stdout().lock();
    write(&mut out).and_then(|()| out.flush()).map_err(|error| BenchError::from_output(&error))
}

/// One line on standard error; if nobody reads that, nobody wants to know.
pub fn complain(sentence: &str) {
    let _ = writeln!(io::stderr().lock(), "lmt: {sentence}");
}
