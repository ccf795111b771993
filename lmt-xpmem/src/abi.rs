//! The interface of XPMEM's module, versions 2.6 and 2.7: the requests of ioctl(2) on its
//! device and what they take, as its public header names them.

/// Where the device is.
pub const DEVICE: &str = "/dev/xpmem";

/// Answers with the module's version: 4 bits that say nothing, 12 of the major number, 16
/// of the minor one.
pub const VERSION: u32 = request(0);
/// Makes a segment of memory of this process: takes [`Make`].
pub const MAKE: u32 = request(1);
/// Gives the right to attach a segment: takes [`Get`].
pub const GET: u32 = request(3);
/// Gives that right back, with all that is attached by it: takes [`Release`].
pub const RELEASE: u32 = request(4);
/// Attaches a part of a segment: takes [`Attach`].
pub const ATTACH: u32 = request(5);
/// Ends that: takes [`Detach`].
pub const DETACH: u32 = request(6);

/// The numbers say nothing of what a request takes.
const fn request(place: u8) -> u32 {
    (b'x' as u32) << 8 | place as u32
}

/// The major number of the versions that are known.
pub const MAJOR: i32 = 2;
/// The length of a segment that is the whole address space.
pub const WHOLE: usize = usize::MAX;
/// Rights are a word as of files: the only kind there is.
pub const PERMIT_MODE: i32 = 1;
/// A permit to read and write; no other can be attached.
pub const READ_WRITE: i32 = 2;
/// What a process is answered that has not opened the device itself, or has closed it.
pub const NO_PROCESS: i32 = 2004;

/// Takes address, length and rights; gives the segment.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Make {
    /// The first byte.
    pub address: u64,
    /// How many, or [`WHOLE`].
    pub bytes: usize,
    /// [`PERMIT_MODE`].
    pub permit_type: i32,
    /// Who may get it: bits as of files, 0777 at most.
    pub permit_value: u64,
    /// Out: the segment, above 0.
    pub segment: i64,
}

/// Takes a segment; gives the permit.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Get {
    /// The segment.
    pub segment: i64,
    /// [`READ_WRITE`].
    pub flags: i32,
    /// [`PERMIT_MODE`].
    pub permit_type: i32,
    /// 0.
    pub permit_value: u64,
    /// Out: the permit, above 0.
    pub permit: i64,
}

/// Takes a permit.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Release {
    /// The permit.
    pub permit: i64,
}

/// Takes a permit and a part of its segment; gives the address here.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Attach {
    /// The permit.
    pub permit: i64,
    /// Where the part begins: with a page.
    pub offset: i64,
    /// How many bytes.
    pub bytes: usize,
    /// In: where it is wanted, 0 for anywhere. Out: where it is.
    pub address: u64,
    /// Not used.
    pub descriptor: i32,
    /// Not used.
    pub flags: i32,
}

/// Takes the address of what is attached.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Detach {
    /// The address.
    pub address: u64,
}

/// Each structure as long as the module copies, and each field where it looks for it.
macro_rules! check {
    ($($type:ident $bytes:literal { $($field:ident: $offset:literal),+ })+) => {
        $(const _: () = assert!(size_of::<$type>() == $bytes);
        $(const _: () = assert!(std::mem::offset_of!($type, $field) == $offset);)+)+
    };
}

check! {
    Make 40 { address: 0, bytes: 8, permit_type: 16, permit_value: 24, segment: 32 }
    Get 32 { segment: 0, flags: 8, permit_type: 12, permit_value: 16, permit: 24 }
    Release 8 { permit: 0 }
    Attach 40 { permit: 0, offset: 8, bytes: 16, address: 24, descriptor: 32, flags: 36 }
    Detach 8 { address: 0 }
}

#[cfg(test)]
#[path = "abi_tests.rs"]
mod tests;
