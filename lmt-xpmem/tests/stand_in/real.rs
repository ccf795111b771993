//! The machine's own module, if tests are to use it.

use lmt_xpmem::{Device, Driver};
use nix::errno::Errno;

/// The variable that has tests use the machine's own module. It is the kernel's, and a
/// mistake in it the machine's end; so nobody's tests use it unasked.
const ENV_REAL: &str = "LMT_REAL_XPMEM";

/// Whether it is asked for.
pub fn is_asked_for() -> bool {
    std::env::var_os(ENV_REAL).is_some()
}

/// Says that a test is skipped where it is not to be had, and why.
pub fn is_skipped() -> bool {
    let why = match Device.segment() {
        _ if !is_asked_for() => format!("{ENV_REAL} is not set, so the machine's own module is left alone"),
        Err(errno) => format!("/dev/xpmem: {errno}"),
        Ok(_) => return false,
    };
    lmt_conformance::require::skipped(Device::NAME, &why);
    true
}

/// The module, which is not there unless asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

// SAFETY: as the module.
unsafe impl Driver for Real {
    const NAME: &'static str = Device::NAME;

    fn segment(&self) -> Result<i64, Errno> {
        if is_asked_for() { Device.segment() } else { Err(Errno::ENOENT) }
    }

    fn get(&self, segment: i64) -> Result<i64, Errno> {
        Device.get(segment)
    }

    fn release(&self, permit: i64) {
        Device.release(permit);
    }

    fn attach(&self, permit: i64, address: u64, bytes: u64) -> Result<usize, Errno> {
        Device.attach(permit, address, bytes)
    }

    unsafe fn detach(&self, address: usize, bytes: u64) {
        // SAFETY: the caller's promise.
        unsafe { Device.detach(address, bytes) };
    }
}
