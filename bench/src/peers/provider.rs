//! Where the libfabric provider is (`docs/libfabric.md`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::transport::PROVIDER_PATH;

/// The name of its file. libfabric takes files that end in [`ENDING`].
const FILE: &str = "liblmt-fi.so";
/// How the names of providers' libraries end.
const ENDING: &str = "-fi.so";
/// The folders in which it may be, as seen from that of the `lmt` command: where
/// it is built, and where libraries are installed.
const PLACES: [&str; 5] = ["", "../lib/lmt", "../lib", "../lib/libfabric", "../lib64"];

/// The provider's library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    file: PathBuf,
}

impl Provider {
    /// The file that was named, or the one that belongs to this command, or one in a folder
    /// in which libfabric looks already.
    ///
    /// # Errors
    /// One sentence on what is missing.
    pub fn find(named: Option<&Path>) -> Result<Self, String> {
        match named {
            Some(file) => Self::at(file),
            None => {
                let own = std::env::current_exe()
                    .map_err(|error| format!("this command does not know where it is: {error}"))?;
                Self::beside(own.parent().unwrap_or(Path::new("/"))).or_else(|why| {
                    let folders = std::env::var_os(PROVIDER_PATH).unwrap_or_default();
                    Self::in_one_of(&folders).ok_or(why)
                })
            }
        }
    }

    fn at(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        if !file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING)) {
            return Err(format!(
                "{shown} is no name that libfabric takes; name a file that ends in {ENDING}"
            ));
        }
        let file = file
            .canonicalize()
            .map_err(|error| format!("{shown} cannot be found: {error}; make fi builds {FILE}"))?;
        match file.to_string_lossy().contains(':') {
            true => Err(format!(
                "{shown} is in a folder with a colon in its name, which FI_PROVIDER_PATH cannot name; copy it elsewhere"
            )),
            false => Ok(Self { file }),
        }
    }

    fn beside(folder: &Path) -> Result<Self, String> {
        let places = PLACES.iter().map(|place| folder.join(place).join(FILE));
        match places.into_iter().find(|file| file.is_file()) {
            Some(file) => Self::at(&file),
            None => Err(format!(
                "there is no {FILE}, neither in {} nor in ../lib of it; make fi builds it, and --provider names it elsewhere",
                folder.display()
            )),
        }
    }

    fn in_one_of(folders: &OsStr) -> Option<Self> {
        std::env::split_paths(folders).find_map(|folder| Self::at(&folder.join(FILE)).ok())
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder in which libfabric looks for it.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
