//! How the ranks of a benchmark end when somebody wants them to: with the command, or
//! by a signal, and without a socket's file left behind.
#![forbid(unsafe_code)]

use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::socket::{UnixAddr, getsockname};
use nix::unistd::getppid;

use crate::error::BenchError;
use crate::processes::failure;

/// What asks a process to end.
pub const REQUESTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Ends this process when the command ends, however it ends, and at a signal that asks
/// for it. To be called before this process has a second thread.
///
/// # Errors
/// The command has ended, or the kernel refuses.
pub fn end_with(parent: i32) -> Result<(), BenchError> {
    end_at_signals()?;
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| failure("the kernel refuses PR_SET_PDEATHSIG", &errno.into()))?;
    if getppid().as_raw() == parent {
        Ok(())
    } else {
        Err(BenchError::Failure("the command that started this rank has ended".into()))
    }
}

/// A rank inherits signals that the command has blocked. A thread waits for them, for
/// the one that measures looks at nothing else.
fn end_at_signals() -> Result<(), BenchError> {
    let set = SigSet::from_iter(REQUESTS);
    set.thread_block()
        .map_err(|errno| failure("the signals that end a rank cannot be waited for", &errno.into()))?;
    let watch = move || {
        let Ok(signal) = set.wait() else { return };
        remove_own_sockets();
        // Its default action ends the process, and the command hears by which signal.
        let _ = set.thread_unblock().and_then(|()| raise(signal));
        // It is ignored here, since whoever started the command wanted that of it.
        std::process::exit(128 + signal as i32);
    };
    let spawned = thread::Builder::new().spawn(watch);
    spawned.map(drop).map_err(|error| failure("the signals that end a rank cannot be waited for", &error))
}

/// Removes the files of the sockets that this process listens on: it ends without
/// dropping its endpoints.
fn remove_own_sockets() {
    for path in own_sockets() {
        // If it cannot be removed, the next endpoint of that name does.
        let _ = fs::remove_file(path);
    }
}

/// By their names, which are those of endpoints' files (`lmt-` and an id): what an endpoint
/// accepts has that of its own socket, and what it connects has none. What this process
/// was started with is not its own.
fn own_sockets() -> Vec<PathBuf> {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open
        .filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok())
        .filter(|number| *number > 2);
    let names = numbers.filter_map(|number| getsockname::<UnixAddr>(number).ok());
    let paths = names.filter_map(|name| name.path().map(Path::to_owned));
    let is_endpoint = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("lmt-"))
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_endpoint).collect();
    paths.dedup();
    paths
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
