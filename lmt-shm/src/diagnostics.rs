//! Whether a pool can be made: the kernel's memory files, and enough memory.

use lmt_core::diagnostic::{Finding, Host, State};
use lmt_core::errno_advice::advice;
use lmt_core::error::MemoryError;
use lmt_core::shared_memory::SharedMemory;
use nix::errno::Errno;

use crate::geometry::{Config, Geometry, PAGE_BYTES};

const PURPOSE: &str = "a check-up of shared memory";

pub(crate) fn diagnostics(host: &Host, config: &Config, geometry: Geometry) -> Vec<Finding> {
    let file = make(PAGE_BYTES, true);
    // All of the pool is mapped; what its idle transfers keep is allocated.
    let kept = u64::from(config.kept_transfers) * geometry.lane_bytes();
    let pool = make(geometry.pool_bytes(), false).and_then(|()| make(kept.max(PAGE_BYTES), true));
    vec![file_finding(host, file).by_call(host), pool_finding(pool).by_call(host)]
}

/// Makes shared memory as a pool is made, and gives it back.
fn make(bytes: u64, commit: bool) -> Result<(), MemoryError> {
    // A geometry that was checked has no more than 64 GiB.
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    SharedMemory::create(PURPOSE, "pool_transfers", bytes, commit).map(|_| ())
}

fn file_finding(host: &Host, made: Result<(), MemoryError>) -> Finding {
    let name = "memfd_create";
    match made {
        Ok(()) => Finding::new(
            name,
            State::Good,
            "a memory file was made, sealed and mapped; lmt uses no file of /dev/shm",
        ),
        Err(error) => {
            let policy = host.proc_number("sys/vm/memfd_noexec").ok().flatten();
            let fix = if policy == Some(2) && is_refusal(&error) {
                "sudo sysctl vm.memfd_noexec=1 (2 refuses memory files to programs that do not know of it, on Linux 6.3 to 6.5)".to_owned()
            } else {
                fix_of(&error)
            };
            Finding::new(name, State::Blocked, error.to_string()).fixed_by(fix)
        }
    }
}

fn pool_finding(made: Result<(), MemoryError>) -> Finding {
    let name = "memory for the pool";
    match made {
        Ok(()) => Finding::new(
            name,
            State::Good,
            "the pool's address space and the memory that it keeps are to be had",
        ),
        Err(error) => Finding::new(name, State::Blocked, error.to_string()).fixed_by(fix_of(&error)),
    }
}

/// Whether the kernel, or a filter before it, does not want to.
fn is_refusal(error: &MemoryError) -> bool {
    matches!(error.errno(), Errno::EPERM | Errno::EACCES)
}

fn fix_of(error: &MemoryError) -> String {
    match error {
        MemoryError::Call { call, errno, .. } => advice(call, *errno),
        _ => "raise the limit that the sentence names (ulimit -v, ulimit -f, or memory.max of the cgroup)"
            .to_owned(),
    }
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
