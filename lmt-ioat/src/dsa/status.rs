//! How a descriptor ended, in words. The numbers are `linux/idxd.h`'s.

use std::fmt;
use std::ops::Range;

use super::descriptor::CompletionRecord;

/// The part of a completion record's status that says how it ended.
pub const CODE_MASK: u8 = 0x7f;
/// The bit that says that a page fault was a write's.
pub const FAULT_WAS_WRITE: u8 = 0x80;

/// How a descriptor ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(u8);

impl Status {
    /// No completion record has been written.
    pub const NONE: Self = Self(0);
    /// All is done.
    pub const SUCCESS: Self = Self(1);
    /// A page was not there; what was done before is counted.
    pub const PAGE_FAULT: Self = Self(3);
    /// Some descriptor of the batch did not succeed.
    pub const BATCH_FAIL: Self = Self(5);
    /// A page of the batch's list was not there.
    pub const BATCH_PAGE_FAULT: Self = Self(6);

    /// The status of a record.
    pub const fn of(record: &CompletionRecord) -> Self {
        Self(record.status & CODE_MASK)
    }

    /// Its number, as in the header.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Whether it tells of something other than pages that were not there: of
    /// a mistake, a refusal or a broken device.
    pub const fn is_refusal(self) -> bool {
        !matches!(self, Self::NONE | Self::SUCCESS | Self::PAGE_FAULT)
    }

    const fn sentence(self) -> &'static str {
        match self.0 {
            0 => "nothing has been reported",
            1 => "success",
            2 => "success, with the predicate false",
            3 => "a page was not present",
            4 => "a page was not present and the interrupt was requested",
            5 => "a descriptor of the batch did not succeed",
            6 => "a page of the batch's list was not present",
            7 => "the offsets of a delta record do not increase",
            8 => "an offset of a delta record is out of range",
            9 => "data integrity fields do not match",
            0x10 => "the work queue does not do this operation",
            0x11 => "the descriptor has flags that the operation does not take",
            0x12 => "a reserved field of the descriptor is not zero",
            0x13 => "the transfer is larger than the work queue's max_transfer_size",
            0x14 => "the batch has fewer than two descriptors or more than max_batch_size",
            0x15 => "the delta record's size is out of range",
            0x16 => "the buffers overlap",
            0x17 => "the two targets of a dualcast lie differently in their pages",
            0x18 => "the batch's list is not aligned to 64 bytes",
            0x19 => "the interrupt handle is not valid",
            0x1a => "the completion record's address cannot be translated",
            0x1b => "the completion record is not aligned to 32 bytes",
            0x1c => "an address is not aligned as the operation wants it",
            0x1d => "the process is not privileged for what the descriptor asks",
            0x1e => "the traffic class is not configured",
            0x1f => "a page of the readback address was not present",
            0x20 => "the device met a hardware error",
            0x21 => "the device met a hardware error at the destination readback",
            0x22 => "an address cannot be translated",
            _ => "a status that linux/idxd.h does not know",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {:#04x})", self.sentence(), self.0)
    }
}

/// Which bytes of a copy of `bytes` bytes its record leaves to be copied. What
/// a record says that cannot be counts as nothing done: a second copy of bytes
/// that have arrived does no harm, a missing one would.
pub fn left_over(record: &CompletionRecord, bytes: u32) -> Range<u32> {
    match Status::of(record) {
        Status::SUCCESS => bytes..bytes,
        Status::PAGE_FAULT if record.bytes_completed <= bytes => match record.result {
            0 => record.bytes_completed..bytes,
            1 => 0..bytes - record.bytes_completed,
            _ => 0..bytes,
        },
        _ => 0..bytes,
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
