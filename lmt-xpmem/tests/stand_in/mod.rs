//! A stand-in for XPMEM's module, for machines without it: for groups of test processes
//! whose memory is in memory files, which their peers open and map.
//!
//! All that these processes allocate comes from such a file ([`memory::Shared`]). Other
//! memory (stacks, code) cannot be attached, and is SIGSEGV where it is touched.
//!
//! Where it differs from the module: what a process unmaps stays in its peers' attachments,
//! where the module drops it. Only what is cut off the end of a file goes, with SIGBUS as
//! the module raises. So tests of memory that goes cut files.
#![allow(unsafe_code)] // Maps what peers have.

pub mod memory;
#[allow(dead_code)] // Each test binary uses a part of it.
pub mod real;

use std::fs::{self, File, OpenOptions};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use lmt_xpmem::Driver;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

const BOTH: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

/// A segment is its owner's pid, and so is a permit.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandIn;

/// A mapping of a memory file in another process (proc_pid_maps(5)).
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    device: (u64, u64),
    inode: u64,
}

impl Mapped {
    fn parse(line: &str) -> Option<Self> {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        if !words.next()?.ends_with('s') || !line.contains("/memfd:") {
            return None;
        }
        let (offset, (major, minor)) = (words.next()?, words.next()?.split_once(':')?);
        Some(Self {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            device: (hexadecimal(major)?, hexadecimal(minor)?),
            inode: words.next()?.parse().ok()?,
        })
    }

    /// The file, which the process has open.
    fn open(&self, pid: i64) -> Option<File> {
        let of = |found: &fs::Metadata| {
            let device = (u64::from(nix::libc::major(found.dev())), u64::from(nix::libc::minor(found.dev())));
            found.ino() == self.inode && device == self.device
        };
        let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().map(|entry| entry.path());
        let path = open.into_iter().find(|path| fs::metadata(path).is_ok_and(|found| of(&found)))?;
        OpenOptions::new().read(true).write(true).open(path).ok()
    }
}

// SAFETY: all of the range is mapped, for writing where the peer has a memory file there,
// until it is unmapped; accesses elsewhere, and behind the end of a file, are signals.
unsafe impl Driver for StandIn {
    const NAME: &'static str = "xpmem-stand-in";

    fn segment(&self) -> Result<i64, Errno> {
        Ok(i64::from(std::process::id()))
    }

    fn get(&self, segment: i64) -> Result<i64, Errno> {
        fs::read_dir(format!("/proc/{segment}/fd")).map_err(|_| Errno::EACCES)?;
        Ok(segment)
    }

    fn release(&self, _: i64) {}

    fn attach(&self, permit: i64, address: u64, bytes: u64) -> Result<usize, Errno> {
        let maps = fs::read_to_string(format!("/proc/{permit}/maps")).map_err(|_| Errno::ENOENT)?;
        let length = NonZeroUsize::new(bytes as usize).ok_or(Errno::EINVAL)?;
        let nothing = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let start = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_NONE, nothing) }?;
        let here = start.as_ptr().expose_provenance();
        for one in maps.lines().filter_map(Mapped::parse) {
            let (from, to) = (one.start.max(address), one.end.min(address + bytes));
            if from >= to {
                continue;
            }
            let Some(file) = one.open(permit) else { continue };
            let at = NonZeroUsize::new(here + (from - address) as usize);
            let part = NonZeroUsize::new((to - from) as usize).ok_or(Errno::EINVAL)?;
            let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
            let offset = one.offset + (from - one.start);
            // SAFETY: within the range that was just mapped, and that nobody else knows.
            unsafe { mmap(at, part, BOTH, flags, &file, offset as i64) }?;
        }
        // SAFETY: the range that was just mapped; children do not get it, as with the module.
        unsafe { madvise(start, length.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(here)
    }

    unsafe fn detach(&self, address: usize, bytes: u64) {
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).expect("it was mapped");
        // SAFETY: `attach` mapped this, and nobody uses it, by the caller's promise.
        unsafe { munmap(start, bytes as usize) }.expect("it was mapped");
    }
}
