//! The system calls that have no safe wrapper: seccomp(2) with its listener
//! (seccomp_unotify(2)), process_vm_readv(2), and the status array that a
//! client maps too.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering};

use libc::{c_long, c_ulong, c_void};
use nix::errno::Errno;

/// A system call of a client that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The listener's number for it.
    pub id: u64,
    /// The thread that makes it.
    pub thread: i32,
    /// Which system call.
    pub number: c_long,
    pub arguments: [u64; 6],
}

/// What a client's call returns.
#[derive(Debug)]
pub enum Answer {
    /// The kernel carries the call out after all.
    Continue,
    Value(i64),
    Error(Errno),
}

/// Installs a filter on the calling thread and returns its listener's number,
/// which the caller owns. Allocates nothing: allocation may make calls that the
/// new filter sends to a listener that nobody reads yet.
pub fn install(program: &[libc::sock_filter]) -> Result<RawFd, Errno> {
    let description = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?,
        filter: program.as_ptr().cast_mut(),
    };
    // A call that has been received is answered even if a signal arrives
    // meanwhile (Linux 5.19): a copy must not be made twice.
    let steady = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match set_filter(&description, steady) {
        Err(Errno::EINVAL) => set_filter(&description, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        other => other,
    }
}

fn set_filter(program: &libc::sock_fprog, flags: c_ulong) -> Result<RawFd, Errno> {
    // SAFETY: the description and the instructions that it points to live
    // across the call, and its length is theirs; the kernel only reads them.
    let listener = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const *program)
    };
    Errno::result(listener).map(|number| number as RawFd)
}

/// Whether this kernel knows filters that ask a listener.
pub fn notification_is_known() -> Result<(), Errno> {
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads the four bytes of `action`, which outlive the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    Errno::result(answer).map(drop)
}

/// A copy, in this thread's table, of descriptor `number` of this process's
/// first thread's table.
pub fn descriptor_of_the_process(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    let process = Errno::result(process)? as RawFd;
    // SAFETY: the call has just made this descriptor, and nobody else has it.
    let process = unsafe { OwnedFd::from_raw_fd(process) };
    // SAFETY: takes numbers only.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    let copy = Errno::result(copy)? as RawFd;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Closes the listener's number that [`install`] has returned.
pub fn close(number: RawFd) {
    // SAFETY: the caller owns this descriptor and does not use it again.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
}

/// Closes every descriptor above the standard ones but `kept`, in the calling
/// thread's table, which must be its own.
pub fn close_all_but(kept: RawFd) {
    let kept = kept as u32;
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the table belongs to this thread alone, which owns
            // nothing in it but `kept`: the owners of the others use their own
            // table's descriptors, which stay.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

/// The kernel's struct for a call has grown in the past; this has room for it
/// to grow again.
#[repr(C, align(8))]
struct Received {
    notification: libc::seccomp_notif,
    room: [u8; 512],
}

/// Waits for a call. `None` when its caller has died meanwhile.
pub fn receive(listener: &OwnedFd) -> Option<Call> {
    // SAFETY: the struct is made of integers and arrays of them.
    let mut received: Received = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel wants zeroed memory as long as its struct, which is
    // shorter than this, and writes no more than that.
    let status = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut received.notification)
    };
    Errno::result(status).ok()?;
    let notification = received.notification;
    Some(Call {
        id: notification.id,
        thread: i32::try_from(notification.pid).ok()?,
        number: c_long::from(notification.data.nr),
        arguments: notification.data.args,
    })
}

/// Whether the caller still waits: if not, its thread's number may by now be
/// somebody else's.
pub fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads eight bytes of `id`, which outlives the call.
    let status =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    status == 0
}

/// Answers a call; the caller may have died, which is no error.
pub fn respond(listener: &OwnedFd, id: u64, answer: &Answer) -> Result<(), Errno> {
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
    match answer {
        Answer::Continue => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Answer::Value(value) => response.val = *value,
        Answer::Error(errno) => response.error = -(*errno as i32),
    }
    // SAFETY: the kernel reads (and may write) this struct, which is of its
    // type and outlives the call.
    let status =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    match Errno::result(status) {
        Err(Errno::ENOENT) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives the caller a descriptor of `file`, whose number is what its call
/// returns.
pub fn respond_with_file(listener: &OwnedFd, id: u64, file: &File, close_on_exec: bool) -> Result<(), Errno> {
    let addition = libc::seccomp_notif_addfd {
        id,
        flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
        srcfd: file.as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the kernel reads this struct, which is of its type and outlives
    // the call.
    let status =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const addition) };
    Errno::result(status).map(drop)
}

fn span(address: u64, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(address as usize), iov_len: bytes }
}

/// Reads from another process until `into` is full or its memory ends; returns
/// how many bytes were read.
pub fn read_memory(process: i32, address: u64, into: &mut [u8]) -> usize {
    let mut read = 0;
    while read < into.len() {
        let rest = &mut into[read..];
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
        let remote = span(address.wrapping_add(read as u64), rest.len());
        // SAFETY: the kernel writes no more than `local` describes, which is
        // borrowed exclusively here; `remote` it looks up in the other process.
        let moved = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(moved) {
            Ok(bytes) if bytes > 0 => read += bytes,
            _ => break,
        }
    }
    read
}

/// Writes to another process until `from` is used up or its memory ends;
/// returns how many bytes were written.
pub fn write_memory(process: i32, address: u64, from: &[u8]) -> usize {
    let mut written = 0;
    while written < from.len() {
        let rest = &from[written..];
        let local = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
        let remote = span(address.wrapping_add(written as u64), rest.len());
        // SAFETY: the kernel only reads what `local` describes, which is
        // borrowed here; `remote` is memory of the other process, which it has
        // asked to be written.
        let moved = unsafe { libc::process_vm_writev(process, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(moved) {
            Ok(bytes) if bytes > 0 => written += bytes,
            _ => break,
        }
    }
    written
}

/// The status array of a context: the same pages as the client's mapping.
#[derive(Debug)]
pub struct StatusArray {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, lies at one address in all threads,
// and is only touched through atomic stores.
unsafe impl Send for StatusArray {}
// SAFETY: as above.
unsafe impl Sync for StatusArray {}

impl StatusArray {
    /// Maps the first `bytes` bytes of a file of at least that length, which is
    /// sealed against shrinking.
    pub fn map(file: &File, bytes: usize) -> Result<Self, Errno> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Self { start, bytes })
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.bytes
    }

    /// Writes the status of slot `index`, after the copied bytes. An index past
    /// the end is ignored.
    pub fn store(&self, index: usize, status: u8) {
        if index >= self.bytes {
            return;
        }
        // SAFETY: `index` lies within the mapping.
        let slot = unsafe { self.start.cast::<u8>().add(index) };
        // SAFETY: the slot is mapped for as long as `self` lives, needs no
        // alignment, and this process touches it by atomic operations only.
        let slot = unsafe { AtomicU8::from_ptr(slot) };
        // Release: whoever reads the status with Acquire sees the bytes that
        // were copied before it.
        slot.store(status, Ordering::Release);
    }
}

impl Drop for StatusArray {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody uses it any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
