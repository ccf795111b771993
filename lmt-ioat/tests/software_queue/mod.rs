//! A work queue without a device: it executes descriptors from memory, as the
//! specification has it, a few each time it is given a turn, and meets the
//! faults that a test asks for. It stands for the hardware, so it reads the
//! descriptors' bytes and not the engine's types.
#![allow(dead_code)] // Each test binary uses a part of it.
#![allow(unsafe_code)] // It follows the descriptors' addresses, as a device does.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lmt_ioat::dsa::descriptor::Descriptor;
use lmt_ioat::dsa::queue::{Limits, Stopped, Submitted, WorkQueue};

/// How often it misbehaves, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub seed: u64,
    /// A page is missing somewhere in a copy, or in a batch's list.
    pub page_fault: u64,
    /// The queue says that it is full.
    pub full: u64,
    /// A descriptor ends with another status, some of them unknown, having
    /// written what it should not have.
    pub odd_status: u64,
    /// A descriptor is never worked on.
    pub lost: u64,
    /// After so many descriptors no more are taken.
    pub refuses_after: Option<u64>,
    /// A turn in which nothing is done.
    pub idle: u64,
    /// Closing it does not end what it has, as where a forked child holds the
    /// device open: the test has it done later ([`Late`]).
    pub never_drains: bool,
    /// The empty descriptor may be lost too.
    pub mute: bool,
}

/// What the tests use as untouched memory, and the device writes where it fails.
pub const UNTOUCHED: u8 = 0xee;

pub struct SoftwareQueue {
    limits: Limits,
    faults: Faults,
    random: u64,
    taken: u64,
    is_stopped: bool,
    in_flight: Vec<Unit>,
    /// Units in flight, for the test to see.
    watch: Arc<AtomicUsize>,
    late: Late,
}

/// What a queue that does not drain had when it was closed.
#[derive(Clone, Default)]
pub struct Late(Arc<Mutex<Vec<[u64; 8]>>>);

impl Late {
    /// Copies, and answers; returns how many descriptors there were.
    pub fn finish(&self) -> usize {
        let descriptors = std::mem::take(&mut *self.0.lock().unwrap());
        for descriptor in &descriptors {
            if opcode(descriptor) == 3 {
                copy(descriptor[2], descriptor[3], size(descriptor) as usize);
            }
            write_record(descriptor, SUCCESS, 0, 0, 0);
        }
        descriptors.len()
    }
}

struct Unit {
    descriptor: [u64; 8],
    /// Of a batch: which members have ended.
    members: Vec<Member>,
    is_lost: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Member {
    Waiting,
    Succeeded,
    Failed,
    Abandoned,
}

const SUCCESS: u8 = 1;
const PAGE_FAULT: u8 = 3;
const BATCH_FAIL: u8 = 5;
const BATCH_PAGE_FAULT: u8 = 6;
const XFER_ERANGE: u8 = 0x13;
const DESC_CNT_ERANGE: u8 = 0x14;
const ODD: [u8; 10] = [0x02, 0x04, 0x10, 0x11, 0x16, 0x1a, 0x20, 0x22, 0x55, 0x7f];

fn opcode(descriptor: &[u64; 8]) -> u8 {
    (descriptor[0] >> 56) as u8
}

fn flags(descriptor: &[u64; 8]) -> u32 {
    (descriptor[0] >> 32) as u32 & 0xff_ffff
}

fn size(descriptor: &[u64; 8]) -> u32 {
    descriptor[4] as u32
}

impl SoftwareQueue {
    pub fn new(limits: Limits, faults: Faults) -> Self {
        let random = faults.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (in_flight, watch) = (Vec::new(), Arc::default());
        let late = Late::default();
        Self { limits, faults, random, taken: 0, is_stopped: false, in_flight, watch, late }
    }

    /// One that never misbehaves.
    pub fn sound() -> Self {
        let limits = Limits {
            max_transfer_bytes: 2 << 20,
            max_batch: 32,
            max_in_flight: 64,
            can_block_on_fault: false,
        };
        Self::new(limits, Faults::default())
    }

    pub fn watch(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.watch)
    }

    pub fn late(&self) -> Late {
        self.late.clone()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % limit.max(1)
    }

    fn happens(&mut self, thousandths: u64) -> bool {
        thousandths > 0 && self.below(1000) < thousandths
    }

    /// Works a little on one of the units; whether it has ended.
    fn work(&mut self, at: usize) -> bool {
        let descriptor = self.in_flight[at].descriptor;
        match opcode(&descriptor) {
            0 => {
                write_record(&descriptor, SUCCESS, 0, 0, 0);
                true
            }
            1 => self.work_on_batch(at, &descriptor),
            3 => {
                self.copy(&descriptor);
                true
            }
            _ => {
                write_record(&descriptor, 0x10, 0, 0, 0);
                true
            }
        }
    }

    fn work_on_batch(&mut self, at: usize, batch: &[u64; 8]) -> bool {
        let count = size(batch) as usize;
        assert_eq!(batch[2] % 64, 0, "a list must be aligned");
        if !(2..=self.limits.max_batch as usize).contains(&count) {
            write_record(batch, DESC_CNT_ERANGE, 0, 0, 0);
            return true;
        }
        if self.in_flight[at].members.is_empty() {
            self.in_flight[at].members = vec![Member::Waiting; count];
            if self.happens(self.faults.page_fault) {
                // Those behind a missing page of the list are not read.
                let read = self.below(count as u64) as usize;
                self.in_flight[at].members[read..].fill(Member::Abandoned);
                if read == 0 {
                    write_record(batch, BATCH_PAGE_FAULT, 0, 0, batch[2]);
                    return true;
                }
            }
        }
        // Any of those that no fence holds back.
        let members = self.in_flight[at].members.clone();
        let member = |nth: usize| read_descriptor(batch[2] + 64 * nth as u64);
        let fence = (0..count).find(|&nth| members[nth] == Member::Waiting && flags(&member(nth)) & 1 != 0);
        let waiting: Vec<usize> = (0..count).filter(|&nth| members[nth] == Member::Waiting).collect();
        let free: Vec<usize> =
            waiting.iter().copied().filter(|nth| fence.is_none_or(|fence| *nth < fence)).collect();
        if let Some(nth) = free.get(self.below(free.len() as u64) as usize) {
            let ended = self.copy(&member(*nth));
            self.in_flight[at].members[*nth] = ended;
        } else if let Some(fence) = fence {
            let failed = members[..fence].contains(&Member::Failed);
            if failed {
                self.in_flight[at].members[fence..].fill(Member::Abandoned);
            } else {
                let ended = self.copy(&member(fence));
                self.in_flight[at].members[fence] = ended;
            }
        }
        let members = &self.in_flight[at].members;
        if members.contains(&Member::Waiting) {
            return false;
        }
        let whole = members.iter().all(|member| *member == Member::Succeeded);
        let ended = members.iter().filter(|member| **member != Member::Abandoned).count();
        write_record(batch, if whole { SUCCESS } else { BATCH_FAIL }, 0, ended as u32, 0);
        true
    }

    fn copy(&mut self, descriptor: &[u64; 8]) -> Member {
        let bytes = size(descriptor);
        let (source, target) = (descriptor[2], descriptor[3]);
        assert_eq!(flags(descriptor) & 0xc, 0xc, "a completion record must be asked for");
        assert!(descriptor[5..] == [0; 3] && descriptor[4] >> 32 == 0, "reserved fields must be 0");
        if bytes == 0 || bytes > self.limits.max_transfer_bytes {
            write_record(descriptor, XFER_ERANGE, 0, 0, 0);
            return Member::Failed;
        }
        if self.happens(self.faults.odd_status) {
            let spoilt = self.below(u64::from(bytes) + 1) as usize;
            fill(target, spoilt);
            let status = ODD[self.below(ODD.len() as u64) as usize];
            let claimed = self.below(2 * u64::from(bytes)) as u32;
            write_record(descriptor, status, 0, claimed, 0);
            return Member::Failed;
        }
        if self.happens(self.faults.page_fault) {
            let done = self.below(u64::from(bytes)) as u32;
            let from_end = self.below(4) == 0;
            let skip = u64::from(if from_end { bytes - done } else { 0 });
            copy(source + skip, target + skip, done as usize);
            let status = PAGE_FAULT | if self.below(2) == 0 { 0x80 } else { 0 };
            write_record(descriptor, status, from_end.into(), done, source + u64::from(done));
            return Member::Failed;
        }
        copy(source, target, bytes as usize);
        write_record(descriptor, SUCCESS, 0, 0, 0);
        Member::Succeeded
    }
}

impl WorkQueue for SoftwareQueue {
    fn limits(&self) -> Limits {
        self.limits
    }

    unsafe fn submit(&mut self, descriptor: &Descriptor) -> Submitted {
        if self.is_stopped || self.faults.refuses_after.is_some_and(|most| self.taken >= most) {
            return Submitted::Refused { errno: libc::ENODEV };
        }
        if self.happens(self.faults.full) {
            return Submitted::Full;
        }
        assert!(self.in_flight.len() < self.limits.max_in_flight as usize, "more than the queue holds");
        self.taken += 1;
        let descriptor: [u64; 8] = zerocopy::transmute!(*descriptor);
        assert_eq!(descriptor[1] % 32, 0, "a completion record must be aligned");
        // The first, empty one has to come through where others may.
        let is_lost = self.happens(self.faults.lost) && (opcode(&descriptor) != 0 || self.faults.mute);
        self.in_flight.push(Unit { descriptor, members: Vec::new(), is_lost });
        self.watch.store(self.in_flight.len(), Ordering::Relaxed);
        Submitted::Accepted
    }

    fn turn(&mut self) {
        if self.happens(self.faults.idle) {
            return;
        }
        for _ in 0..1 + self.below(4) {
            if self.in_flight.is_empty() {
                break;
            }
            let at = self.below(self.in_flight.len() as u64) as usize;
            if !self.in_flight[at].is_lost && self.work(at) {
                self.in_flight.swap_remove(at);
            }
        }
        self.watch.store(self.in_flight.len(), Ordering::Relaxed);
    }

    fn stop(&mut self) -> Stopped {
        self.is_stopped = true;
        let left = self.in_flight.drain(..).map(|unit| unit.descriptor);
        self.watch.store(0, Ordering::Relaxed);
        if self.faults.never_drains {
            self.late.0.lock().unwrap().extend(left);
            return Stopped::Unknown;
        }
        Stopped::Drained
    }
}

impl Drop for SoftwareQueue {
    fn drop(&mut self) {
        let _stopped = self.stop();
    }
}

fn word(address: u64) -> &'static AtomicU64 {
    // SAFETY: who submits promises that the descriptor's memory stays; it is
    // aligned, and touched as atomics only.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) }
}

fn read_descriptor(address: u64) -> [u64; 8] {
    std::array::from_fn(|at| word(address + 8 * at as u64).load(Ordering::Relaxed))
}

fn write_record(descriptor: &[u64; 8], status: u8, result: u8, bytes_completed: u32, fault_address: u64) {
    let first = u64::from(status) | u64::from(result) << 8 | u64::from(bytes_completed) << 32;
    word(descriptor[1] + 8).store(fault_address, Ordering::Relaxed);
    word(descriptor[1]).store(first, Ordering::Release);
}

fn copy(source: u64, target: u64, bytes: usize) {
    let from = std::ptr::with_exposed_provenance::<u8>(source as usize);
    let to = std::ptr::with_exposed_provenance_mut::<u8>(target as usize);
    // SAFETY: who submits promises both to be valid, and used by nobody else.
    unsafe { std::ptr::copy(from, to, bytes) };
}

fn fill(target: u64, bytes: usize) {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(target as usize);
    // SAFETY: as in `copy`.
    unsafe { std::ptr::write_bytes(to, UNTOUCHED, bytes) };
}
