//! `lmt config --check`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lmt_selector::config::{Known, check_file};

use crate::console::print;
use crate::error::BenchError;

/// Checks each file and shows all that is wrong.
///
/// # Errors
/// Something is wrong; it has been shown then.
pub fn run(files: &[PathBuf], known: &Known) -> Result<(), BenchError> {
    let mut wrong = 0;
    for file in files {
        wrong += one(file, known)?;
    }
    match wrong {
        0 => Ok(()),
        1 => Err(BenchError::Failure("there is one problem; correct it as shown above".to_owned())),
        wrong => Err(BenchError::Failure(format!("there are {wrong} problems; correct them as shown above"))),
    }
}

fn one(file: &Path, known: &Known) -> Result<usize, BenchError> {
    match check_file(file, known) {
        Ok(parsed) => {
            let kind = if parsed.calibration.is_some() { "a calibration" } else { "a configuration" };
            print(&format!("{}: {kind} without problems\n", file.display()))?;
            Ok(0)
        }
        Err(failure) => {
            show(&failure.render());
            Ok(failure.problems().len())
        }
    }
}

/// Writes a report to standard error; if nobody reads that, nobody wants to
/// know.
pub fn show(report: &str) {
    let _ = io::stderr().lock().write_all(report.as_bytes());
}
