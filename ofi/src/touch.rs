//! Memory that was lent, touched only as far as it can be.
//!
//! It may be other than what its lender promised: read-only by now, unmapped, or
//! mapped from a file that was cut. A process that touches it then dies of SIGSEGV or
//! SIGBUS. For a peer's sake, and at a peer's word, none may. So the kernel copies, by
//! way of a file of this process, and answers `EFAULT`. process_vm_readv(2) of this process
//! itself takes as long, refuses secret memory (memfd_secret(2)), and may be filtered.
#![allow(unsafe_code)] // System calls on addresses.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use lmt::buffer::Segment;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{SysconfVar, sysconf};

use crate::abi::Errno;

/// The most that is copied by instructions, which is in two pages at most.
const FEW_BYTES: usize = 4096;

/// The file, once it is needed. It is as long as the longest copy.
#[derive(Debug, Default)]
pub struct FaultSafeCopy(Option<OwnedFd>);

/// A call's answer: how many bytes of `wanted` it moved.
fn all_of(moved: isize, wanted: usize) -> Result<(), Errno> {
    match usize::try_from(moved) {
        Ok(bytes) if bytes == wanted => Ok(()),
        // The rest cannot be reached.
        Ok(_) => Err(Errno::FAULT),
        Err(_) => Err(last()),
    }
}

fn last() -> Errno {
    Errno(nix::errno::Errno::last_raw())
}

impl FaultSafeCopy {
    fn file(&mut self) -> Result<&OwnedFd, Errno> {
        if self.0.is_none() {
            let created = memfd_create(c"lmt-touch", MFdFlags::MFD_CLOEXEC);
            self.0 = Some(created.map_err(|error| Errno(error as i32))?);
        }
        self.0.as_ref().ok_or(Errno::NOMEM)
    }

    /// Copies the first bytes of memory, as many as `into` has, which is at least as long.
    ///
    /// # Errors
    /// [`Errno::FAULT`]: it cannot be read; or there is no file.
    pub fn read(&mut self, from: Segment, into: &mut [u8]) -> Result<(), Errno> {
        let bytes = into.len().min(from.bytes);
        if bytes == 0 {
            return Ok(());
        }
        let file = self.file()?;
        let address = std::ptr::with_exposed_provenance(from.address);
        // SAFETY: the kernel reads the memory, if it can, and this process does not; that
        // changes nothing, whatever is there.
        let written = unsafe { libc::pwrite(file.as_raw_fd(), address, bytes, 0) };
        all_of(written, bytes)?;
        let read = pread(file, &mut into[..bytes], 0).map_err(|error| Errno(error as i32))?;
        if read == bytes { Ok(()) } else { Err(Errno::IO) }
    }

    /// Copies `bytes` to the beginning of memory, as many as it has.
    ///
    /// # Errors
    /// [`Errno::FAULT`]: it cannot be written, of which a part may be; or there is no file.
    ///
    /// # Safety
    /// The memory was lent for writing, and if it is still this process's at all, nobody
    /// has references to it.
    pub unsafe fn write(&mut self, to: Segment, bytes: &[u8]) -> Result<(), Errno> {
        let bytes = &bytes[..bytes.len().min(to.bytes)];
        if bytes.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        let written = pwrite(file, bytes, 0).map_err(|error| Errno(error as i32))?;
        if written < bytes.len() {
            return Err(Errno::IO);
        }
        let address = std::ptr::with_exposed_provenance_mut(to.address);
        // SAFETY: the kernel writes no more than the lent bytes, if it can; the caller
        // promises that they may be written.
        let read = unsafe { libc::pread(file.as_raw_fd(), address, bytes.len(), 0) };
        all_of(read, bytes.len())
    }

    /// The same as [`FaultSafeCopy::read`] of at most a page of this process's own buffer: by
    /// instructions, once the kernel has said that it can be read. That takes a tenth of
    /// the time.
    ///
    /// # Errors
    /// As [`check`], or [`FaultSafeCopy::read`].
    ///
    /// # Safety
    /// The memory was lent for reading, and if it is still this process's at all, nobody
    /// writes it now.
    pub unsafe fn read_own(&mut self, from: Segment, into: &mut [u8]) -> Result<(), Errno> {
        if from.bytes > FEW_BYTES {
            return self.read(from, into);
        }
        let bytes = into.len().min(from.bytes);
        check(Segment { bytes, ..from }, false)?;
        let address: *const u8 = std::ptr::with_exposed_provenance(from.address);
        // SAFETY: lent for reading by the caller's promise, and the kernel has just read
        // each page of it; `into` is as long, and is this process's alone.
        unsafe { address.copy_to_nonoverlapping(into.as_mut_ptr(), bytes) };
        Ok(())
    }

    /// The same of [`FaultSafeCopy::write`].
    ///
    /// # Errors
    /// As [`check`], or [`FaultSafeCopy::write`].
    ///
    /// # Safety
    /// As [`FaultSafeCopy::write`].
    pub unsafe fn write_own(&mut self, to: Segment, bytes: &[u8]) -> Result<(), Errno> {
        if to.bytes > FEW_BYTES {
            // SAFETY: the caller's promise.
            return unsafe { self.write(to, bytes) };
        }
        let bytes = &bytes[..bytes.len().min(to.bytes)];
        check(Segment { bytes: bytes.len(), ..to }, true)?;
        let address: *mut u8 = std::ptr::with_exposed_provenance_mut(to.address);
        // SAFETY: lent for writing by the caller's promise, without references to it, and
        // the kernel has just written each page of it.
        unsafe { address.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

/// Whether memory can be read, and written if `writes`, as far as it is known a moment
/// before: for who touches it by instructions. Changes nothing.
///
/// # Errors
/// [`Errno::FAULT`]: it cannot; or the kernel does not say.
pub fn check(of: Segment, writes: bool) -> Result<(), Errno> {
    let page_bytes = page_bytes();
    let end = of.address.saturating_add(of.bytes);
    let mut address = of.address;
    while address < end {
        if writes { add_nothing(address) } else { compare(address) }?;
        address = (address / page_bytes + 1) * page_bytes;
    }
    Ok(())
}

fn page_bytes() -> usize {
    let asked = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    asked.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes > 0).unwrap_or(4096)
}

/// Has the kernel add 0 to the word that holds a byte, atomically (FUTEX_WAKE_OP in
/// futex(2)): so it writes what is there.
fn add_nothing(address: usize) -> Result<(), Errno> {
    const ADD_0: libc::c_int = libc::FUTEX_OP_ADD << 28;
    let (wake, wake_there): (u32, usize) = (0, 0);
    // SAFETY: the word is in the same page as the byte. It is changed by nothing but an
    // atomic addition of 0, which is as if it had not been; who waits there may be woken,
    // as waiters may at any time. `NOBODY` lives for ever.
    let answer = unsafe {
        let operation = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, NOBODY.as_ptr(), operation, wake, wake_there, word(address), ADD_0)
    };
    if answer >= 0 { Ok(()) } else { Err(last()) }
}

/// Has the kernel compare the word that holds a byte with 0 (FUTEX_CMP_REQUEUE in
/// futex(2)): so it reads what is there.
fn compare(address: usize) -> Result<(), Errno> {
    let (wake, requeue, value): (u32, usize, u32) = (0, 0, 0);
    // SAFETY: the word is in the same page as the byte. It is only read; nobody is woken,
    // and nobody is made to wait elsewhere. `NOBODY` lives for ever.
    let answer = unsafe {
        let operation = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, word(address), operation, wake, requeue, NOBODY.as_ptr(), value)
    };
    match last() {
        _ if answer >= 0 => Ok(()),
        // It is another number.
        Errno::AGAIN => Ok(()),
        error => Err(error),
    }
}

/// Nobody waits here.
static NOBODY: AtomicU32 = AtomicU32::new(0);

const fn word(address: usize) -> usize {
    address - address % size_of::<u32>()
}

#[cfg(test)]
#[path = "touch_tests.rs"]
mod tests;
