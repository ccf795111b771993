//! Memory that the device reads and writes: the descriptors and completion
//! records, and copies by the CPU of what it left.
#![allow(unsafe_code)] // The device is given addresses; the CPU follows some.

use std::sync::atomic::{AtomicU64, Ordering};

use lmt_copy::Distance;
use lmt_core::buffer::Access;
use lmt_core::error::MemoryError;
use lmt_core::shared_memory::SharedMemory;

use super::descriptor::{CompletionRecord, DESCRIPTOR_BYTES, Descriptor, RECORD_BYTES, flag};
use super::queue::{Submitted, WorkQueue};
use crate::places::Mapped;

const PURPOSE: &str = "the copy engine's descriptors";
const KEY: &str = "units";

/// Descriptors of one unit at most.
pub(super) const MEMBERS: usize = 16;
/// The record behind the members': the batch's own.
const BATCH_RECORD: usize = MEMBERS;
const RECORDS_START: usize = MEMBERS * DESCRIPTOR_BYTES;
/// A list, its members' records, the batch's; rounded up to whole lines.
const UNIT_BYTES: usize = (RECORDS_START + (MEMBERS + 1) * RECORD_BYTES).next_multiple_of(64);

/// A copy that the device can do by one descriptor, between lent memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    from: Mapped,
    to: Mapped,
    bytes: u32,
    /// Whether it may begin only when all parts before it have arrived.
    pub(super) is_fenced: bool,
}

impl Part {
    /// A copy of the first `bytes` bytes that both places have, if the target
    /// is lent for writing.
    pub(super) fn new(from: Mapped, to: Mapped, bytes: u32, is_fenced: bool) -> Option<Self> {
        let room = from.bytes().min(to.bytes());
        (to.access() == Access::Write && bytes as usize <= room).then_some(Self {
            from,
            to,
            bytes,
            is_fenced,
        })
    }

    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The part of it that `range` says; nothing where that is empty or no part.
    pub(super) fn cut(&self, range: &std::ops::Range<u32>) -> Option<Self> {
        let bytes = range.end.min(self.bytes).checked_sub(range.start).filter(|bytes| *bytes > 0)?;
        let (from, to) =
            (self.from.advanced(u64::from(range.start))?, self.to.advanced(u64::from(range.start))?);
        Some(Self { from, to, bytes, is_fenced: self.is_fenced })
    }

    /// Copies it by the CPU.
    pub(super) fn copy_now(&self) {
        let source = std::ptr::with_exposed_provenance::<u8>(self.from.address());
        let target = std::ptr::with_exposed_provenance_mut::<u8>(self.to.address());
        // SAFETY: both places have at least `bytes` bytes (`new`, `cut`) and
        // exist, so their lender's promise holds: valid memory, the target for
        // writing, used by nobody but engines; the device is quiet about this
        // part, or has never had it. A copy that allows overlap is used, since
        // a list may let its copies overlap where the bytes do not matter.
        unsafe { lmt_copy::copy_overlapping(target, source, self.bytes as usize, Distance::Near) };
    }

    fn descriptor(&self, flags: u32, completion_address: u64) -> Descriptor {
        let (source, target) = (self.from.address() as u64, self.to.address() as u64);
        let flags = flags | if self.is_fenced { flag::FENCE } else { 0 };
        Descriptor::memmove(flags, completion_address, source, target, self.bytes)
    }
}

/// How much of a unit's copies its completion records leave to be done.
#[derive(Debug)]
pub(super) struct Report {
    /// The batch's own record, or the only member's.
    pub(super) whole: CompletionRecord,
    /// One for each member.
    pub(super) members: Vec<CompletionRecord>,
}

/// The descriptors and completion records of all units. Shared memory and not
/// the process's own, so that a fork does not make the kernel replace the page
/// under the device; allocated and mapped from the beginning, so that the
/// device does not meet a page fault there, which it could not tell of.
#[derive(Debug)]
pub(super) struct Arena {
    memory: SharedMemory,
    units: usize,
}

impl Arena {
    pub(super) fn new(units: usize) -> Result<Self, MemoryError> {
        let bytes = (units * UNIT_BYTES).next_multiple_of(4096);
        let (memory, _fd) = SharedMemory::create(PURPOSE, KEY, bytes, true)?;
        memory.commit_range(PURPOSE, KEY, 0, bytes)?;
        // That the memory is locked too is a precaution against swapping only;
        // where RLIMIT_MEMLOCK does not allow it, it stays a risk of a stall.
        // SAFETY: the whole of a mapping that is ours; nothing about it changes
        // but that its pages stay in memory.
        let _ = unsafe { nix::sys::mman::mlock(memory.base().cast(), memory.len()) };
        Ok(Self { memory, units })
    }

    pub(super) const fn units(&self) -> usize {
        self.units
    }

    /// The word at `offset` of a unit; in the first unit's first word if there
    /// is no such place, which no caller asks for.
    fn word(&self, unit: usize, offset: usize) -> &AtomicU64 {
        let within = unit < self.units && offset + 8 <= UNIT_BYTES && offset.is_multiple_of(8);
        let at = if within { unit * UNIT_BYTES + offset } else { 0 };
        // SAFETY: below the mapping's length, which holds all units.
        let word = unsafe { self.memory.base().add(at) };
        // SAFETY: 8 aligned bytes of the mapping (which begins with a page),
        // which lives as long as the borrow; the CPU touches it only so, the
        // device only while a descriptor of the unit is in flight.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    fn address(&self, unit: usize, offset: usize) -> u64 {
        std::ptr::from_ref(self.word(unit, offset)).expose_provenance() as u64
    }

    const fn record_offset(member: usize) -> usize {
        RECORDS_START + member * RECORD_BYTES
    }

    fn put(&self, unit: usize, offset: usize, words: &[u64]) {
        for (at, word) in words.iter().enumerate() {
            // Relaxed: the queue orders them before the device's reads.
            self.word(unit, offset + 8 * at).store(*word, Ordering::Relaxed);
        }
    }

    /// Submits the parts as one unit: a single descriptor or a batch.
    pub(super) fn launch<Q: WorkQueue>(
        &self,
        queue: &mut Q,
        unit: usize,
        parts: &[Part],
        flags: u32,
    ) -> Submitted {
        let record_address = |member| self.address(unit, Self::record_offset(member));
        for (member, part) in parts.iter().enumerate() {
            let words: [u64; 8] = zerocopy::transmute!(part.descriptor(flags, record_address(member)));
            self.put(unit, member * DESCRIPTOR_BYTES, &words);
            self.put(unit, Self::record_offset(member), &[0; 4]);
        }
        let descriptor = match parts {
            // A fence needs a batch; alone it has nothing to wait for.
            [only] => Part { is_fenced: false, ..*only }.descriptor(flags, record_address(0)),
            many => {
                self.put(unit, Self::record_offset(BATCH_RECORD), &[0; 4]);
                Descriptor::batch(record_address(BATCH_RECORD), self.address(unit, 0), many.len() as u32)
            }
        };
        // Until the unit's record is there, or the queue's `stop` has said that
        // nothing is worked on any more, `Core` keeps the arena (or leaks it),
        // the parts, and this unit for them alone.
        // SAFETY: the list and the records are in the arena, the records zeroed
        // just now; the parts name memory that their lender promised valid and
        // not otherwise used for as long as they exist. Both outlive the work,
        // as said above.
        unsafe { queue.submit(&descriptor) }
    }

    /// Submits a descriptor that does nothing but answer.
    pub(super) fn launch_noop<Q: WorkQueue>(&self, queue: &mut Q, unit: usize) -> Submitted {
        self.put(unit, Self::record_offset(0), &[0; 4]);
        let descriptor = Descriptor::noop(self.address(unit, Self::record_offset(0)));
        // SAFETY: it names only the record, zeroed just now, in the arena, which
        // is leaked where the record has not come (`Core::try_device`).
        unsafe { queue.submit(&descriptor) }
    }

    fn record(&self, unit: usize, member: usize) -> CompletionRecord {
        let offset = Self::record_offset(member);
        // Acquire: pairs with the device's write of the record, which comes
        // after all writes of the copy and is one write of 32 bytes. On x86 a
        // device's writes become visible in that order, so what the copy wrote
        // is read after this; and what is done to its source and target from
        // here on comes after the device's accesses. The first word holds the
        // status and the count of bytes, the others are read behind it.
        let first = self.word(unit, offset).load(Ordering::Acquire);
        // Relaxed: behind the Acquire load, and written together with it.
        let rest = |at: usize| self.word(unit, offset + 8 * at).load(Ordering::Relaxed);
        zerocopy::transmute!([first, rest(1), rest(2), rest(3)])
    }

    /// What the device says of a unit of so many members; `None` as long as it
    /// is in flight.
    pub(super) fn report(&self, unit: usize, members: usize) -> Option<Report> {
        let whole = self.record(unit, if members == 1 { 0 } else { BATCH_RECORD });
        (whole.status != 0).then(|| self.last_report(unit, members))
    }

    /// The same when the queue has been drained, so that nothing is in flight.
    pub(super) fn last_report(&self, unit: usize, members: usize) -> Report {
        let whole = self.record(unit, if members == 1 { 0 } else { BATCH_RECORD });
        Report { whole, members: (0..members).map(|member| self.record(unit, member)).collect() }
    }
}
