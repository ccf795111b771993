//! The vocabulary of a check-up: what the machine offers, what stands in the
//! way, and what would help.
//!
//! A mechanism that depends on something that can be looked at brings its own
//! checks ([`super::Diagnosis::diagnostics`]). They explain; whether it works
//! with a peer, only a real call tells ([`super::Lmt::probe`]).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, eaccess};
use serde::Serialize;

use crate::base::bounded_file;

/// How something stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// It works, but less well or for fewer than it could.
    Limited,
    /// It is absent on this machine, and nothing depends on it.
    Missing,
    /// It should work and does not.
    Blocked,
    /// It cannot be found out.
    Unknown,
}

/// One line of a check-up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What was looked at, in a few words.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What was found and what it means, in one sentence.
    pub meaning: String,
    /// The command, or the one step, that would change it, if there is one.
    pub fix: Option<String>,
}

impl Finding {
    /// A finding without a fix.
    pub fn new(name: impl Into<String>, state: State, meaning: impl Into<String>) -> Self {
        Self { name: name.into(), state, meaning: meaning.into(), fix: None }
    }

    /// The same with what would change it.
    #[must_use]
    pub fn fixed_by(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// The same, for what was found by a system call and not in files: where
    /// the files are another machine's, it says so.
    #[must_use]
    pub fn by_call(mut self, host: &Host) -> Self {
        if !host.is_this_machine() {
            self.meaning.push_str(" (found by a call on this machine, not in the files given)");
        }
        self
    }
}

/// What this process may do with a file, by its effective ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAccess {
    /// There is none.
    Absent,
    /// It is there and may not be read and written.
    Refused,
    /// It may be read and written.
    Granted,
}

/// Where the kernel shows itself: the folders that checks look into. Others
/// than the machine's own serve tests, and the study of another machine's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// /proc
    pub proc_dir: PathBuf,
    /// /sys
    pub sys_dir: PathBuf,
    /// /dev
    pub dev_dir: PathBuf,
}

impl Default for Host {
    /// This machine.
    fn default() -> Self {
        Self { proc_dir: "/proc".into(), sys_dir: "/sys".into(), dev_dir: "/dev".into() }
    }
}

impl Host {
    /// The folders proc, sys and dev below `root`.
    ///
    /// ```
    /// use lmt_core::diagnostic::Host;
    /// assert_eq!(Host::under("/".as_ref()), Host::default());
    /// ```
    pub fn under(root: &Path) -> Self {
        Self { proc_dir: root.join("proc"), sys_dir: root.join("sys"), dev_dir: root.join("dev") }
    }

    /// Whether these are the machine's own folders.
    pub fn is_this_machine(&self) -> bool {
        *self == Self::default()
    }

    /// A file below /proc, without its last line break. `None` if there is none.
    ///
    /// # Errors
    /// One sentence on why it cannot be read.
    pub fn proc_text(&self, path: &str) -> Result<Option<String>, String> {
        text(&self.proc_dir.join(path))
    }

    /// A file below /sys, as [`Host::proc_text`].
    ///
    /// # Errors
    /// One sentence on why it cannot be read.
    pub fn sys_text(&self, path: &str) -> Result<Option<String>, String> {
        text(&self.sys_dir.join(path))
    }

    /// A file below /proc that holds a number.
    ///
    /// # Errors
    /// One sentence on why it cannot be read, or that it is no number.
    pub fn proc_number(&self, path: &str) -> Result<Option<u64>, String> {
        number(&self.proc_dir.join(path))
    }

    /// A file below /sys that holds a number.
    ///
    /// # Errors
    /// As [`Host::proc_number`].
    pub fn sys_number(&self, path: &str) -> Result<Option<u64>, String> {
        number(&self.sys_dir.join(path))
    }

    /// A line of this process's status (proc_pid_status(5)), without its name.
    pub fn status(&self, field: &str) -> Option<String> {
        let text = self.proc_text("self/status").ok()??;
        let of = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned());
        text.lines().find_map(of)
    }

    /// Whether this process has the effective capability of this number
    /// (capabilities(7)). `None` where the status does not tell.
    pub fn has_capability(&self, number: u32) -> Option<bool> {
        let bits = u64::from_str_radix(&self.status("CapEff")?, 16).ok()?;
        Some(bits.checked_shr(number).is_some_and(|rest| rest & 1 != 0))
    }

    /// What this process may do with a file below /dev; links are followed.
    pub fn device_access(&self, path: &str) -> FileAccess {
        let path = self.dev_dir.join(path);
        if !path.exists() {
            return FileAccess::Absent;
        }
        match eaccess(&path, AccessFlags::R_OK | AccessFlags::W_OK) {
            Ok(()) => FileAccess::Granted,
            Err(_) => FileAccess::Refused,
        }
    }
}

/// No file that is looked at is nearly as long.
const MAX_BYTES: u64 = 1 << 20;

fn text(path: &Path) -> Result<Option<String>, String> {
    match bounded_file::read(path, MAX_BYTES) {
        // What is no text is no answer either, but no reason to stop.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

fn number(path: &Path) -> Result<Option<u64>, String> {
    let Some(text) = text(path)? else { return Ok(None) };
    let rule = |_| format!("{} holds '{text}', which is no number", path.display());
    text.trim().parse().map(Some).map_err(rule)
}

#[cfg(test)]
#[path = "diagnostic_tests.rs"]
mod tests;
