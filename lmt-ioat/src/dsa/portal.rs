//! The two instructions that give a descriptor to a device, and the page of the
//! device that they write (Intel's manual, volume 2, ENQCMD and MOVDIR64B).
#![allow(unsafe_code)] // Maps a device and executes instructions.

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use lmt_core::fork_guard::Origin;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

use super::descriptor::{DESCRIPTOR_BYTES, Descriptor};
use super::queue::Submitted;
use super::sysfs::Mode;

/// A portal is one page of the device.
const PORTAL_BYTES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// An instruction that this CPU has: only [`Instruction::of`] makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instruction(Kind);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
enum Kind {
    Movdir64b,
    Enqcmd,
}

impl Instruction {
    /// The instruction for work queues of this mode, if the CPU has it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of(mode: Mode) -> Option<Self> {
        const MOVDIR64B: u32 = 1 << 28;
        const ENQCMD: u32 = 1 << 29;
        let (bit, kind) = match mode {
            Mode::Dedicated => (MOVDIR64B, Kind::Movdir64b),
            Mode::Shared => (ENQCMD, Kind::Enqcmd),
        };
        // Leaf 7 is there only where the highest leaf says so. (With newer
        // compilers these two are safe.)
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 CPU has CPUID, and leaf 0.
        let (most, _) = unsafe { std::arch::x86_64::__get_cpuid_max(0) };
        if most < 7 {
            return None;
        }
        #[allow(unused_unsafe)]
        // SAFETY: as above, and it has leaf 7.
        let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
        (leaf.ecx & bit != 0).then_some(Self(kind))
    }

    /// No other architecture has them.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn of(_mode: Mode) -> Option<Self> {
        None
    }
}

/// A work queue's portal, mapped.
#[derive(Debug)]
pub(super) struct Portal {
    base: NonNull<u8>,
    instruction: Instruction,
    /// Where in the page the next descriptor goes: the device takes it anywhere,
    /// and stores to one and the same line wait for each other.
    next_offset: usize,
    origin: Origin,
}

// SAFETY: an address of a mapping that belongs to this value alone and to no
// thread; it is written by `submit` only, through `&mut`.
unsafe impl Send for Portal {}

impl Portal {
    /// Maps the portal of an open work queue.
    pub(super) fn map(device: impl AsFd, instruction: Instruction) -> Result<Self, Errno> {
        // SAFETY: a new mapping where the kernel likes, which replaces nothing.
        let mapped = unsafe {
            mmap(None, PORTAL_BYTES, ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, device.as_fd(), 0)
        };
        let base = mapped?.cast();
        let portal = Self { base, instruction, next_offset: 0, origin: Origin::here() };
        // A forked child has no business at the device: what it submitted
        // would carry its parent's address space.
        // SAFETY: all of a mapping that is ours; it is only kept from children.
        unsafe { madvise(base.cast(), PORTAL_BYTES.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(portal)
    }

    pub(super) fn submit(&mut self, descriptor: &Descriptor) -> Submitted {
        if !self.origin.is_this_process() {
            return Submitted::Refused { errno: libc::EPERM };
        }
        // SAFETY: the offset is below the page's size, and the page is mapped.
        let line = unsafe { self.base.add(self.next_offset) };
        self.next_offset = (self.next_offset + DESCRIPTOR_BYTES) % PORTAL_BYTES.get();
        match self.instruction.0 {
            Kind::Movdir64b => {
                // SAFETY: an `Instruction` exists only where cpuid shows it;
                // `line` is 64 aligned bytes of the mapped portal.
                unsafe { movdir64b(line, descriptor) };
                Submitted::Accepted
            }
            // SAFETY: the same.
            Kind::Enqcmd => match unsafe { enqcmd(line, descriptor) } {
                true => Submitted::Accepted,
                false => Submitted::Full,
            },
        }
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        if self.origin.is_this_process() {
            // SAFETY: our own mapping, whole, which nobody uses any more. The
            // only error there could be is that it is no mapping.
            let _ = unsafe { munmap(self.base.cast(), PORTAL_BYTES.get()) };
        }
    }
}

/// Writes the descriptor to `line` by one write of 64 bytes.
///
/// # Safety
/// The CPU must have MOVDIR64B; `line` must be 64 writable bytes, aligned to 64.
#[cfg(target_arch = "x86_64")]
unsafe fn movdir64b(line: NonNull<u8>, descriptor: &Descriptor) {
    // SAFETY: the caller's promise, and a descriptor to read 64 bytes from. The
    // store is weakly ordered: the fence before it makes all earlier stores
    // (lists, zeroed records, the bytes to copy) visible before the device can
    // see the descriptor. The block is taken to read and write memory.
    unsafe {
        std::arch::asm!(
            "sfence",
            "movdir64b {line}, [{descriptor}]",
            line = in(reg) line.as_ptr(),
            descriptor = in(reg) descriptor,
            options(nostack, preserves_flags),
        );
    }
}

/// Offers the descriptor to a shared work queue; whether it was accepted.
///
/// # Safety
/// The CPU must have ENQCMD; `line` must be 64 bytes of a mapped portal, aligned
/// to 64.
#[cfg(target_arch = "x86_64")]
unsafe fn enqcmd(line: NonNull<u8>, descriptor: &Descriptor) -> bool {
    let retry: u8;
    // SAFETY: the caller's promise, and a descriptor to read 64 bytes from; the
    // fence as in `movdir64b`. The zero flag says that the queue was full.
    unsafe {
        std::arch::asm!(
            "sfence",
            "enqcmd {line}, [{descriptor}]",
            "setz {retry}",
            line = in(reg) line.as_ptr(),
            descriptor = in(reg) descriptor,
            retry = out(reg_byte) retry,
            options(nostack),
        );
    }
    retry == 0
}

/// Never called: there is no [`Instruction`] then.
///
/// # Safety
/// None; it does nothing.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn movdir64b(_line: NonNull<u8>, _descriptor: &Descriptor) {}

/// Never called: there is no [`Instruction`] then.
///
/// # Safety
/// None; it does nothing.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn enqcmd(_line: NonNull<u8>, _descriptor: &Descriptor) -> bool {
    false
}
