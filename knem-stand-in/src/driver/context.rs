//! What an open descriptor of the device stands for.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FlockArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::maps::PAGE_BYTES;
use crate::memory::Memory;
use crate::sys::StatusArray;

/// More slots than this have corrupted the kernel's memory, says who tried.
pub const MAX_SLOTS: u64 = 4096;

/// The bit of a cookie that makes a copy its region's last. The driver gives it
/// for a region for one use, and then believes whoever asks.
pub const SINGLE_USE: u64 = 1 << 31;

/// Scatters the numbers of regions, so that small ones are nobody's.
const REGION_MASK: u32 = 0x6b65_6d00;

/// The place of a cookie's region within its context: the upper half.
pub fn index_of(cookie: u64) -> usize {
    ((cookie >> 32) as u32 ^ REGION_MASK) as usize
}

/// The number of a cookie's context.
pub fn number_of(cookie: u64) -> u32 {
    (cookie & (SINGLE_USE - 1)) as u32
}

/// The name of the memory file behind a client's descriptor, as /proc shows it.
pub const FILE_NAME: &str = "knem-stand-in";

/// A declared region.
#[derive(Debug)]
pub struct Region {
    pub memory: Arc<Memory>,
    pub protection: u32,
    /// The process that has used it first.
    pub first_user: Option<i32>,
}

/// An open device. Its regions are its own.
#[derive(Debug)]
pub struct Context {
    /// What its cookies have below [`SINGLE_USE`].
    pub number: u32,
    pub opener_uid: u32,
    pub read_only: bool,
    pub regions: Vec<Option<Region>>,
    /// Where the last of them was put, when cookies are not recycled.
    pub status: Option<Arc<StatusArray>>,
    /// The file that the client has, through a description of the supervisor's.
    file: File,
}

/// What tells one file from all others: device and inode.
pub type FileId = (u64, u64);

pub fn file_id(metadata: &std::fs::Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

impl Context {
    /// Makes a context, and the file for its client.
    pub fn open(number: u32, opener_uid: u32, flags: i32) -> Result<(Self, File), Errno> {
        let made = memfd_create(FILE_NAME, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        let file = File::from(made);
        // Something to be read, so that a read before the mapping moves the
        // description's position and is noticed there.
        file.set_len(PAGE_BYTES).map_err(|error| errno_of(&error))?;
        let mode = flags & libc::O_ACCMODE;
        let (readable, writable) = (mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        let path = format!("/proc/thread-self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let mut options = std::fs::OpenOptions::new();
        options.read(readable).write(writable).custom_flags(flags & libc::O_NONBLOCK);
        let theirs = options.open(path).map_err(|error| errno_of(&error))?;
        // The lock belongs to the client's description, and goes with its last
        // descriptor and its last mapping, in whatever process.
        #[allow(deprecated)] // The type that replaces it owns the description.
        nix::fcntl::flock(std::os::fd::AsRawFd::as_raw_fd(&theirs), FlockArg::LockExclusiveNonblock)?;
        let regions = Vec::new();
        let read_only = !writable;
        Ok((Self { number, opener_uid, read_only, regions, status: None, file }, theirs))
    }

    pub fn id(&self) -> Option<FileId> {
        self.file.metadata().ok().as_ref().map(file_id)
    }

    /// Whether anybody has it open or mapped.
    pub fn is_open(&self) -> bool {
        #[allow(deprecated)] // As above.
        let locked =
            nix::fcntl::flock(std::os::fd::AsRawFd::as_raw_fd(&self.file), FlockArg::LockExclusiveNonblock);
        locked == Err(Errno::EWOULDBLOCK)
    }

    /// Whether the process that has made region `index` has a descriptor of it.
    pub fn has_descriptor(&self, index: usize) -> bool {
        let Some(region) = self.regions.get(index).and_then(Option::as_ref) else {
            return false;
        };
        let folder = std::fs::read_dir(format!("/proc/{}/fd", region.memory.process));
        let mut descriptors = folder.into_iter().flatten().flatten();
        descriptors.any(|it| std::fs::metadata(it.path()).is_ok_and(|it| Some(file_id(&it)) == self.id()))
    }

    /// Makes the file as long as the client's mapping of it, and maps it too.
    pub fn map_status(&mut self, offset: u64, bytes: u64) -> Result<(), Errno> {
        if offset != 0 || bytes == 0 {
            return Err(Errno::EINVAL);
        }
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(Errno::EINVAL)?;
        if bytes > MAX_SLOTS {
            eprintln!(
                "knem-stand-in: a client maps {bytes} status slots; more than {MAX_SLOTS} can corrupt the \
                 kernel's memory with the real driver, so this is refused"
            );
            return Err(Errno::EINVAL);
        }
        if self.status.is_none() {
            self.file.set_len(bytes).map_err(|error| errno_of(&error))?;
            fcntl(self.file.as_fd(), FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW))?;
            self.status = Some(Arc::new(StatusArray::map(&self.file, bytes as usize)?));
        }
        Ok(())
    }

    /// Puts a region where there is room, and at most so many; returns its
    /// cookie, that for many uses.
    pub fn insert(&mut self, region: Region, recycle: bool, most: usize) -> u64 {
        let free = self.regions.iter().position(Option::is_none).filter(|_| recycle);
        let index = free.unwrap_or(self.regions.len()) % most;
        if index == self.regions.len() {
            self.regions.push(None);
        }
        self.regions[index] = Some(region);
        u64::from(index as u32 ^ REGION_MASK) << 32 | u64::from(self.number)
    }
}

pub fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
