//! Memory regions, reads and writes.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;

use lmt_fi::abi::domain::FidMr;
use lmt_fi::abi::{Errno, flags};

use crate::harness::{Pair, Side, close, context, pair};

fn register(pair: &Pair, memory: &mut [u8], access: u64) -> *mut FidMr {
    let mut mr = ptr::null_mut();
    // SAFETY: a domain, memory that the tests keep until it is closed, and room.
    let registered = unsafe {
        let (address, bytes) = (memory.as_mut_ptr().cast(), memory.len());
        ((*(*pair.domain).mr).reg)(
            pair.domain.cast(),
            address,
            bytes,
            access,
            0,
            0,
            0,
            &raw mut mr,
            ptr::null_mut(),
        )
    };
    assert_eq!(registered, 0);
    mr
}

impl Side {
    fn rma_read(&self, into: &mut [u8], offset: u64, key: u64) -> isize {
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

    fn rma_write(&self, from: &[u8], offset: u64, key: u64) -> isize {
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

#[test]
fn a_peer_s_memory_is_written_and_read() {
    let pair = pair();
    let mut memory = vec![0_u8; 100_000];
    let mr = register(&pair, &mut memory, flags::REMOTE_READ | flags::REMOTE_WRITE);
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
fn a_region_allows_what_it_was_registered_for() {
    let pair = pair();
    let mut memory = [7_u8; 64];
    let mr = register(&pair, &mut memory, flags::REMOTE_READ);
    // SAFETY: the region that was registered.
    let key = unsafe { (*mr).key };
    assert_eq!(pair.two.rma_write(b"no", 0, key), 0);
    assert_eq!(pair.two.wait_error(&pair.one).err, Errno::ACCES.0);
    let mut into = [0; 64];
    assert_eq!(pair.two.rma_read(&mut into, 0, key), 0);
    pair.two.wait(&pair.one);
    assert_eq!(into, [7; 64]);
    assert_eq!(close(mr), 0);
    pair.close();
}
