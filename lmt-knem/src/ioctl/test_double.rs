//! A double of the driver within the test's own process: it keeps the rules
//! that the client's logic is about, and does what a test tells it to.
//!
//! That the requests mean to a driver what they mean to us is not for this to
//! show: the tests through the stand-in do.
#![allow(unsafe_code)] // It copies between addresses, as a driver does.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use lmt_core::mechanism::Direction;
use lmt_core::process::PeerProcess;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use zerocopy::{FromBytes, IntoBytes};

use super::abi;
use super::dma_min::DmaMin;
use super::driver::IoctlDriver;
use super::sys::{Device, STATUS_SLOTS};
use crate::driver::Driver;
use crate::types::{InlineCopy, Length, RegionCookie};

/// What a test has a copy answer, instead of being made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Say {
    /// This errno; nothing is copied.
    Refuse(Errno),
    /// This status at once; nothing is copied and no slot is written.
    Status(u32),
    /// It is made, but goes on: the slot is written when the test says so.
    GoOn,
}

/// A request as it came, of those that copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub number: u32,
    pub source: u64,
    pub offset: u64,
    pub bytes: u64,
    pub flags: u32,
    pub slot: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Region {
    pub segments: Vec<abi::Segment>,
    pub protection: u32,
}

/// What its cookies have below the bit for a single use.
pub(super) const OPENING: u64 = 0x77;

#[derive(Debug)]
pub(super) struct State {
    pub info: abi::Info,
    dma_min: File,
    /// What an administrator changes it to with the next copy.
    pub changes_dma_min: Option<u32>,
    pub regions: BTreeMap<u32, Region>,
    pub created: u32,
    pub script: VecDeque<Say>,
    pub asked: Vec<Asked>,
    pub bound: Vec<(u32, Vec<u64>)>,
    going_on: Vec<u32>,
    status: Option<OwnedFd>,
}

/// The double's state, which tests look at and all its devices share.
#[derive(Clone, Debug)]
pub(super) struct Double(Arc<Mutex<State>>);

impl Double {
    pub fn new() -> Self {
        let dma_min = memfd_create(c"dmamin", MFdFlags::MFD_CLOEXEC).expect("a memory file");
        let double = Self(Arc::new(Mutex::new(State {
            info: abi::Info { abi: abi::ABI_VERSION, ..abi::Info::default() },
            dma_min: dma_min.into(),
            regions: BTreeMap::new(),
            created: 0,
            script: VecDeque::new(),
            asked: Vec::new(),
            bound: Vec::new(),
            changes_dma_min: None,
            going_on: Vec::new(),
            status: None,
        })));
        double.set_dma_min(1024);
        double
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds this")
    }

    /// Opens it; the status array of the last opening is the one that counts.
    pub fn open(&self) -> IoctlDriver {
        let driver = IoctlDriver::with_device(self.device(), Path::new("/dev/double"));
        let mut driver = driver.expect("it is a driver");
        driver.dma_min = DmaMin::of(self.state().dma_min.try_clone().expect("a descriptor"));
        driver
    }

    /// An administrator changes the module's parameter.
    pub fn set_dma_min(&self, bytes: u32) {
        let text = format!("{bytes:<10}\n");
        self.state().dma_min.write_all_at(text.as_bytes(), 0).expect("room");
    }

    pub fn device(&self) -> Device {
        let fd = memfd_create(c"status", MFdFlags::MFD_CLOEXEC).expect("a memory file");
        nix::unistd::ftruncate(&fd, STATUS_SLOTS.into()).expect("a page");
        self.state().status = Some(fd.try_clone().expect("a descriptor"));
        Device::of_double(fd, self.clone())
    }

    /// Ends the copies that go on.
    pub fn end(&self, status: u8) {
        let mut state = self.state();
        for slot in std::mem::take(&mut state.going_on) {
            state.write_status(slot, status);
        }
    }

    pub fn answer(&self, number: u32, argument: &mut [u8]) -> Result<(), Errno> {
        let mut state = self.state();
        match number {
            abi::GET_INFO => argument.copy_from_slice(state.info.as_bytes()),
            abi::CREATE_REGION => {
                let mut create = abi::CreateRegion::read_from_bytes(argument).expect("its size");
                state.create(&mut create)?;
                argument.copy_from_slice(create.as_bytes());
            }
            abi::DESTROY_REGION => {
                let cookie = u64::read_from_bytes(argument).expect("its size");
                state.regions.remove(&abi::region_number(cookie)).ok_or(Errno::EINVAL)?;
            }
            abi::BIND_OFFLOAD => {
                let bind = abi::BindOffload::read_from_bytes(argument).expect("its size");
                let words = bind.mask_len as usize / 8;
                let mask = read_words(bind.mask_ptr, words);
                state.bound.push((bind.flags, mask));
            }
            abi::INLINE_COPY_BOUNDED => {
                let mut copy = abi::InlineCopyBounded::read_from_bytes(argument).expect("its size");
                state.inline(&mut copy)?;
                argument.copy_from_slice(copy.as_bytes());
            }
            abi::COPY_BOUNDED => {
                let mut copy = abi::CopyBounded::read_from_bytes(argument).expect("its size");
                state.between(&mut copy)?;
                argument.copy_from_slice(copy.as_bytes());
            }
            _ => return Err(Errno::ENOSYS),
        }
        Ok(())
    }
}

fn read_words(address: u64, words: usize) -> Vec<u64> {
    let at = std::ptr::with_exposed_provenance::<u64>(address as usize);
    // SAFETY: the client lends so many words for the call; each is read by value.
    (0..words).map(|word| unsafe { at.wrapping_add(word).read() }).collect()
}

fn read_segments(address: u64, count: u32) -> Vec<abi::Segment> {
    let words = read_words(address, count as usize * 2);
    words.chunks(2).map(|pair| abi::Segment { base: pair[0], len: pair[1] }).collect()
}

impl State {
    fn write_status(&self, slot: u32, status: u8) {
        let array =
            std::fs::File::from(self.status.as_ref().expect("open").try_clone().expect("a descriptor"));
        array.write_all_at(&[status], slot.into()).expect("a slot");
    }

    /// The lowest number that is free, as a driver recycles them.
    fn create(&mut self, create: &mut abi::CreateRegion) -> Result<(), Errno> {
        let number = (1..).find(|number| !self.regions.contains_key(number)).expect("one is free");
        let segments = read_segments(create.iovec_array, create.iovec_nr);
        self.regions.insert(number, Region { segments, protection: create.protection });
        self.created += 1;
        let last_use = if create.flags & abi::FLAG_SINGLEUSE != 0 { abi::COOKIE_SINGLE_USE } else { 0 };
        create.cookie = u64::from(number) << 32 | last_use | OPENING;
        Ok(())
    }

    fn look_up(&mut self, cookie: u64, right: u32) -> Result<Vec<abi::Segment>, Errno> {
        let number = abi::region_number(cookie);
        let region = self.regions.get(&number).filter(|_| cookie & OPENING == OPENING);
        let region = region.ok_or(Errno::EINVAL)?.clone();
        if region.protection & right == 0 {
            return Err(Errno::EACCES);
        }
        if cookie & abi::COOKIE_SINGLE_USE != 0 {
            self.regions.remove(&number);
        }
        Ok(region.segments)
    }

    fn inline(&mut self, copy: &mut abi::InlineCopyBounded) -> Result<(), Errno> {
        let slot = copy.async_status_index;
        self.asked.push(Asked {
            number: abi::INLINE_COPY_BOUNDED,
            source: copy.remote_cookie,
            offset: copy.remote_offset,
            bytes: copy.length,
            flags: copy.flags,
            slot,
        });
        let right = if copy.write == 0 { abi::PROT_READ } else { abi::PROT_WRITE };
        let remote = self.look_up(copy.remote_cookie, right)?;
        let local = read_segments(copy.local_iovec_array, copy.local_iovec_nr);
        let (there, here) = ((remote, copy.remote_offset), (local, 0));
        let (from, to) = if copy.write == 0 { (there, here) } else { (here, there) };
        copy.current_status = self.make(from, to, copy.length, copy.flags, slot)?;
        Ok(())
    }

    fn between(&mut self, copy: &mut abi::CopyBounded) -> Result<(), Errno> {
        let slot = copy.async_status_index;
        self.asked.push(Asked {
            number: abi::COPY_BOUNDED,
            source: copy.src_cookie,
            offset: copy.src_offset,
            bytes: copy.length,
            flags: copy.flags,
            slot,
        });
        let source = (self.look_up(copy.src_cookie, abi::PROT_READ)?, copy.src_offset);
        let target = (self.look_up(copy.dst_cookie, abi::PROT_WRITE)?, copy.dst_offset);
        copy.current_status = self.make(source, target, copy.length, copy.flags, slot)?;
        Ok(())
    }

    /// Copies as far as both sides go, and says nothing of how far that was.
    fn make(
        &mut self,
        (from, from_offset): (Vec<abi::Segment>, u64),
        (to, to_offset): (Vec<abi::Segment>, u64),
        bytes: u64,
        flags: u32,
        slot: u32,
    ) -> Result<u32, Errno> {
        if flags & 7 != 0 && self.info.features & abi::FEATURE_DMA == 0 {
            return Err(Errno::EINVAL);
        }
        if let Some(bytes) = self.changes_dma_min.take() {
            self.dma_min.write_all_at(format!("{bytes:<10}\n").as_bytes(), 0).expect("room");
        }
        let say = self.script.pop_front();
        match say {
            Some(Say::Refuse(errno)) => return Err(errno),
            Some(Say::Status(status)) => return Ok(status),
            Some(Say::GoOn) | None => {}
        }
        let out = addresses(&from).skip(from_offset as usize);
        let into = addresses(&to).skip(to_offset as usize);
        for (from, to) in out.zip(into).take(bytes as usize) {
            let from = std::ptr::with_exposed_provenance::<u8>(from);
            let to = std::ptr::with_exposed_provenance_mut::<u8>(to);
            // SAFETY: memory of this process that the tests lend, the one for
            // writing, and use only when the copy has ended.
            let byte = unsafe { from.read() };
            // SAFETY: as above.
            unsafe { to.write(byte) };
        }
        if say == Some(Say::GoOn) {
            self.going_on.push(slot);
            return Ok(abi::STATUS_PENDING.into());
        }
        let asynchronous =
            flags & (abi::FLAG_ASYNCDMACOMPLETE | abi::FLAG_DMATHREAD | abi::FLAG_MEMCPYTHREAD);
        if asynchronous != 0 && bytes == 0 {
            self.write_status(slot, abi::STATUS_SUCCESS);
            return Ok(abi::STATUS_PENDING.into());
        }
        Ok(abi::STATUS_SUCCESS.into())
    }
}

fn addresses(segments: &[abi::Segment]) -> impl Iterator<Item = usize> + '_ {
    segments.iter().flat_map(|s| s.base as usize..(s.base + s.len) as usize)
}

pub(super) fn this_process() -> Arc<PeerProcess> {
    Arc::new(PeerProcess::new(std::process::id() as i32, None))
}

/// An owner, and another that knows it.
pub(super) fn pair(double: &Double) -> (IoctlDriver, IoctlDriver) {
    let mut owner = double.open();
    let mut other = double.open();
    let introduction = owner.introduce().expect("a descriptor");
    assert_eq!(other.meet(this_process(), introduction).expect("an introduction"), owner.owner());
    (owner, other)
}

pub(super) fn get(region: RegionCookie, region_offset: u64, bytes: u64) -> InlineCopy {
    let length = Length::Bounded(bytes);
    InlineCopy { direction: Direction::Get, region, region_offset, local_offset: 0, length }
}

pub(super) fn put(region: RegionCookie, bytes: u64) -> InlineCopy {
    InlineCopy { direction: Direction::Put, ..get(region, 0, bytes) }
}

pub(super) fn asked(double: &Double) -> Vec<Asked> {
    std::mem::take(&mut double.state().asked)
}

/// Memory that counts up.
pub(super) fn counting(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Lends a test's memory.
pub(super) fn lend(memory: &mut [u8], access: lmt_core::buffer::Access) -> lmt_core::buffer::Buffer {
    let segment = lmt_core::buffer::Segment::of_mut(memory);
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { lmt_core::buffer::Buffer::new(&[segment], access) }.expect("a slice")
}

/// Lends memory that cannot be written.
pub(super) fn lend_for_good(memory: &'static [u8]) -> lmt_core::buffer::Buffer {
    let segment = lmt_core::buffer::Segment::of(memory);
    // SAFETY: it is there for ever, and never changes.
    unsafe { lmt_core::buffer::Buffer::new(&[segment], lmt_core::buffer::Access::Read) }.expect("a slice")
}

/// Lends pieces of a test's memory, from each offset so many bytes.
pub(super) fn lend_pieces(memory: &mut [u8], pieces: &[(usize, usize)]) -> lmt_core::buffer::Buffer {
    let piece = |(offset, bytes): &(usize, usize)| {
        lmt_core::buffer::Segment::of_mut(&mut memory[*offset..offset + bytes])
    };
    let segments: Vec<_> = pieces.iter().map(piece).collect();
    // SAFETY: as in `lend`; the tests' pieces do not overlap.
    unsafe { lmt_core::buffer::Buffer::new(&segments, lmt_core::buffer::Access::Write) }.expect("slices")
}

/// Maps memory for the rest of the test's process.
pub(super) fn map(bytes: usize, flags: nix::sys::mman::MapFlags) -> &'static mut [u8] {
    use nix::sys::mman::{ProtFlags, mmap_anonymous};
    let length = std::num::NonZeroUsize::new(bytes).expect("not empty");
    // SAFETY: at an address of the kernel's choice, so nothing is replaced.
    let base = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags) };
    let base = base.expect("there is memory").cast::<u8>().as_ptr();
    // SAFETY: just mapped, so long, zeroed, never unmapped, and nobody else's.
    unsafe { std::slice::from_raw_parts_mut(base, bytes) }
}

/// Forks a child that ends at once.
pub(super) fn fork_and_wait() {
    // SAFETY: the child does nothing but end.
    let child = unsafe { nix::libc::fork() };
    if child == 0 {
        // SAFETY: async-signal-safe, and without a precondition.
        unsafe { nix::libc::_exit(0) };
    }
    let ended = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(child), None);
    assert!(ended.is_ok(), "{ended:?}");
}
