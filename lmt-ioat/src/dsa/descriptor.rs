//! Descriptors and completion records, as the device reads and writes them.
//! Sizes, offsets and numbers are Linux's `linux/idxd.h`; `tests/dsa_layout.rs`
//! compares them with that header where it is installed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a descriptor asks for.
pub mod opcode {
    /// Nothing but a completion record.
    pub const NOOP: u8 = 0;
    /// To work through a list of descriptors.
    pub const BATCH: u8 = 1;
    /// To copy.
    pub const MEMMOVE: u8 = 3;
}

/// Bits of a descriptor's flags.
pub mod flag {
    /// In a batch: not before all earlier ones, and only if they succeeded.
    pub const FENCE: u32 = 0x0001;
    /// The device waits for the kernel where it meets a page fault.
    pub const BLOCK_ON_FAULT: u32 = 0x0002;
    /// The completion record's address is valid.
    pub const RECORD_VALID: u32 = 0x0004;
    /// A completion record is wanted on success too.
    pub const RECORD_WANTED: u32 = 0x0008;
    /// What is written goes to the cache rather than to memory.
    pub const TO_CACHE: u32 = 0x0100;
}

/// What the device is to do; a work queue takes it whole (`struct dsa_hw_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct Descriptor {
    /// Bits 0 to 19 the address space's number (filled in by ENQCMD or the
    /// driver), bit 31 whether it is the kernel's. Always 0 here.
    pub pasid: u32,
    /// Bits 0 to 23 the flags, 24 to 31 the opcode.
    pub flags_and_opcode: u32,
    /// Where the completion record goes; a multiple of 32.
    pub completion_address: u64,
    /// Where to read: the source, or a batch's list, a multiple of 64.
    pub source_address: u64,
    /// Where to write.
    pub target_address: u64,
    /// How many bytes, or in a batch how many descriptors.
    pub size: u32,
    /// Which interrupt; none is asked for here.
    pub interrupt_handle: u16,
    /// Must be 0.
    pub reserved: u16,
    /// Of other operations; 0 here.
    pub specific: [u8; 24],
}

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: usize = 64;
/// Bytes of a completion record.
pub const RECORD_BYTES: usize = 32;

const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR_BYTES);
const _: () = assert!(size_of::<CompletionRecord>() == RECORD_BYTES);

impl Descriptor {
    fn new(opcode: u8, flags: u32, completion_address: u64) -> Self {
        let flags = flags | flag::RECORD_VALID | flag::RECORD_WANTED;
        Self { flags_and_opcode: flags | u32::from(opcode) << 24, completion_address, ..Self::default() }
    }

    /// Asks for a completion record and nothing else.
    pub fn noop(completion_address: u64) -> Self {
        Self::new(opcode::NOOP, 0, completion_address)
    }

    /// Asks for a copy.
    pub fn memmove(flags: u32, completion_address: u64, source: u64, target: u64, bytes: u32) -> Self {
        let new = Self::new(opcode::MEMMOVE, flags, completion_address);
        Self { source_address: source, target_address: target, size: bytes, ..new }
    }

    /// Asks for the `count` descriptors of the list at this address; a device
    /// takes two at least.
    pub fn batch(completion_address: u64, list_address: u64, count: u32) -> Self {
        let new = Self::new(opcode::BATCH, 0, completion_address);
        Self { source_address: list_address, size: count, ..new }
    }

    /// What it asks for.
    pub const fn opcode(&self) -> u8 {
        (self.flags_and_opcode >> 24) as u8
    }

    /// Its flags.
    pub const fn flags(&self) -> u32 {
        self.flags_and_opcode & 0xff_ffff
    }
}

/// What the device says of a descriptor (`struct dsa_completion_record`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(32))]
pub struct CompletionRecord {
    /// Bits 0 to 6 how it ended, 0 as long as it has not; bit 7 says whether a
    /// page fault was a write's.
    pub status: u8,
    /// Of a copy: 0 if it went from the first byte to the last, 1 if it went
    /// the other way because the two overlap.
    pub result: u8,
    /// Reserved.
    pub reserved: u16,
    /// Bytes copied before a page fault, in the copy's direction; of a batch,
    /// descriptors that have ended.
    pub bytes_completed: u32,
    /// Which address faulted.
    pub fault_address: u64,
    /// Of other operations.
    pub specific: [u8; 16],
}
