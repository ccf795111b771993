//! The limit on open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More is of no use: the kernel's own bound (fs.nr_open) unless somebody has raised
/// it, and there are programs that go through all numbers that they might have open.
const MOST: u64 = 1 << 20;

/// Raises this process's soft limit on open files to its hard one (`RLIMIT_NOFILE` in
/// getrlimit(2)), to 2^20 at most; what it starts afterwards inherits that. Each
/// connected peer takes descriptors, and many systems give 1024 to who does not ask.
/// Returns the limit then in force, if it can be read.
///
/// A program that calls select(2) must not open descriptors above 1023, whatever the
/// limit is.
pub fn raise_open_files() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let wanted = hard.min(MOST);
    if soft >= wanted {
        return Some(soft);
    }
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => Some(wanted),
        Err(errno) => {
            tracing::info!(%errno, "the limit on open files stays at {soft}");
            Some(soft)
        }
    }
}

#[cfg(test)]
#[path = "open_files_tests.rs"]
mod tests;
