//! The flags and the ring that two processes share, and the calls on each
//! other's memory.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicU64};

use lmt_copy::prefetch_for_write;
use lmt_core::memory_limits::ensure_available;
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

use super::copy::{Stores, copy};

/// A counter with the address of a buffer beside it, on two cache lines of its
/// own: processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Flag {
    /// Numbers of messages or chunks, only ever growing, moved by one process.
    pub count: AtomicU64,
    /// Address of the buffer that the count announces.
    pub address: AtomicU64,
}

/// What each of the two processes writes; the other only reads it, but for
/// [`Side::claims`].
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Side {
    /// Messages offered for reading (the RTS).
    pub announced: Flag,
    /// Receives posted for writing (the CTS).
    pub posted: Flag,
    /// Messages of which this process has written its part.
    pub written: Flag,
    /// Messages of which this process has all bytes (the DONE).
    pub received: Flag,
    /// Chunks put into the ring.
    pub produced: Flag,
    /// Chunks taken out of it.
    pub drained: Flag,
    /// Bytes put into the ring from whose start every message begins.
    pub filled: Flag,
    /// Bytes taken out of it.
    pub emptied: Flag,
    /// What the two ends have claimed of the message that this process sends;
    /// the one flag that both move (by compare-and-swap).
    pub claims: Flag,
    /// Where the processes meet between measurements.
    pub arrived: Flag,
    /// The hop's ball.
    pub ball: Flag,
    /// A number that this process tells the other.
    pub told: Flag,
    /// This process's pid, 0 before it is there.
    pub pid: AtomicI32,
    /// Not 0 once this process has failed: the errno, or -1.
    pub failed: AtomicI32,
}

/// The shared memory's first part.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Control {
    /// One for each process.
    pub sides: [Side; 2],
}

const RING_OFFSET: usize = 8192;
/// Room of the ring, in bytes.
pub(super) const RING_BYTES: usize = 8 << 20;
/// A cache line, by less than which a message may stand behind the ring's begin.
pub(super) const LINE_BYTES: usize = 64;
const AREA_BYTES: usize = RING_OFFSET + RING_BYTES + LINE_BYTES;
/// How far ahead of its copy a receiver takes the ring's lines over.
const AHEAD_BYTES: usize = 1024;

const _: () = assert!(size_of::<Control>() <= RING_OFFSET);
const _: () = assert!(size_of::<Flag>() == 128);

/// Whether there is memory for a file of `bytes` bytes that are all to be written.
pub(super) fn ensure_memory(purpose: &'static str, key: &'static str, bytes: usize) -> io::Result<()> {
    ensure_available(purpose, key, bytes as u64, true).map_err(io::Error::other)
}

/// Makes a memory file of `bytes` bytes that are all to be written. `purpose` and
/// `key`, what can be lowered, go into the error.
pub(super) fn memory_file(purpose: &'static str, key: &'static str, bytes: usize) -> io::Result<File> {
    ensure_memory(purpose, key, bytes)?;
    let file = File::from(memfd_create(c"lmt-bench-limits", MFdFlags::MFD_CLOEXEC)?);
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// A memfd that both processes have mapped: [`Control`], then the ring.
#[derive(Debug)]
pub(super) struct SharedArea {
    map: MmapRaw,
    file: File,
}

impl SharedArea {
    /// Makes the memory.
    pub fn create() -> io::Result<Self> {
        let area = Self::map(memory_file("the ring of the bare methods", "what else is taken", AREA_BYTES)?)?;
        area.touch_ring();
        Ok(area)
    }

    /// Where [`Self::open`] finds it, as long as this process lives.
    pub fn card(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Maps the memory that another process made.
    pub fn open(card: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(card)?;
        if file.metadata()?.len() < AREA_BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared memory is too short"));
        }
        Self::map(file)
    }

    fn map(file: File) -> io::Result<Self> {
        let map = MmapOptions::new().len(AREA_BYTES).map_raw(&file)?;
        Ok(Self { map, file })
    }

    /// The flags.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned and longer than Control (asserted
        // above, and `open` checks the file's length), lives as long as `self`,
        // and Control consists of atomics only: every bit pattern is valid and
        // the other process may change them at any time.
        unsafe { &*self.map.as_ptr().cast::<Control>() }
    }

    /// Where the ring's bytes from `offset` on are, `bytes` of them.
    fn ring(&self, offset: usize, bytes: usize) -> *mut u8 {
        let most = RING_BYTES + LINE_BYTES;
        assert!(offset <= most && bytes <= most - offset, "beyond the ring");
        // SAFETY: the sum lies inside the mapping, which is AREA_BYTES long, by
        // the assertion above.
        unsafe { self.map.as_mut_ptr().add(RING_OFFSET + offset) }
    }

    /// Copies into the ring.
    pub fn put(&self, offset: usize, data: &[u8]) {
        let place = self.ring(offset, data.len());
        // SAFETY: `ring` proved that data.len() bytes are mapped at `place`;
        // `data` is private memory and cannot overlap it. The other process
        // touches these bytes only after `produced` says they are there.
        unsafe { place.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    }

    /// Copies out of the ring.
    pub fn take(&self, offset: usize, data: &mut [u8]) {
        let place = self.ring(offset, data.len());
        // SAFETY: as in `put`; the other process writes these bytes again only
        // after `drained` says that they have been taken.
        unsafe { place.copy_to_nonoverlapping(data.as_mut_ptr(), data.len()) };
    }

    /// As [`Self::put`], by the bare methods' own loop.
    pub fn fill(&self, offset: usize, data: &[u8], stores: Stores) {
        let place = self.ring(offset, data.len());
        // SAFETY: `ring` proved that data.len() bytes are mapped at `place`; `data` is private
        // memory and cannot overlap it. The other process touches these bytes only after
        // `filled` says that they are there.
        unsafe { copy(place, data.as_ptr(), data.len(), stores) };
    }

    /// As [`Self::take`], by the bare methods' own loop; into the cache, taking the
    /// lines over.
    pub fn empty(&self, offset: usize, data: &mut [u8], stores: Stores) {
        let bytes = data.len();
        let place = self.ring(offset, bytes);
        let (part_bytes, ahead_bytes) =
            if stores == Stores::Cached { (AHEAD_BYTES, AHEAD_BYTES) } else { (bytes.max(1), 0) };
        prefetch_for_write(place, bytes.min(ahead_bytes));
        for start in (0..bytes).step_by(part_bytes) {
            let end = bytes.min(start + part_bytes);
            prefetch_for_write(place.wrapping_add(end), (bytes - end).min(ahead_bytes));
            let (from, into) = (place.wrapping_add(start), data[start..end].as_mut_ptr());
            // SAFETY: `start..end` lies inside the bytes that `ring` proved to
            // be mapped, and inside `data`, which is private memory. The other
            // process writes these bytes again only after this one has answered
            // the message or, by `emptied`, told that they have been taken.
            unsafe { copy(into, from, end - start, stores) };
        }
    }

    fn touch_ring(&self) {
        for offset in (0..=RING_BYTES).step_by(4096) {
            self.put(offset, &[0; 64]);
        }
    }
}

/// Reads all of `data` from the other process's memory.
pub(crate) fn read_peer(pid: Pid, address: u64, data: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        let remote = RemoteIoVec { base: place(address)? + done, len: data.len() - done };
        match process_vm_readv(pid, &mut [IoSliceMut::new(&mut data[done..])], &[remote])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => done += bytes,
        }
    }
    Ok(())
}

/// Writes all of `data` into the other process's memory.
pub(super) fn write_peer(pid: Pid, address: u64, data: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        let remote = RemoteIoVec { base: place(address)? + done, len: data.len() - done };
        match process_vm_writev(pid, &[IoSlice::new(&data[done..])], &[remote])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            bytes => done += bytes,
        }
    }
    Ok(())
}

fn place(address: u64) -> io::Result<usize> {
    usize::try_from(address).map_err(io::Error::other)
}

/// The shortest system call there is.
pub(super) fn system_call() {
    // SAFETY: getppid(2) takes nothing, changes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Lets the processes that `parent` started read and write this process's
/// memory where Yama restricts that to descendants (prctl(2), PR_SET_PTRACER).
pub(crate) fn admit_siblings(parent: Pid) {
    let parent = libc::c_ulong::try_from(parent.as_raw()).unwrap_or(0);
    // SAFETY: PR_SET_PTRACER takes one number and touches no memory. Without
    // Yama it answers EINVAL, and then nothing is restricted.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, parent, 0, 0, 0) };
}
