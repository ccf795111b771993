//! Programs' input files: those that travel within this command, and those beside a
//! table of the user's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files of `bench/apps`, with their names.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/app_files.rs"));
/// The table among them.
pub const TABLE: &str = "apps.toml";

/// What stands in commands and input files for what is known only when they are used.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Processes.
    pub ranks: u32,
    /// The folder of the MPI.
    pub mpi: String,
    /// The Python that has the packages of PyPI.
    pub python: String,
}

impl Places {
    /// The text with each of them in its place.
    pub fn fill(&self, text: &str) -> String {
        let rows = rows(self.ranks);
        let columns = self.ranks.checked_div(rows).unwrap_or(0);
        text.replace("@RANKS@", &self.ranks.to_string())
            .replace("@ROWS@", &rows.to_string())
            .replace("@COLUMNS@", &columns.to_string())
            .replace("@MPI@", &self.mpi)
            .replace("@PYTHON@", &self.python)
    }
}

/// The rows of the grid of ranks that is closest to a square, with no more rows than columns.
fn rows(ranks: u32) -> u32 {
    (1..=ranks)
        .take_while(|rows| rows * rows <= ranks)
        .filter(|&rows| ranks.is_multiple_of(rows))
        .last()
        .unwrap_or(0)
}

/// The text of a file that travels within this command.
pub fn embedded(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Where input files are looked for.
#[derive(Clone, Debug)]
pub struct Files {
    /// The folder of the user's table.
    pub beside: Option<PathBuf>,
}

impl Files {
    /// The text of an input file.
    ///
    /// # Errors
    /// It is nowhere, or cannot be read: a sentence.
    pub fn text(&self, name: &str) -> Result<String, String> {
        if let Some(file) = self.beside.as_ref().map(|folder| folder.join(name)).filter(|file| file.is_file())
        {
            return fs::read_to_string(&file)
                .map_err(|error| format!("{} cannot be read: {error}", file.display()));
        }
        embedded(name)
            .map(str::to_owned)
            .ok_or_else(|| format!("the input file {name} is neither beside the table nor in bench/apps"))
    }

    /// Writes input files into a folder, each under the last part of its name.
    ///
    /// # Errors
    /// One is missing or cannot be written: a sentence.
    pub fn write(&self, names: &[String], places: &Places, folder: &Path) -> Result<(), String> {
        for name in names {
            let text = places.fill(&self.text(name)?);
            let last = Path::new(name).file_name().unwrap_or_default();
            let file = folder.join(last);
            fs::write(&file, text)
                .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        }
        Ok(())
    }
}

/// Copies all files of a folder, and those in folders of it, into a new one.
///
/// # Errors
/// One cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
