//! Memory by address, requests on it, and forks.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lmt_knem::ioctl::Device;
use lmt_knem::ioctl::abi::Segment;
use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, fork};
use zerocopy::{FromBytes, IntoBytes};

pub const PAGE_BYTES: usize = 4096;

/// An address at which nothing is mapped, as Linux maps nothing below
/// vm.mmap_min_addr on any machine that runs this.
pub const NOWHERE: u64 = 8;

/// Memory of this process that nothing but the driver and [`Area`]'s own copies
/// touches, so that the driver may do with it what it wants. It is unmapped
/// only when asked for.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    address: usize,
    bytes: usize,
}

impl Area {
    /// Zeros that nobody has touched.
    pub fn untouched(bytes: usize) -> Self {
        Self::map(bytes, libc::MAP_PRIVATE)
    }

    /// Touched zeros.
    pub fn zeroed(bytes: usize) -> Self {
        let area = Self::untouched(bytes);
        area.put(&vec![0; bytes]);
        area
    }

    /// With these bytes.
    pub fn with(bytes: &[u8]) -> Self {
        let area = Self::untouched(bytes.len());
        area.put(bytes);
        area
    }

    fn map(bytes: usize, flags: i32) -> Self {
        let area = Self::mapped(bytes, flags);
        // What was pinned there is no area any more.
        pins().retain(|pin| !pin.overlaps(&(area.address..area.address + bytes.max(1))));
        area
    }

    fn mapped(bytes: usize, flags: i32) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = flags | libc::MAP_ANONYMOUS;
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes.max(1), access, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED, "{bytes} bytes of memory are needed: {}", Errno::last());
        Self { address: start.expose_provenance(), bytes }
    }

    fn pointer(self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "an offset within the area");
        std::ptr::with_exposed_provenance_mut(self.address + offset)
    }

    /// All of it.
    pub fn all(self) -> Piece {
        self.piece(0, self.bytes)
    }

    /// A part of it.
    pub fn piece(self, offset: usize, bytes: usize) -> Piece {
        assert!(offset + bytes <= self.bytes, "a piece within the area");
        Piece(Segment { base: (self.address + offset) as u64, len: bytes as u64 })
    }

    /// Writes its beginning. What a region has pinned is not written after a
    /// fork: it would get a page of its own, which is not the region's.
    pub fn put(self, bytes: &[u8]) {
        let range = self.address..self.address + bytes.len();
        let forks = FORKS.load(Ordering::Relaxed);
        let parts = pins().iter().any(|pin| pin.forks != forks && pin.overlaps(&range));
        assert!(!parts, "this check writes pinned memory after a fork; give each copy an area of its own");
        self.put_after_fork(bytes);
    }

    /// Writes its beginning, where a region's pages are to part from it.
    pub fn put_after_fork(self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes, "bytes that fit");
        // SAFETY: the area is mapped and as long, `bytes` is no part of it, as
        // no reference into an area is ever made.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer(0), bytes.len()) };
    }

    /// Reads `bytes` bytes from the beginning.
    pub fn get(self, bytes: usize) -> Vec<u8> {
        assert!(bytes <= self.bytes, "bytes that are there");
        let mut read = vec![0; bytes];
        // SAFETY: as in `put`.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer(0), read.as_mut_ptr(), bytes) };
        read
    }

    /// Reads all of it.
    pub fn bytes(self) -> Vec<u8> {
        self.get(self.bytes)
    }

    /// Unmaps it. It must not be touched again.
    pub fn unmap(self) {
        // SAFETY: nothing refers to the area.
        let status = unsafe { libc::munmap(self.pointer(0).cast(), self.bytes) };
        assert_eq!(status, 0, "an area can be unmapped");
    }

    /// Gives its pages back: it reads as zeros then.
    pub fn discard(self) {
        // SAFETY: nothing refers to the area.
        let status = unsafe { libc::madvise(self.pointer(0).cast(), self.bytes, libc::MADV_DONTNEED) };
        assert_eq!(status, 0, "an area's pages can be discarded");
    }

    /// Takes the access to whole pages from `offset` on away.
    pub fn close_from(self, offset: usize) {
        // SAFETY: nothing but the driver touches these pages from here on.
        let status =
            unsafe { libc::mprotect(self.pointer(offset).cast(), self.bytes - offset, libc::PROT_NONE) };
        assert_eq!(status, 0, "an area can be protected");
    }
}

/// How often this process has forked. Relaxed: it has one thread.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Memory that a region has pinned.
struct Pin {
    range: Range<usize>,
    /// The forks that there had been.
    forks: u32,
}

impl Pin {
    fn overlaps(&self, range: &Range<usize>) -> bool {
        // Whole pages are pinned, and part.
        let page = |at: usize| at / PAGE_BYTES * PAGE_BYTES;
        page(self.range.start) < range.end && page(range.start) < self.range.end
    }
}

fn pins() -> MutexGuard<'static, Vec<Pin>> {
    static PINS: Mutex<Vec<Pin>> = Mutex::new(Vec::new());
    PINS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a region was made of these.
pub fn pinned(pieces: &[Piece]) {
    let forks = FORKS.load(Ordering::Relaxed);
    let range = |piece: &Piece| piece.0.base as usize..(piece.0.base + piece.0.len) as usize;
    pins().extend(pieces.iter().map(|piece| Pin { range: range(piece), forks }));
}

/// Memory that a request may name: an area's, or none at all.
#[derive(Clone, Copy, Debug)]
pub struct Piece(Segment);

impl Piece {
    /// Memory that is not there.
    pub fn nowhere(bytes: u64) -> Self {
        Self(Segment { base: NOWHERE, len: bytes })
    }
}

/// Segments as a request names them.
#[derive(Debug)]
pub struct Pieces(Vec<Segment>);

impl Pieces {
    pub fn of(pieces: &[Piece]) -> Self {
        Self(pieces.iter().map(|piece| piece.0).collect())
    }

    /// The array's address, to stand in a request while `self` lives.
    pub fn address(&mut self) -> u64 {
        self.0.as_mut_ptr().expose_provenance() as u64
    }

    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Makes a request that names no memory but [`Pieces`] and nowhere.
pub fn request<T: FromBytes + IntoBytes>(
    device: &Device,
    number: u32,
    argument: &mut T,
) -> Result<(), Errno> {
    // SAFETY: every request here is made of the structs that it takes, whose
    // array of segments lives across the call. The segments are pieces of
    // areas, which nothing refers to and which live on unless a check takes
    // them away on purpose, or lie where nothing is mapped. Unknown requests
    // are refused and look at nothing.
    unsafe { device.request(number, argument) }
}

/// One byte of memory that this process shares with its children.
#[derive(Clone, Copy, Debug)]
pub struct SharedByte(Area);

impl SharedByte {
    pub fn new() -> Self {
        Self(Area::map(PAGE_BYTES, libc::MAP_SHARED))
    }

    fn byte(&self) -> &AtomicU8 {
        // SAFETY: mapped for good, and accessed as an atomic only.
        unsafe { AtomicU8::from_ptr(self.0.pointer(0)) }
    }

    pub fn set(&self) {
        // Release: who sees it sees what came before.
        self.byte().store(1, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        // Acquire: pairs with `set`.
        self.byte().load(Ordering::Acquire) != 0
    }
}

/// Forks; `child` never returns there. Both get their end of a channel.
pub fn fork_with(child: impl FnOnce(UnixStream) -> i32) -> std::io::Result<(Pid, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    FORKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a check's process has one thread, so the child has everything
    // that it had in order.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok((child, ours)),
        ForkResult::Child => {
            drop(ours);
            // What it has is a copy.
            pins().clear();
            let code = child(theirs);
            // SAFETY: ends the process, without what its parent is to do.
            unsafe { libc::_exit(code) }
        }
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
