//! perf_event_open(2), for which there is no safe wrapper here.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// `struct perf_event_attr` in its first version (linux/perf_event.h,
/// PERF_ATTR_SIZE_VER0), which every kernel takes.
#[derive(Debug, Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// PERF_ATTR_SIZE_VER0.
const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

/// PERF_TYPE_HARDWARE.
const HARDWARE: u32 = 0;
/// PERF_COUNT_HW_CACHE_MISSES: misses of the last-level cache, where the
/// processor can count them.
const CACHE_MISSES: u64 = 3;
/// `exclude_kernel` and `exclude_hv`, bits 5 and 6: what an unprivileged
/// process may count.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;

/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// A counter of the last-level cache misses of the calling thread in user
/// mode, running.
pub(super) fn open_cache_misses() -> io::Result<File> {
    let attributes = Attributes {
        kind: HARDWARE,
        size: SIZE,
        config: CACHE_MISSES,
        flags: USER_ONLY,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
    // SAFETY: the kernel reads `size` bytes from the pointer, which is exactly
    // the structure (asserted above), alive for the call; it writes at most its
    // `size` field, of a structure that nobody uses after. The others are
    // numbers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the descriptor is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}
