//! The kernel module, by its device.
#![allow(unsafe_code)] // ioctl(2).

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicPtr, Ordering};

use lmt_core::fork_guard::Origin;
use nix::errno::Errno;

use crate::abi;
use crate::driver::Driver;

/// The processes of this user may get a segment, and those with CAP_IPC_OWNER.
const OWNER_ONLY: u64 = 0o600;

/// What a process has of the module: one descriptor and one segment for all endpoints.
///
/// The module ends all that a process has when that closes any descriptor of the device.
/// So this one is never closed, whatever becomes of the segment: another library of the
/// process may use the device.
#[derive(Debug)]
struct Opened {
    device: OwnedFd,
    /// Or why there is none: the descriptor stays open then, too.
    segment: Result<i64, Errno>,
    origin: Origin,
}

/// That of this process, or of the one that forked it. A pointer and no lock: a fork in
/// the middle of another thread's call must leave nothing locked in the child.
static OPENED: AtomicPtr<Opened> = AtomicPtr::new(std::ptr::null_mut());

/// Makes a request; its answer.
///
/// # Safety
/// `argument` is what the request takes.
unsafe fn request<T>(device: &OwnedFd, number: u32, argument: &mut T) -> Result<i32, Errno> {
    let raw: *mut T = argument;
    // SAFETY: the module reads and writes the argument, which is borrowed for that; the
    // caller vouches for its type.
    Errno::result(unsafe { libc::ioctl(device.as_raw_fd(), number.into(), raw) })
}

fn open() -> Result<Opened, Errno> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(abi::DEVICE);
    let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    let device = OwnedFd::from(file);
    let segment = make_segment(&device);
    Ok(Opened { device, segment, origin: Origin::here() })
}

/// Makes the segment of all this process's memory.
fn make_segment(device: &OwnedFd) -> Result<i64, Errno> {
    // SAFETY: it takes nothing.
    let version = unsafe { request(device, abi::VERSION, &mut ()) }?;
    if version >> 16 & 0xfff != abi::MAJOR {
        return Err(Errno::ENOTSUP);
    }
    let (bytes, permit_value) = (abi::WHOLE, OWNER_ONLY);
    let mut make = abi::Make { bytes, permit_type: abi::PERMIT_MODE, permit_value, ..abi::Make::default() };
    // SAFETY: it takes a `Make`.
    unsafe { request(device, abi::MAKE, &mut make) }?;
    Ok(make.segment)
}

/// What this process has, opened on first use.
fn opened() -> Result<&'static Opened, Errno> {
    // Acquire pairs with the Release below: what is pointed to is whole.
    let known = OPENED.load(Ordering::Acquire);
    // SAFETY: null, or a leaked box, which nobody changes.
    let found = unsafe { known.as_ref() };
    if let Some(opened) = found.filter(|opened| opened.origin.is_this_process()) {
        return Ok(opened);
    }
    let new: &'static Opened = Box::leak(Box::new(open()?));
    // Release: see above. Of two threads that open at once both go on with what they
    // have: to close either would end both.
    OPENED.store(std::ptr::from_ref(new).cast_mut(), Ordering::Release);
    Ok(new)
}

/// The kernel module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device;

// SAFETY: the module maps what it says it does, and keeps it until it is detached or the
// process ends; memory that the peer does not have is SIGBUS.
unsafe impl Driver for Device {
    const NAME: &'static str = "xpmem";

    fn segment(&self) -> Result<i64, Errno> {
        opened()?.segment
    }

    fn get(&self, segment: i64) -> Result<i64, Errno> {
        let mut get = abi::Get {
            segment,
            flags: abi::READ_WRITE,
            permit_type: abi::PERMIT_MODE,
            ..abi::Get::default()
        };
        // SAFETY: it takes a `Get`.
        unsafe { request(&opened()?.device, abi::GET, &mut get) }?;
        Ok(get.permit)
    }

    fn release(&self, permit: i64) {
        if let Ok(opened) = opened() {
            // SAFETY: it takes a `Release`.
            let released = unsafe { request(&opened.device, abi::RELEASE, &mut abi::Release { permit }) };
            // The module forgets what it does not know.
            let _ = released;
        }
    }

    fn attach(&self, permit: i64, address: u64, bytes: u64) -> Result<usize, Errno> {
        let offset = i64::try_from(address).map_err(|_| Errno::EINVAL)?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::EINVAL)?;
        let mut attach = abi::Attach { permit, offset, bytes, ..abi::Attach::default() };
        // SAFETY: it takes an `Attach`, which names no place here.
        unsafe { request(&opened()?.device, abi::ATTACH, &mut attach) }?;
        Ok(attach.address as usize)
    }

    unsafe fn detach(&self, address: usize, _bytes: u64) {
        let mut detach = abi::Detach { address: address as u64 };
        if let Ok(opened) = opened() {
            // SAFETY: it takes a `Detach`; the caller vouches that nobody uses the memory.
            let detached = unsafe { request(&opened.device, abi::DETACH, &mut detach) };
            // Not unmapped otherwise: the module kills a process that does that.
            let _ = detached;
        }
    }
}
