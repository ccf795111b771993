//! Where a configuration is read from.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::environment::find;
use super::fingerprint::fingerprint_of_this_machine;
use super::known::Known;

/// All that a configuration is made of.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The environment: names and values.
    pub environment: Vec<(String, OsString)>,
    /// The folder with the user's `lmt.toml` and `calibration/`.
    pub folder: Option<PathBuf>,
    /// The text of the built-in defaults.
    pub default_text: String,
    /// The name under which they are shown.
    pub default_name: PathBuf,
    /// The mechanisms that there are.
    pub known: Known,
    /// Variables that begin as lmt's do and that somebody else reads.
    pub other_variables: Vec<String>,
    /// The machine's fingerprint, the name of its calibration's file.
    pub fingerprint: String,
}

impl Sources {
    /// The defaults alone: no environment, no files.
    pub fn of_defaults(default_text: &str, known: Known) -> Self {
        Self {
            environment: Vec::new(),
            folder: None,
            default_text: default_text.to_owned(),
            default_name: PathBuf::from("default.toml"),
            known,
            other_variables: Vec::new(),
            fingerprint: String::new(),
        }
    }

    /// What this process has: its environment, its user's folder, its machine.
    pub fn of_this_process(default_text: &str, known: Known) -> Self {
        let environment: Vec<(String, OsString)> = std::env::vars_os()
            .filter_map(|(name, value)| name.into_string().ok().map(|name| (name, value)))
            .collect();
        let folder = folder(&environment);
        let fingerprint = fingerprint_of_this_machine();
        Self { environment, folder, fingerprint, ..Self::of_defaults(default_text, known) }
    }

    /// With variables that are read elsewhere: they are no slips.
    #[must_use]
    pub fn with_other_variables(mut self, names: &[&str]) -> Self {
        self.other_variables.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }
}

/// The user's folder by the XDG Base Directory Specification: `lmt` in
/// `$XDG_CONFIG_HOME` if that is an absolute path, else in `~/.config`.
pub(super) fn folder(environment: &[(String, OsString)]) -> Option<PathBuf> {
    let path = |name: &str| find(environment, name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || path("HOME").map(|home| home.join(".config"));
    path("XDG_CONFIG_HOME").or_else(home).map(|folder| folder.join("lmt"))
}

/// The files that LMT_CONFIG names, separated by colons.
pub(super) fn named_files(value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect()
}
