//! What can go wrong.

use lmt_core::error::MemoryError;
use lmt_core::mechanism::Direction;
use lmt_core::shared_memory::AttachError;
use nix::errno::Errno;

/// Why a driver was not opened, or did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnemError {
    /// There is no driver to open, or not the right one.
    #[error("{sentence}")]
    Unavailable {
        /// What the system call answered, if one was refused.
        errno: Option<Errno>,
        /// What was tried, what it answered, and what would help.
        sentence: String,
    },
    /// The cookie names no region now.
    #[error("the region is not registered (any more), or was used up; ask its owner for a new cookie")]
    NotRegistered,
    /// The cookie's owner is not known here.
    #[error("the region's owner is not known here; take its introduction first")]
    UnknownOwner,
    /// An introduction is none.
    #[error(
        "the introduction is none of this driver's ({0}); both processes must use the same driver and version"
    )]
    Introduction(String),
    /// What an introduction brings cannot be mapped.
    #[error("the table of regions in an introduction cannot be used: {0}")]
    Table(#[from] AttachError),
    /// The protection forbids it.
    #[error("the region's protection forbids to {0} it; its owner must register it with that right")]
    Forbidden(Direction),
    /// The copy would leave the region.
    #[error(
        "{bytes} bytes from offset {offset} reach past the region's {total_bytes} bytes; ask for no more than it has from there on"
    )]
    OutOfBounds {
        /// First byte asked for.
        offset: u64,
        /// How many.
        bytes: u64,
        /// The region's length.
        total_bytes: u64,
    },
    /// The copy would leave the local memory.
    #[error(
        "{bytes} bytes from offset {offset} reach past the local memory's {total_bytes} bytes; lend more, or ask for fewer"
    )]
    LocalTooShort {
        /// First byte asked for.
        offset: u64,
        /// How many.
        bytes: u64,
        /// The local memory's length.
        total_bytes: u64,
    },
    /// The memory lent does not allow what is to be done with it.
    #[error("read-only memory is not written, and cannot be registered for writing; pass it for writing")]
    ReadOnlyMemory,
    /// Memory of the local side or of the region cannot be accessed.
    #[error("a page of the {0} cannot be accessed; it must be mapped, and writable where it is written")]
    BadMemory(&'static str),
    /// There are as many as there can be.
    #[error("there are {most} {what} already, the most there can be; end some first")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: u32,
    },
    /// Every line of the table has had every generation.
    #[error(
        "this opening of the driver has registered as many regions as cookies can tell apart; open it anew"
    )]
    NumbersExhausted,
    /// Another user opened the driver over there.
    #[error(
        "the region's owner runs as another user, which the driver forbids even to root; run both processes as the same user ({0})"
    )]
    OtherUser(Errno),
    /// An asynchronous copy has failed.
    #[error(
        "the driver says that the copy has failed; it gives no reason, and part of the bytes may have been copied: copy them again, without asynchronous flags if it fails again"
    )]
    CopyFailed,
    /// A region is not given back as long as it is copied from or into.
    #[error(
        "a copy from or into the region is in flight and does not end; poll it until it has ended, then destroy the region"
    )]
    CopyInFlight,
    /// An asynchronous copy was waited for, and has not ended.
    #[error(
        "the driver has not reported the end of a copy for too long; it may still write to the memory, which must not be used for anything else until this process ends"
    )]
    CopyLost,
    /// The number names no copy.
    #[error("no such copy is in flight; each end is reported once")]
    NoSuchCopy,
    /// Only a DMA engine could have done it.
    #[error("the driver has no DMA engine; leave the DMA flags out, and load it without forced DMA ({0})")]
    NoDma(Errno),
    /// The driver gives every copy to the DMA engine, which this one must not be
    /// left to.
    #[error(
        "the driver is loaded so that every copy is made by the DMA engine, and with the last {bytes} bytes of this one it may report success before it has copied; load it without forced DMA"
    )]
    ForcedDma {
        /// The bytes at the copy's end that the engine must not be left.
        bytes: u64,
    },
    /// The same, where it is not known what the engine must not be left.
    #[error(
        "the driver is loaded so that every copy is made by the DMA engine, and which bytes it may leave out is said by the KNEM module's parameter dmamin, which cannot be read ({0}); mount /sys where this process sees it, or load the driver without forced DMA"
    )]
    UnknownDmaMin(Errno),
    /// An administrator has changed the module's parameter meanwhile.
    #[error(
        "the KNEM module's parameter dmamin was changed while the DMA engine was asked for a copy, which may be incomplete; make the copy again, and change the parameter while nothing is copied"
    )]
    DmaMinChanged,
    /// The driver gives a status that there is none.
    #[error("the driver says {status:#x} of the copy's status, which means nothing; it must be KNEM 1.1.1")]
    Status {
        /// What it says.
        status: u32,
    },
    /// The owner of the region has ended.
    #[error(
        "the region's owner has died, and its regions with it; start it again and take its new introduction"
    )]
    OwnerDead,
    /// The owner of the region is not found, and may be about to end.
    #[error("the region's owner is not found, and seems to be dying; try again within a second")]
    OwnerDying,
    /// The kernel refused this one copy.
    #[error("{sentence}")]
    Refused {
        /// What the system call answered.
        errno: Errno,
        /// What it means, and what would help.
        sentence: String,
    },
    /// This is a forked child of the process that opened the driver.
    #[error("this process was forked from the one that opened the driver; open it anew")]
    Forked,
    /// Shared memory is not to be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call was refused.
    #[error("{call} failed: {errno}; {hint}")]
    System {
        /// Which.
        call: &'static str,
        /// Its answer.
        errno: Errno,
        /// What would help.
        hint: String,
    },
}

impl KnemError {
    /// The errno behind the error, or 0.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Unavailable { errno, .. } => errno.map_or(0, |errno| errno as i32),
            Self::OtherUser(errno) | Self::NoDma(errno) | Self::System { errno, .. } => *errno as i32,
            Self::Refused { errno, .. } => *errno as i32,
            Self::BadMemory(_) => Errno::EFAULT as i32,
            Self::Forbidden(_) => Errno::EACCES as i32,
            _ => 0,
        }
    }
}
