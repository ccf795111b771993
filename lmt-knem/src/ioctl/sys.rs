//! The system calls on the device, and the memory that they need.
#![allow(unsafe_code)] // ioctl(2), mmap(2) of the status array, and lending memory.

use std::ffi::c_void;
use std::fs::OpenOptions;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::fork_guard::Origin;
use lmt_core::shared_memory::SharedMemory;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};
use zerocopy::{FromBytes, IntoBytes};

use super::abi;
use super::slot::Slot;

/// The slots of a status array: with more this driver can corrupt the kernel's
/// heap.
pub const STATUS_SLOTS: u32 = 4096;
const STATUS_BYTES: NonZeroUsize = NonZeroUsize::new(STATUS_SLOTS as usize).unwrap();

/// An opened device: requests as they are, without any rule kept.
#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
    #[cfg(test)]
    double: Option<super::test_double::Double>,
}

impl Device {
    /// Opens a device for reading and writing.
    ///
    /// # Errors
    /// What open(2) answers.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_CLOEXEC).open(path);
        let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)))?;
        Ok(Self::from_fd(file.into()))
    }

    /// A device that was opened elsewhere.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self {
            fd,
            #[cfg(test)]
            double: None,
        }
    }

    /// A device that answers by `double`; its status array is the memory of `fd`.
    #[cfg(test)]
    pub(super) fn of_double(fd: OwnedFd, double: super::test_double::Double) -> Self {
        Self { fd, double: Some(double) }
    }

    /// Makes a request. The argument is writable memory of this process, as the
    /// driver needs it even where it only reads.
    ///
    /// # Errors
    /// The driver's errno.
    ///
    /// # Safety
    /// `argument` must be what the request takes ([`abi`]). What it points to
    /// must stay as it is until the call returns and for as long as the driver
    /// uses it afterwards: pages of a region until it is destroyed, local
    /// segments of an asynchronous copy until it has ended. Where the driver or
    /// a peer writes, nobody else may use the memory meanwhile. Addresses that
    /// are not mapped are harmless: they make the request fail.
    pub unsafe fn request<T: FromBytes + IntoBytes>(
        &self,
        number: u32,
        argument: &mut T,
    ) -> Result<(), Errno> {
        #[cfg(test)]
        if let Some(double) = &self.double {
            return double.answer(number, argument.as_mut_bytes());
        }
        let raw: *mut T = argument;
        // SAFETY: `raw` is valid for reads and writes of the struct; the caller
        // vouches for the rest.
        let answer = unsafe { nix::libc::ioctl(self.fd.as_raw_fd(), number.into(), raw.cast::<c_void>()) };
        if answer < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// What the driver says of itself.
    ///
    /// # Errors
    /// The driver's errno; ENOTTY or ENOSYS where it is another driver.
    pub fn info(&self) -> Result<abi::Info, Errno> {
        let mut info = abi::Info::default();
        // SAFETY: it takes an `Info`, which points to nothing.
        unsafe { self.request(abi::GET_INFO, &mut info) }?;
        Ok(info)
    }

    /// Destroys a region of this descriptor.
    ///
    /// # Errors
    /// EINVAL for any other cookie.
    pub fn destroy(&self, cookie: u64) -> Result<(), Errno> {
        let mut cookie = cookie;
        // SAFETY: it takes a cookie, which points to nothing.
        unsafe { self.request(abi::DESTROY_REGION, &mut cookie) }
    }

    /// Says where the offload thread runs; the mask is used for
    /// [`abi::BIND_CUSTOM`].
    ///
    /// # Errors
    /// The driver's errno.
    pub fn bind(&self, flags: u32, mask: &mut [u64]) -> Result<(), Errno> {
        let mask_len = u32::try_from(size_of_val(mask)).map_err(|_| Errno::E2BIG)?;
        let mask_ptr = mask.as_mut_ptr().expose_provenance() as u64;
        let mut bind = abi::BindOffload { flags, mask_len, mask_ptr };
        // SAFETY: it takes a `BindOffload`, whose mask is borrowed as long as
        // the call, the only time that the driver reads it.
        unsafe { self.request(abi::BIND_OFFLOAD, &mut bind) }
    }

    /// Copies between two regions.
    ///
    /// # Errors
    /// The driver's errno.
    pub fn copy(&self, copy: &mut abi::CopyBounded) -> Result<(), Errno> {
        // SAFETY: it takes a `CopyBounded`, which points to nothing; what the
        // cookies name was lent for it by those who declared it.
        unsafe { self.request(abi::COPY_BOUNDED, copy) }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Declares the memory of a buffer; returns the driver's cookie.
///
/// The buffer must be kept until the region is destroyed; that is what its
/// lender's promise covers.
pub(super) fn create(device: &Device, memory: &Buffer, protection: u32, flags: u32) -> Result<u64, Errno> {
    if protection & abi::PROT_WRITE != 0 && memory.access() != Access::Write {
        return Err(Errno::EACCES);
    }
    let mut list: Vec<abi::Segment> = memory.segments().iter().map(described).collect();
    let iovec_nr = u32::try_from(list.len()).map_err(|_| Errno::ENOMEM)?;
    let iovec_array = list.as_mut_ptr().expose_provenance() as u64;
    let mut create =
        abi::CreateRegion { iovec_array, iovec_nr, flags, protection, ..abi::CreateRegion::default() };
    // SAFETY: it takes a `CreateRegion`, whose array lives across the call; the
    // memory was lent by the buffer's maker, for writing where peers may write,
    // and the caller keeps the buffer as long as the region.
    unsafe { device.request(abi::CREATE_REGION, &mut create) }?;
    Ok(create.cookie)
}

/// Copies between `local`'s bytes from `offset` on and a region, as
/// `copy` says but for the local segments, which are filled in here.
///
/// If the copy goes on afterwards the caller keeps the buffer until it ends.
pub(super) fn inline_copy(
    device: &Device,
    local: &Buffer,
    offset: u64,
    copy: &mut abi::InlineCopyBounded,
) -> Result<(), Errno> {
    if copy.write == 0 && local.access() != Access::Write {
        return Err(Errno::EACCES);
    }
    let end = offset.saturating_add(copy.length);
    let mut pieces = local.pieces(offset..end);
    let mut one = [pieces.next().map_or(abi::Segment::default(), |piece| described(&piece))];
    let mut many = Vec::new();
    if let Some(second) = pieces.next() {
        many = one
            .into_iter()
            .chain([described(&second)])
            .chain(pieces.map(|piece| described(&piece)))
            .collect();
    }
    let list = if many.is_empty() { &mut one[..] } else { &mut many[..] };
    copy.local_iovec_nr = u32::try_from(list.len()).map_err(|_| Errno::ENOMEM)?;
    copy.local_iovec_array = list.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: it takes an `InlineCopyBounded`, whose array lives across the
    // call; its pieces lie within what the buffer's maker lent, for writing
    // where the copy writes; the caller keeps the buffer if the copy goes on.
    // The region's memory was lent by who declared it.
    unsafe { device.request(abi::INLINE_COPY_BOUNDED, copy) }
}

fn described(segment: &Segment) -> abi::Segment {
    abi::Segment { base: segment.address as u64, len: segment.bytes as u64 }
}

/// The array in which the driver writes the ends of asynchronous copies, one
/// byte each.
#[derive(Debug)]
pub struct StatusArray {
    base: NonNull<c_void>,
    origin: Origin,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is used by
// atomic loads and stores only.
unsafe impl Send for StatusArray {}

impl StatusArray {
    /// Maps the array of a device, of [`STATUS_SLOTS`] slots. There can be one;
    /// it must not have been read before, and is not inherited by children.
    ///
    /// # Errors
    /// What mmap(2) answers: EBUSY where there is one already.
    pub fn map(device: &Device) -> Result<Self, Errno> {
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let base = unsafe { mmap(None, STATUS_BYTES, both, MapFlags::MAP_SHARED, device, 0) }?;
        let array = Self { base, origin: Origin::here() };
        // A child that kept it would keep all regions of this descriptor.
        // SAFETY: it concerns this new mapping only, and changes no memory.
        unsafe { madvise(base, STATUS_BYTES.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(array)
    }

    fn slot(&self, index: u32) -> Option<&AtomicU8> {
        if index >= STATUS_SLOTS || !self.origin.is_this_process() {
            return None;
        }
        // SAFETY: `index` is below the number of mapped bytes.
        let byte = unsafe { self.base.as_ptr().cast::<u8>().add(index as usize) };
        // SAFETY: mapped, readable and writable as long as `self` is borrowed;
        // the driver writes it too, a byte at a time, which is atomic.
        Some(unsafe { AtomicU8::from_ptr(byte) })
    }

    /// The status in a slot; failed where there is no such slot.
    pub fn load(&self, index: u32) -> u8 {
        // Acquire: the bytes that the driver has copied before it wrote the
        // status are seen then.
        self.slot(index).map_or(abi::STATUS_FAILED, |slot| slot.load(Ordering::Acquire))
    }

    /// Makes a slot pending, before a request that names it.
    pub fn clear(&self, index: u32) {
        if let Some(slot) = self.slot(index) {
            // Relaxed: the system call that follows orders it.
            slot.store(abi::STATUS_PENDING, Ordering::Relaxed);
        }
    }
}

impl Drop for StatusArray {
    fn drop(&mut self) {
        // A child does not have the mapping: something else may be there.
        if self.origin.is_this_process() {
            // SAFETY: mapped by `map`, dropped once, and no slot is borrowed.
            let unmapped = unsafe { munmap(self.base, STATUS_BYTES.get()) };
            debug_assert_eq!(unmapped, Ok(()), "the range was mapped");
        }
    }
}

/// Has pages of its own put behind memory that was never written: the driver
/// would pin the page of zeros in their place, and later writes would not be
/// seen. Nothing changes its content. Returns whether they are there; memory
/// that cannot be written from here has nothing to be put behind it.
pub(super) fn populate(memory: &Buffer) -> Result<bool, Errno> {
    let mut all = true;
    for segment in memory.segments().iter().filter(|segment| segment.bytes > 0) {
        let start = segment.address / PAGE_BYTES * PAGE_BYTES;
        let bytes = segment.address + segment.bytes - start;
        match populate_range(start, bytes) {
            Ok(()) => {}
            // Before Linux 5.14 there is no such advice; or the pages may not
            // be written, and then only if they are lent so is it a fault.
            Err(Errno::EINVAL) if memory.access() == Access::Write => touch(*segment),
            // The driver says so when it pins them, if that cannot be done.
            Err(_) if memory.access() == Access::Read => all = false,
            Err(errno) => return Err(errno),
        }
    }
    Ok(all)
}

const PAGE_BYTES: usize = 4096;

fn populate_range(start: usize, bytes: usize) -> Result<(), Errno> {
    loop {
        let address = std::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: the advice faults pages in and changes neither content nor
        // mappings, whatever the range.
        let done = unsafe { nix::libc::madvise(address, bytes, nix::libc::MADV_POPULATE_WRITE) };
        match Errno::result(done) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Writes to each page of memory that is lent for writing, without changing it.
fn touch(segment: Segment) {
    let end = segment.address + segment.bytes;
    let first_of_pages = (segment.address / PAGE_BYTES + 1..).map(|page| page * PAGE_BYTES);
    for address in std::iter::once(segment.address).chain(first_of_pages).take_while(|at| *at < end) {
        let byte = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: within a segment whose lender promised valid, writable memory
        // that nobody else uses while it is lent.
        let byte = unsafe { AtomicU8::from_ptr(byte) };
        // Relaxed: nothing is told by it. A zero that the compiler does not
        // see, or it would drop the write.
        byte.fetch_or(std::hint::black_box(0), Ordering::Relaxed);
    }
}

/// The regions that one owner can have at a time.
pub(super) const REGIONS: u32 = 4096;
/// What comes before the lines of a table: how many of them there are.
pub(super) const HEAD_BYTES: usize = size_of::<Slot>();
/// The bytes of the table in which regions are published: whole pages.
pub(super) const TABLE_BYTES: usize =
    (HEAD_BYTES + REGIONS as usize * size_of::<Slot>()).next_multiple_of(PAGE_BYTES);

/// Where a line of a table begins.
pub(super) const fn line_offset(index: u32) -> usize {
    HEAD_BYTES + index as usize * size_of::<Slot>()
}

/// How many lines of a table have memory: peers look at no others, since to
/// read a page that the kernel has not got is SIGBUS.
pub(super) fn lines(memory: &SharedMemory) -> Option<&AtomicU64> {
    if memory.len() < TABLE_BYTES || !memory.is_usable_here() {
        return None;
    }
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and is
    // longer than a word, which any bytes are valid for and which other
    // processes change by atomics.
    Some(unsafe { &*memory.base().as_ptr().cast::<AtomicU64>() })
}

/// A line of a table.
pub(super) fn slot(memory: &SharedMemory, index: u32) -> Option<&Slot> {
    if index >= REGIONS || memory.len() < TABLE_BYTES || !memory.is_usable_here() {
        return None;
    }
    let at = memory.base().as_ptr().wrapping_add(line_offset(index));
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and is at
    // least TABLE_BYTES long, so line `index` lies in it, aligned to 32. A slot
    // is all atomics, which any bytes are valid for and which other processes
    // may change.
    Some(unsafe { &*at.cast::<Slot>() })
}

/// How often this process has forked, since [`count_forks`] was called first.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts this process's forks from now on; returns how many there have been,
/// or nothing where they cannot be counted. Forks that pass by the C library
/// (a bare clone(2)) are not seen.
pub(super) fn count_forks() -> Option<u64> {
    extern "C" fn before_fork() {
        // Relaxed: the forking thread's own later looks see it, and another
        // thread that forks must order that itself, as for any fork.
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // SAFETY: the handler is sound in any state, as it adds to an atomic only,
    // and it is never unloaded, being part of the program.
    let register = || unsafe { nix::libc::pthread_atfork(Some(before_fork), None, None) } == 0;
    // Relaxed: as in the handler.
    REGISTERED.get_or_init(register).then(|| FORKS.load(Ordering::Relaxed))
}
