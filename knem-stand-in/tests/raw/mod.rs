//! The driver's requests, by bytes and bare calls, as its table has them.
#![allow(unsafe_code)] // ioctl(2), mmap(2), fork(2) and memory by address.
#![allow(dead_code)] // Each test file uses a part.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use knem_stand_in::Options;
use nix::errno::Errno;
use nix::libc;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

pub const GET_INFO: u32 = 0x40104b10;
pub const BIND_OFFLOAD: u32 = 0x80104b11;
pub const CREATE_REGION: u32 = 0xc0204b21;
pub const DESTROY_REGION: u32 = 0x80084b22;
pub const COPY: u32 = 0x80304b32;
pub const INLINE_COPY: u32 = 0x80304b33;

pub const DMA: u32 = 1;
pub const ASYNC_DMA_COMPLETE: u32 = 2;
pub const DMA_THREAD: u32 = 4;
pub const MEMCPY_THREAD: u32 = 8;
pub const PIN_LOCAL: u32 = 16;
pub const SINGLE_USE: u32 = 32;

pub const READ: u32 = 1;
pub const WRITE: u32 = 2;

pub const PENDING: u32 = 0;
pub const SUCCESS: u32 = 1;
pub const FAILED: u32 = 2;
/// What current_status holds before a request.
pub const UNSET: u32 = 0xeeee_eeee;

pub const PAGE: usize = 4096;
/// An address that nothing is mapped at.
pub const NOWHERE: u64 = 8;

/// Puts this test under a stand-in, or says why not. Where tests are threads of
/// one process, they go one by one: a child forked by one holds what another
/// has open, and with it the other's regions.
pub fn under(options: Options) -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match knem_stand_in::ensure(options) {
        Ok(()) => Some(alone),
        Err(why) => {
            lmt_conformance::require::skipped("knem-stand-in", &why.to_string());
            None
        }
    }
}

/// A request's struct, field by field.
#[derive(Default)]
pub struct Struct(pub Vec<u8>);

impl Struct {
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn at(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.0[offset..offset + 4].try_into().unwrap())
    }
}

pub fn segments(list: &[(u64, usize)]) -> Vec<u64> {
    list.iter().flat_map(|(address, bytes)| [*address, *bytes as u64]).collect()
}

/// What a copy is asked for besides its places.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub flags: u32,
    pub index: u32,
}

pub const PLAIN: How = How { flags: 0, index: 0 };

pub fn flags(flags: u32) -> How {
    How { flags, ..PLAIN }
}

pub struct Device(pub File);

impl Device {
    pub fn open() -> Self {
        Self(OpenOptions::new().read(true).write(true).open("/dev/knem").expect("the stand-in's"))
    }

    pub fn read_only() -> Self {
        Self(File::open("/dev/knem").expect("the stand-in's"))
    }

    pub fn request_at(&self, number: u32, address: u64) -> Result<(), Errno> {
        // SAFETY: whatever is at the address is the test's own, or nothing.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), number.into(), address) };
        Errno::result(status).map(drop)
    }

    pub fn request(&self, number: u32, argument: &mut Struct) -> Result<(), Errno> {
        self.request_at(number, argument.0.as_mut_ptr().expose_provenance() as u64)
    }

    pub fn create_raw(&self, array: u64, count: u32, flags: u32, protection: u32) -> Result<u64, Errno> {
        let mut it = Struct::default().u64(array).u32(count).u32(flags).u32(protection).u32(0).u64(0);
        self.request(CREATE_REGION, &mut it)?;
        Ok(u64::from_ne_bytes(it.0[24..].try_into().unwrap()))
    }

    pub fn create(&self, list: &[(u64, usize)], flags: u32, protection: u32) -> Result<u64, Errno> {
        let array = segments(list);
        self.create_raw(array.as_ptr().expose_provenance() as u64, list.len() as u32, flags, protection)
    }

    pub fn destroy(&self, cookie: u64) -> Result<(), Errno> {
        self.request(DESTROY_REGION, &mut Struct::default().u64(cookie))
    }

    /// Returns current_status.
    fn finish(&self, number: u32, places: Struct, how: How) -> Result<u32, Errno> {
        let mut it = places.u32(how.flags).u32(UNSET).u32(how.index).u32(0);
        self.request(number, &mut it)?;
        Ok(it.at(36))
    }

    pub fn copy(&self, from: (u64, u64), to: (u64, u64), how: How) -> Result<u32, Errno> {
        let places = Struct::default().u64(from.0).u64(from.1).u64(to.0).u64(to.1);
        self.finish(COPY, places, how)
    }

    fn inline(&self, list: &[(u64, usize)], write: u32, remote: (u64, u64), how: How) -> Result<u32, Errno> {
        let array = segments(list);
        let places = Struct::default()
            .u64(array.as_ptr().expose_provenance() as u64)
            .u32(list.len() as u32)
            .u32(write)
            .u64(remote.0)
            .u64(remote.1);
        self.finish(INLINE_COPY, places, how)
    }

    pub fn read(&self, into: &[(u64, usize)], remote: (u64, u64), how: How) -> Result<u32, Errno> {
        self.inline(into, 0, remote, how)
    }

    pub fn write(&self, from: &[(u64, usize)], remote: (u64, u64), how: How) -> Result<u32, Errno> {
        self.inline(from, 1, remote, how)
    }

    pub fn map(&self, bytes: usize) -> Result<Area, Errno> {
        Area::map(bytes, libc::MAP_SHARED, self.0.as_raw_fd())
    }
}

/// Mapped memory of the test's own, at an address.
pub struct Area {
    pub address: u64,
    pub bytes: usize,
}

impl Area {
    pub fn anonymous(bytes: usize) -> Self {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).expect("there is memory")
    }

    /// Bytes that depend on their position and on `seed`.
    pub fn filled(bytes: usize, seed: usize) -> Self {
        let area = Self::anonymous(bytes);
        area.fill(&pattern(seed, bytes));
        area
    }

    fn map(bytes: usize, flags: i32, fd: i32) -> Result<Self, Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            Err(Errno::last())
        } else {
            Ok(Self { address: start.expose_provenance() as u64, bytes })
        }
    }

    fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    pub fn all(&self) -> (u64, usize) {
        (self.address, self.bytes)
    }

    pub fn at(&self, offset: usize) -> u64 {
        self.address + offset as u64
    }

    pub fn fill(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes);
        // SAFETY: the area is mapped, as long, and nobody refers to it.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.pointer(), bytes.len()) };
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        // SAFETY: as above.
        unsafe { std::ptr::copy(self.pointer(), bytes.as_mut_ptr(), self.bytes) };
        bytes
    }

    /// One byte, as it is now.
    pub fn slot(&self, index: usize) -> u8 {
        assert!(index < self.bytes);
        // SAFETY: it lies within the area.
        let slot = unsafe { self.pointer().add(index) };
        // SAFETY: the area is mapped, and others change it by atomic stores.
        unsafe { std::sync::atomic::AtomicU8::from_ptr(slot) }.load(std::sync::atomic::Ordering::Acquire)
    }

    pub fn unmap(&self) {
        // SAFETY: nothing refers to the area.
        assert_eq!(unsafe { libc::munmap(self.pointer().cast(), self.bytes) }, 0);
    }

    pub fn discard(&self) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::madvise(self.pointer().cast(), self.bytes, libc::MADV_DONTNEED) }, 0);
    }

    /// Takes all access to `bytes` bytes from `offset` on away, or all but
    /// reading.
    pub fn protect(&self, offset: usize, bytes: usize, readable: bool) {
        let access = if readable { libc::PROT_READ } else { libc::PROT_NONE };
        // SAFETY: as above; nobody accesses these pages but the kernel.
        let start = unsafe { self.pointer().add(offset) };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::mprotect(start.cast(), bytes, access) }, 0);
    }

    /// Replaces the area by new memory at the same address.
    pub fn replace(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: only this area, to which nothing refers, is replaced.
        let start = unsafe { libc::mmap(self.pointer().cast(), self.bytes, access, flags, -1, 0) };
        assert_eq!(start, self.pointer().cast());
    }
}

pub fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251 + seed * 131) as u8).collect()
}

/// Runs `body` in a child; returns how it is to be waited for.
fn child(body: impl FnOnce()) -> Pid {
    // SAFETY: the child uses what every fork of glibc keeps in order, which
    // includes malloc, and ends by _exit.
    match unsafe { fork() }.expect("there are processes") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let ended = catch_unwind(AssertUnwindSafe(body));
            // SAFETY: ends the process at once, with nothing to be run.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
    }
}

fn wait(child: Pid) -> WaitStatus {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).expect("it is a child") {
            WaitStatus::StillAlive if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            status => return status,
        }
    }
}

/// Runs `body` in a child, which must not fail.
pub fn in_child(body: impl FnOnce()) {
    let child = child(body);
    assert_eq!(wait(child), WaitStatus::Exited(child, 0));
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(Duration::from_micros(200));
    }
}
