//! Registered memory, and buffers, that are not what they were when they were lent.
#![allow(unsafe_code)] // Calls C functions, and takes rights to memory away.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

use lmt_fi::abi::{Errno, flags};

use crate::atomics::{CSWAP, READ, SUM, UINT64, key_of};
use crate::harness::{Pair, close, context, pair};
use crate::remote::register;

const PAGE_BYTES: usize = 4096;
const BYTES: usize = 8 * PAGE_BYTES;
const ACCESS: u64 = flags::REMOTE_READ | flags::REMOTE_WRITE;

/// What becomes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    ReadOnly,
    Gone,
    /// Its file is cut.
    Cut,
}

/// Some pages, of which all but the first meet their fate.
struct Pages {
    base: *mut u8,
    file: File,
}

impl Pages {
    fn new() -> Self {
        // SAFETY: a name; the descriptor is owned by the file alone.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"faults".as_ptr(), 0)) };
        file.set_len(BYTES as u64).expect("room");
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), BYTES, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let pages = Self { base: base.cast(), file };
        pages.all().fill(7);
        pages
    }

    #[expect(clippy::mut_from_ref, reason = "the tests use one at a time")]
    fn all(&self) -> &mut [u8] {
        // SAFETY: the mapping; nobody keeps what this gives while another uses it.
        unsafe { std::slice::from_raw_parts_mut(self.base, BYTES) }
    }

    fn meet(&self, fate: Fate) {
        let protect = |rights| {
            let second = self.base.wrapping_add(PAGE_BYTES).cast();
            // SAFETY: pages of the mapping.
            assert_eq!(unsafe { libc::mprotect(second, BYTES - PAGE_BYTES, rights) }, 0);
        };
        match fate {
            Fate::ReadOnly => protect(libc::PROT_READ),
            Fate::Gone => protect(libc::PROT_NONE),
            Fate::Cut => self.file.set_len(PAGE_BYTES as u64).expect("it is cut"),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping, used no more.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}

/// The second of a pair reads the end of the first's memory without the first's help.
fn reads_alone(pair: &Pair, offset: usize, key: u64) -> [u8; 64] {
    let (mut into, start) = ([0; 64], Instant::now());
    assert_eq!(pair.two.rma_read(&mut into, offset as u64, key), 0);
    while pair.two.read().is_err() {
        assert!(start.elapsed() < Duration::from_secs(5), "it waits for the owner");
    }
    into
}

#[test]
fn an_owner_whose_memory_is_bad_answers_with_an_error_and_its_other_regions_are_as_before() {
    for fate in [Fate::ReadOnly, Fate::Gone, Fate::Cut] {
        let (pair, pages, mut plain) = (pair(), Pages::new(), [9; 64]);
        let bad = register(pair.domain, pages.all(), ACCESS);
        let good = register(pair.domain, &mut plain, ACCESS);
        let Pair { one, two, .. } = &pair;
        let mut before = [0; 64];
        assert_eq!(two.rma_read(&mut before, 0, key_of(good)), 0);
        two.wait(one);
        pages.meet(fate);
        let mut here = vec![5; BYTES];
        for offset in [0, PAGE_BYTES - 8, PAGE_BYTES] {
            assert_eq!(two.rma_write(&here[offset..], offset as u64, key_of(bad)), 0);
            let failure = two.wait_error(one);
            assert_eq!((failure.op_context, failure.err), (context(2), Errno::FAULT.0), "{fate:?} {offset}");
            assert_eq!(reads_alone(&pair, 0, key_of(good)), [9; 64]);
        }
        assert_eq!(two.rma_read(&mut here, 0, key_of(bad)), 0);
        if fate == Fate::ReadOnly {
            assert_eq!(two.wait(one).0.op_context, context(1));
            assert_eq!(here[PAGE_BYTES..][..100], [7; 100]);
        } else {
            assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
        }
        assert_eq!((close(bad), close(good)), (0, 0));
        pair.close();
    }
}

/// Also of another endpoint of the domain, whose first endpoint has its regions.
#[test]
fn an_endpoint_that_reads_or_writes_its_own_domain_s_bad_memory_is_told_so() {
    for fate in [Fate::ReadOnly, Fate::Gone, Fate::Cut] {
        let (mut pair, pages, mut plain) = (pair(), Pages::new(), vec![9; BYTES]);
        let bad = register(pair.domain, pages.all(), ACCESS);
        let good = register(pair.domain, &mut plain, ACCESS);
        pages.meet(fate);
        for (of_first, of_itself) in [(true, true), (true, false), (false, true)] {
            let (near, far) = match of_first {
                true => (&mut pair.one, &pair.two),
                false => (&mut pair.two, &pair.one),
            };
            let peer = near.peer;
            near.peer = if of_itself { near.own } else { peer };
            let mut here = vec![5; BYTES];
            for (buffer, key) in [(&mut here[..], key_of(bad)), (pages.all(), key_of(good))] {
                let reads_bad = key == key_of(bad);
                assert_eq!(near.rma_read(buffer, 0, key), 0);
                if fate == Fate::ReadOnly && reads_bad {
                    near.wait(far);
                } else {
                    assert_eq!(near.wait_error(far).err, Errno::FAULT.0, "{fate:?} {reads_bad}");
                }
                assert_eq!(near.rma_write(buffer, 0, key), 0);
                if fate == Fate::ReadOnly && !reads_bad {
                    near.wait(far);
                } else {
                    assert_eq!(near.wait_error(far).err, Errno::FAULT.0, "{fate:?} {reads_bad}");
                }
            }
            assert_eq!(near.rma_write(&[3; BYTES], 0, key_of(good)), 0);
            near.wait(far);
            assert_eq!(near.rma_read(&mut here, 0, key_of(good)), 0);
            near.wait(far);
            assert_eq!(here, [3; BYTES]);
            assert_eq!(near.rma_read(&mut here, 1, key_of(good)), 0);
            assert_eq!(near.wait_error(far).err, Errno::INVAL.0, "past the end");
            near.peer = peer;
        }
        assert_eq!((close(bad), close(good)), (0, 0));
        pair.close();
    }
}

#[test]
fn an_atomic_operation_on_bad_memory_is_an_error() {
    for fate in [Fate::ReadOnly, Fate::Gone, Fate::Cut] {
        let (pair, pages) = (pair(), Pages::new());
        let mr = register(pair.domain, pages.all(), ACCESS);
        let Pair { one, two, .. } = &pair;
        pages.meet(fate);
        let (mut old, there) = ([0_u64; 2], (PAGE_BYTES - 8) as u64);
        assert_eq!(two.fetch(&[1_u64; 2], &mut old, there, key_of(mr), UINT64, SUM), 0);
        assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
        assert_eq!(two.fetch(&[1_u64], &mut old[..1], there, key_of(mr), UINT64, SUM), 0);
        two.wait(one);
        assert_eq!(old[0], 0x0707_0707_0707_0707, "nothing was changed before");
        assert_eq!(two.fetch(&[0_u64; 2], &mut old, there, key_of(mr), UINT64, READ), 0);
        if fate == Fate::ReadOnly {
            two.wait(one);
            assert_eq!(old, [0x0707_0707_0707_0708, 0x0707_0707_0707_0707]);
        } else {
            assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
        }
        assert_eq!(close(mr), 0);
        pair.close();
    }
}

#[test]
fn an_atomic_operation_s_initiator_whose_memory_is_bad_is_told_so() {
    for fate in [Fate::ReadOnly, Fate::Gone, Fate::Cut] {
        let (mut pair, pages, mut there) = (pair(), Pages::new(), [0_u64; 2]);
        // SAFETY: words are bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(there.as_mut_ptr().cast(), 16) };
        let mr = register(pair.domain, bytes, ACCESS);
        pages.meet(fate);
        // SAFETY: the words around the end of the first page, on which only the kernel acts.
        let bad = unsafe { std::slice::from_raw_parts_mut(pages.base.add(PAGE_BYTES - 8).cast::<u64>(), 2) };
        let Pair { one, two, .. } = &mut pair;
        let mut sum = 0_u64;
        for peer in [two.peer, two.own] {
            two.peer = peer;
            // What was there cannot be written here; it was changed all the same.
            assert_eq!(two.fetch(&[1_u64; 2], bad, 0, key_of(mr), UINT64, SUM), 0);
            let failure = two.wait_error(one);
            assert_eq!((failure.op_context, failure.err), (context(4), Errno::FAULT.0), "{fate:?}");
            sum += 1;
            // What is added or swapped cannot be read: nothing is changed.
            let is_readable = fate == Fate::ReadOnly;
            let mut old = [9_u64; 2];
            assert_eq!(two.atomic(bad, 0, key_of(mr), UINT64, SUM), 0);
            if is_readable {
                two.wait(one);
                sum = sum.wrapping_add(0x0707_0707_0707_0707);
            } else {
                let failure = two.wait_error(one);
                assert_eq!((failure.op_context, failure.err), (context(3), Errno::FAULT.0), "{fate:?}");
            }
            let compared = two.compare(&[sum; 2], bad, &mut old, key_of(mr), CSWAP);
            assert_eq!(compared, 0);
            if is_readable {
                two.wait(one);
            } else {
                assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
            }
            // The same endpoints go on.
            assert_eq!(two.fetch(&[], &mut old, 0, key_of(mr), UINT64, READ), 0);
            two.wait(one);
            assert_eq!(old[1], sum, "{fate:?}");
        }
        assert_eq!(close(mr), 0);
        pair.close();
    }
}

#[test]
fn an_initiator_whose_buffer_is_bad_is_told_so() {
    for fate in [Fate::ReadOnly, Fate::Gone, Fate::Cut] {
        let (pair, pages, mut plain) = (pair(), Pages::new(), vec![9; BYTES]);
        let mr = register(pair.domain, &mut plain, ACCESS);
        let Pair { one, two, .. } = &pair;
        pages.meet(fate);
        assert_eq!(two.rma_read(pages.all(), 0, key_of(mr)), 0);
        assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
        assert_eq!(two.rma_write(pages.all(), 0, key_of(mr)), 0);
        if fate == Fate::ReadOnly {
            assert_eq!(two.wait(one).0.op_context, context(2));
        } else {
            assert_eq!(two.wait_error(one).err, Errno::FAULT.0, "{fate:?}");
        }
        let last = reads_alone(&pair, BYTES - 64, key_of(mr));
        assert_eq!(last, [if fate == Fate::ReadOnly { 7 } else { 9 }; 64]);
        assert_eq!(close(mr), 0);
        pair.close();
    }
}
