//! Files that are there whole or not at all.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// A file that is there whole or not at all: written beside it and renamed, so that
/// neither a failed run nor a full disk leaves half of one.
#[derive(Debug)]
pub struct WholeFile {
    target: PathBuf,
    part: Option<PathBuf>,
    option: &'static str,
}

impl WholeFile {
    /// Finds out whether it can be written; `option` is how the user named it.
    ///
    /// # Errors
    /// It cannot.
    pub fn create(target: &Path, option: &'static str) -> Result<Self, BenchError> {
        // A device or a pipe is written as it is.
        let special = fs::metadata(target).is_ok_and(|metadata| !metadata.is_file());
        if special && target.is_dir() {
            return Err(BenchError::Failure(format!(
                "{option} {} is a folder; name a file in it",
                target.display()
            )));
        }
        let part = (!special).then(|| {
            let mut name = target.as_os_str().to_owned();
            name.push(format!(".part-{}", std::process::id()));
            PathBuf::from(name)
        });
        let file = Self { target: target.to_owned(), part, option };
        let path = file.part.as_deref().unwrap_or(target);
        let opened = OpenOptions::new().write(true).create(file.part.is_some()).truncate(false).open(path);
        opened.map_err(|error| file.failed(&error))?;
        // It can be written: that is all that is to be known before the minutes
        // of measuring, in which a signal must find nothing to leave behind.
        if let Some(part) = &file.part {
            fs::remove_file(part).map_err(|error| file.failed(&error))?;
        }
        Ok(file)
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// It cannot be written; what was there before is there still.
    pub fn write(mut self, text: &str) -> Result<(), BenchError> {
        let path = self.part.as_deref().unwrap_or(&self.target);
        fs::write(path, text).map_err(|error| self.failed(&error))?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.target).map_err(|error| self.failed(&error))?;
            self.part = None;
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> BenchError {
        BenchError::Failure(format!(
            "{} cannot be written: {error}; choose another {}",
            self.target.display(),
            self.option
        ))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // If it cannot be removed, nothing can be done about it.
            let _ = fs::remove_file(part);
        }
    }
}
