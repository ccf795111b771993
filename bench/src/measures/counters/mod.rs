//! The processor's own count of last-level cache misses, where it is to be had.

mod sys;

use std::fs::{self, File};
use std::io::{self, Read};

use nix::errno::Errno;

/// Counts this thread's misses of the last cache.
#[derive(Debug)]
pub struct MissCounter(File);

impl MissCounter {
    /// Starts counting (perf_event_open(2)).
    ///
    /// # Errors
    /// One sentence on why there is no such count here.
    pub fn start() -> Result<Self, String> {
        let mut counter = sys::open_cache_misses().map(Self).map_err(|error| refusal(&error))?;
        // A counter that was given out may still not count: a machine's only
        // ones may be taken, and then it says so when it is read.
        counter.misses().map_err(|error| format!("the count of cache misses cannot be read: {error}"))?;
        Ok(counter)
    }

    /// Misses since the start.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn misses(&mut self) -> io::Result<u64> {
        let mut count = [0; 8];
        self.0.read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

/// Why the kernel gives no counter, and what would help.
fn refusal(error: &io::Error) -> String {
    let reason = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => {
            let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let level = level.map_or_else(|_| "unknown".to_owned(), |level| level.trim().to_owned());
            format!(
                "/proc/sys/kernel/perf_event_paranoid is {level}, and 2 or less is needed, or CAP_PERFMON"
            )
        }
        Some(Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP) => {
            "the processor, or the virtual machine, offers no count of them".to_owned()
        }
        Some(Errno::ENOSYS) => "the kernel, or a filter, has no perf_event_open".to_owned(),
        _ => "see perf_event_open(2)".to_owned(),
    };
    format!("cache misses are not counted: {error}; {reason}")
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
