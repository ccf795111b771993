//! Memory regions, reads and writes.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;

use lmt_fi::abi::domain::FidMr;
use lmt_fi::abi::fabric::FidDomain;
use lmt_fi::abi::rma::{MsgRma, RmaIov};
use lmt_fi::abi::{Errno, flags};

use crate::harness::{Side, close, context, pair};

pub fn register(domain: *mut FidDomain, memory: &mut [u8], access: u64) -> *mut FidMr {
    let mut mr = ptr::null_mut();
    // SAFETY: a domain, memory that the tests keep until it is closed, and room.
    let registered = unsafe {
        let (address, bytes) = (memory.as_mut_ptr().cast(), memory.len());
        ((*(*domain).mr).reg)(domain.cast(), address, bytes, access, 0, 0, 0, &raw mut mr, ptr::null_mut())
    };
    assert_eq!(registered, 0);
    mr
}

impl Side {
    pub fn rma_read(&self, into: &mut [u8], offset: u64, key: u64) -> isize {
        let (address, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: an endpoint, and memory that the tests keep until it is read.
        unsafe {
            ((*(*self.ep).rma).read)(
                self.ep,
                address,
                bytes,
                ptr::null_mut(),
                self.peer,
                offset,
                key,
                context(1),
            )
        }
    }

    pub fn rma_write(&self, from: &[u8], offset: u64, key: u64) -> isize {
        let (address, bytes) = (from.as_ptr().cast(), from.len());
        // SAFETY: an endpoint, and memory that the tests keep until it is written.
        unsafe {
            ((*(*self.ep).rma).write)(
                self.ep,
                address,
                bytes,
                ptr::null_mut(),
                self.peer,
                offset,
                key,
                context(2),
            )
        }
    }
}

/// `fi_writemsg` of one piece to one place, of which the length is said.
fn writemsg(side: &Side, from: &[u8], there: RmaIov, with: u64) -> isize {
    let piece = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let msg = MsgRma {
        msg_iov: &raw const piece,
        desc: ptr::null_mut(),
        iov_count: 1,
        addr: side.peer,
        rma_iov: &raw const there,
        rma_iov_count: 1,
        context: context(4),
        data: 0,
    };
    // SAFETY: an endpoint, and memory that the tests keep until it is written.
    unsafe { ((*(*side.ep).rma).writemsg)(side.ep, &raw const msg, with) }
}

#[test]
fn a_write_that_is_injected_copies_and_is_told() {
    let pair = pair();
    let mut memory = vec![0_u8; 8192];
    let mr = register(pair.domain, &mut memory, flags::REMOTE_WRITE);
    // SAFETY: the region that was registered.
    let key = unsafe { (*mr).key };
    let there = |addr, len| RmaIov { addr, len, key };
    let mut from = vec![7_u8; 4096];
    let side = &pair.two;
    assert_eq!(writemsg(side, &from, there(0, 4096), flags::INJECT | flags::COMPLETION), 0);
    from.fill(1);
    let (written, _) = side.wait(&pair.one);
    assert_eq!((written.op_context, written.flags), (context(4), flags::RMA | flags::WRITE));
    assert_eq!(writemsg(side, &from, there(8000, 4096), flags::INJECT), 0);
    let failure = side.wait_error(&pair.one);
    assert_eq!((failure.op_context, failure.err), (context(4), Errno::INVAL.0), "past the end");
    assert_eq!(writemsg(side, &[0; 4097], there(0, 4097), flags::INJECT), Errno::MSGSIZE.returned());
    assert_eq!(writemsg(side, &from, there(0, 4095), 0), Errno::INVAL.returned());
    for refused in [flags::FENCE, flags::TRIGGER] {
        assert_eq!(writemsg(side, &from, there(0, 4096), refused), Errno::BADFLAGS.returned());
    }
    assert_eq!(close(mr), 0);
    assert!(memory[..4096].iter().all(|byte| *byte == 7) && memory[4096..] == [0; 4096]);
    pair.close();
}

#[test]
fn a_peer_s_memory_is_written_and_read() {
    let pair = pair();
    let mut memory = vec![0_u8; 100_000];
    let mr = register(pair.domain, &mut memory, flags::REMOTE_READ | flags::REMOTE_WRITE);
    // SAFETY: the region that was registered.
    let key = unsafe { (*mr).key };
    // Two's regions are with the domain's first endpoint, whichever is asked for.
    for (near, far) in [(&pair.one, &pair.two), (&pair.two, &pair.one)] {
        let from: Vec<u8> = (0..50_000_u32).map(|at| at as u8).collect();
        assert_eq!(near.rma_write(&from, 1000, key), 0);
        let (written, _) = near.wait(far);
        assert_eq!((written.op_context, written.flags), (context(2), flags::RMA | flags::WRITE));
        let mut into = vec![0; 49_990];
        assert_eq!(near.rma_read(&mut into, 1010, key), 0);
        let (read, _) = near.wait(far);
        assert_eq!((read.op_context, read.flags), (context(1), flags::RMA | flags::READ));
        assert!(into == from[10..]);
    }
    let mut into = [0; 8];
    assert_eq!(pair.one.rma_read(&mut into, 99_999, key), 0);
    assert_eq!(pair.one.wait_error(&pair.two).err, Errno::INVAL.0, "past the end");
    assert_eq!(close(mr), 0);
    assert_eq!(pair.one.rma_read(&mut into, 0, key), 0);
    assert_eq!(pair.one.wait_error(&pair.two).err, Errno::NOKEY.0, "closed");
    pair.close();
}

#[test]
fn a_write_with_a_number_is_told_to_the_peer() {
    let mut pair = pair();
    let mut memory = vec![0_u8; 100_000];
    let mr = register(pair.domain, &mut memory, flags::REMOTE_WRITE);
    // SAFETY: the region that was registered.
    let key = unsafe { (*mr).key };
    let from = vec![7_u8; 50_000];
    for (length, number) in [(50_000, 1_u64), (8, 0xffff_ffff), (0, 3)] {
        let (near, far) = (&pair.one, &pair.two);
        // SAFETY: an endpoint, and memory that is kept until it is written.
        let written = unsafe {
            let writedata = (*(*near.ep).rma).writedata;
            let from = from.as_ptr().cast();
            writedata(near.ep, from, length, ptr::null_mut(), number, near.peer, 1000, key, context(3))
        };
        assert_eq!(written, 0);
        let (told, source) = far.wait(near);
        let expected = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
        assert_eq!((told.flags, told.data, told.len), (expected, number, length));
        assert_eq!((told.op_context, source), (ptr::null_mut(), far.peer));
        assert_eq!(near.wait(far).0.flags, flags::RMA | flags::WRITE);
    }
    // SAFETY: an endpoint, and bytes for the call.
    let injected = unsafe {
        let rma = &*(*pair.two.ep).rma;
        (rma.injectdata)(pair.two.ep, from.as_ptr().cast(), 16, 4, pair.two.peer, 0, key)
    };
    assert_eq!((injected, pair.one.wait(&pair.two).0.data), (0, 4));
    // To oneself, and one that fails: the peer hears nothing of it.
    pair.one.peer = pair.one.own;
    // SAFETY: an endpoint, and bytes for the call.
    unsafe {
        let rma = &*(*pair.one.ep).rma;
        assert_eq!((rma.injectdata)(pair.one.ep, from.as_ptr().cast(), 16, 5, pair.one.own, 0, key), 0);
        assert_eq!((rma.injectdata)(pair.one.ep, from.as_ptr().cast(), 16, 6, pair.one.own, 0, key + 1), 0);
        assert_eq!((rma.injectdata)(pair.one.ep, from.as_ptr().cast(), 16, 7, pair.one.own, 0, key), 0);
    }
    let numbers = [0; 2].map(|_| pair.one.wait(&pair.two).0.data);
    assert_eq!(numbers, [5, 7]);
    assert_eq!(close(mr), 0);
    assert!(memory[1000..51_000].iter().chain(&memory[..16]).all(|byte| *byte == 7));
    pair.close();
}
