//! Folders of a command's own in places that all programs share, such as /tmp and
//! /dev/shm, where nothing else would ever remove them.
//!
//! Each is locked (flock(2)) for as long as its command lives, whichever way that
//! ends. So what a killed command has left is found by the next one: a folder with
//! the pid of no process in its name and without a lock. The lock tells of
//! processes of other pid namespaces, the pid of versions that did not lock.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

const PREFIX: &str = "lmt-peers-";

/// Those of this process that are there.
static PRESENT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder of this user's alone, removed with all that is in it.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    _lock: Flock<File>,
}

impl OwnFolder {
    /// Makes one in `parent`, and removes what commands that were killed have left
    /// there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(parent: &Path) -> io::Result<Self> {
        remove_left(parent);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            // Relaxed: only that no two calls get the same number matters.
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            present().push(path.clone());
            let lock = Flock::lock(open(&path)?, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
            // Before it was locked, one who does not see this process may have
            // taken it for left.
            if fs::metadata(&path).is_ok_and(|now| lock.metadata().is_ok_and(|mine| mine.ino() == now.ino()))
            {
                return Ok(Self { path, _lock: lock });
            }
            present().retain(|known| *known != path);
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // If it cannot be removed, the next command tries.
        let _ = fs::remove_dir_all(&self.path);
        present().retain(|path| *path != self.path);
    }
}

/// Removes every folder of this process that is there: it ends now, without
/// dropping anything.
pub fn remove_all() {
    for path in present().drain(..) {
        // If it cannot be removed, the next command tries.
        let _ = fs::remove_dir_all(path);
    }
}

fn present() -> MutexGuard<'static, Vec<PathBuf>> {
    // The list is whole after any panic: paths are only added and taken out.
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(folder: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

/// Removes what commands of this user that were killed have left in `parent`.
fn remove_left(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| owner(&entry.file_name()).is_some_and(is_dead)) {
        let path = entry.path();
        let Ok(folder) = open(&path) else { continue };
        if !folder.metadata().is_ok_and(|metadata| metadata.uid() == geteuid().as_raw()) {
            continue;
        }
        if let Ok(_lock) = Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            // If it cannot be removed, the next command tries.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whose folder this is, by its name.
fn owner(name: &OsStr) -> Option<Pid> {
    let (pid, number) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse::<i32>().ok().filter(|pid| *pid > 0).map(Pid::from_raw)
}

/// Whether there is no process of this number.
fn is_dead(pid: Pid) -> bool {
    kill(pid, None) == Err(Errno::ESRCH)
}

#[cfg(test)]
#[path = "own_folder_tests.rs"]
mod tests;
