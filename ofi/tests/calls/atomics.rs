//! Atomic operations, within a process and between several.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::c_int;
use std::ptr;

use lmt_fi::abi::atomic::{AtomicAttr, COMPARE_ATOMIC, FETCH_ATOMIC, Ioc, MsgAtomic, RmaIoc};
use lmt_fi::abi::domain::FidMr;
use lmt_fi::abi::{Errno, flags};

use crate::harness::{Pair, Side, close, context, pair};
use crate::remote::register;

pub const UINT64: c_int = 7;
pub const DOUBLE_COMPLEX: c_int = 11;
pub const LONG_DOUBLE: c_int = 12;
pub const INT128: c_int = 14;
pub const SUM: c_int = 2;
pub const READ: c_int = 10;
const WRITE: c_int = 11;
pub const CSWAP: c_int = 12;

pub fn key_of(mr: *mut FidMr) -> u64 {
    // SAFETY: a region of the provider.
    unsafe { (*mr).key }
}

/// An exposed array of words.
fn exposed(pair: &Pair, words: &mut [u64]) -> *mut FidMr {
    // SAFETY: words are bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) };
    register(pair.domain, bytes, flags::REMOTE_READ | flags::REMOTE_WRITE)
}

impl Side {
    pub fn atomic<T>(&self, operands: &[T], offset: u64, key: u64, datatype: c_int, op: c_int) -> isize {
        let (ep, from, count) = (self.ep, operands.as_ptr().cast(), operands.len());
        // SAFETY: an endpoint, and operands for the call.
        unsafe {
            let write = (*(*ep).atomic).write;
            write(ep, from, count, ptr::null_mut(), self.peer, offset, key, datatype, op, context(3))
        }
    }

    pub fn fetch<T>(
        &self,
        operands: &[T],
        result: &mut [T],
        offset: u64,
        key: u64,
        datatype: c_int,
        op: c_int,
    ) -> isize {
        let (ep, from, to, null) =
            (self.ep, operands.as_ptr().cast(), result.as_mut_ptr().cast(), ptr::null_mut());
        let count = result.len();
        // SAFETY: an endpoint, operands for the call, and room that the tests keep.
        unsafe {
            let readwrite = (*(*ep).atomic).readwrite;
            readwrite(ep, from, count, null, to, null, self.peer, offset, key, datatype, op, context(4))
        }
    }

    pub fn compare(&self, new: &[u64], compare: &[u64], result: &mut [u64], key: u64, op: c_int) -> isize {
        let (ep, null, count) = (self.ep, ptr::null_mut(), new.len());
        let (new, compare, result) =
            (new.as_ptr().cast(), compare.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: an endpoint, operands for the call, and room that the tests keep.
        unsafe {
            let compwrite = (*(*ep).atomic).compwrite;
            compwrite(
                ep,
                new,
                count,
                null,
                compare,
                null,
                result,
                null,
                self.peer,
                0,
                key,
                UINT64,
                op,
                context(5),
            )
        }
    }
}

#[test]
fn a_peer_s_elements_are_changed_fetched_and_swapped() {
    let pair = pair();
    let mut memory = [5_u64, 6, 7, 8];
    let mr = exposed(&pair, &mut memory);
    let key = key_of(mr);
    for (near, far) in [(&pair.one, &pair.two), (&pair.two, &pair.one)] {
        let mut before = [0_u64; 4];
        assert_eq!(near.fetch(&[], &mut before, 0, key, UINT64, READ), 0);
        let (fetched, _) = near.wait(far);
        assert_eq!((fetched.op_context, fetched.flags), (context(4), flags::ATOMIC | flags::READ));
        assert_eq!(near.atomic(&[10_u64, 20], 8, key, UINT64, SUM), 0);
        let (added, _) = near.wait(far);
        assert_eq!((added.op_context, added.flags), (context(3), flags::ATOMIC | flags::WRITE));
        let mut old = [0_u64; 2];
        assert_eq!(near.fetch(&[1_u64, 2], &mut old, 16, key, UINT64, SUM), 0);
        near.wait(far);
        assert_eq!(old, [before[2] + 20, before[3]]);
        let mut there = [0];
        assert_eq!(near.compare(&[100], &[before[0] + 1], &mut there, key, CSWAP), 0);
        near.wait(far);
        assert_eq!(there, [before[0]], "not equal: nothing is swapped");
        assert_eq!(near.compare(&[before[0] + 1], &[before[0]], &mut there, key, CSWAP), 0);
        near.wait(far);
        let mut after = [0_u64; 4];
        assert_eq!(near.fetch(&[], &mut after, 0, key, UINT64, READ), 0);
        near.wait(far);
        assert_eq!(after, [before[0] + 1, before[1] + 10, before[2] + 21, before[3] + 2]);
    }
    assert_eq!(close(mr), 0);
    pair.close();
}

#[test]
fn an_endpoint_s_own_memory_is_as_a_peer_s() {
    let mut pair = pair();
    let mut memory = [1_u64];
    let mr = exposed(&pair, &mut memory);
    pair.one.peer = pair.one.own;
    let mut old = [0_u64];
    assert_eq!(pair.one.fetch(&[41_u64], &mut old, 0, key_of(mr), UINT64, SUM), 0);
    pair.one.wait(&pair.two);
    assert_eq!(old, [1]);
    assert_eq!(pair.one.fetch(&[], &mut old, 8, key_of(mr), UINT64, READ), 0);
    assert_eq!(pair.one.wait_error(&pair.two).err, Errno::INVAL.0);
    assert_eq!(close(mr), 0);
    assert_eq!(memory, [42]);
    pair.close();
}

#[test]
fn lists_messages_and_injected_operations() {
    let pair = pair();
    let mut memory = [0_u64; 4];
    let mr = exposed(&pair, &mut memory);
    let (one, two, key) = (&pair.one, &pair.two, key_of(mr));
    let (mut first, mut rest) = ([1_u64], [2_u64, 3]);
    let list =
        [Ioc { addr: first.as_mut_ptr().cast(), count: 1 }, Ioc { addr: rest.as_mut_ptr().cast(), count: 2 }];
    let target = RmaIoc { addr: 8, count: 3, key };
    let mut msg = MsgAtomic {
        msg_iov: list.as_ptr(),
        desc: ptr::null_mut(),
        iov_count: 2,
        addr: one.peer,
        rma_iov: &raw const target,
        rma_iov_count: 1,
        datatype: UINT64,
        op: SUM,
        context: context(6),
        data: 0,
    };
    let mut old = [9_u64; 3];
    let mut into = Ioc { addr: old.as_mut_ptr().cast(), count: 3 };
    let null = ptr::null_mut();
    // SAFETY: an endpoint, structures for the calls, and room that is kept.
    unsafe {
        let ops = &*(*one.ep).atomic;
        assert_eq!((ops.writemsg)(one.ep, &raw const msg, flags::COMPLETION), 0);
        one.wait(two);
        assert_eq!((ops.readwritemsg)(one.ep, &raw const msg, &raw mut into, null, 1, 0), 0);
        assert_eq!(one.wait(two).0.op_context, context(6));
        assert_eq!(old, [1, 2, 3]);
        assert_eq!((ops.inject)(one.ep, first.as_ptr().cast(), 1, one.peer, 0, key, UINT64, WRITE), 0);
        assert_eq!(
            (ops.writev)(one.ep, list.as_ptr(), null.cast(), 2, one.peer, 8, key, UINT64, SUM, context(7)),
            0
        );
        // What was injected is told to nobody; in order, it is there with the next.
        assert_eq!(one.wait(two).0.op_context, context(7));
        msg.rma_iov_count = 2;
        assert_eq!((ops.writemsg)(one.ep, &raw const msg, 0), Errno::INVAL.returned());
        msg.rma_iov_count = 1;
        assert_eq!((ops.writemsg)(one.ep, &raw const msg, flags::TAGGED), Errno::OPNOTSUPP.returned());
        msg.iov_count = 1;
        assert_eq!((ops.writemsg)(one.ep, &raw const msg, 0), Errno::INVAL.returned(), "another number");
        assert_eq!((ops.writemsg)(one.ep, ptr::null(), 0), Errno::INVAL.returned());
    }
    assert_eq!(close(mr), 0);
    assert_eq!(memory, [1, 3, 6, 9]);
    pair.close();
}

#[test]
fn elements_of_16_bytes_and_such_as_are_not_aligned() {
    let pair = pair();
    let mut memory = [0_u64; 6];
    let mr = exposed(&pair, &mut memory);
    let (one, two, key) = (&pair.one, &pair.two, key_of(mr));
    assert_eq!(one.atomic(&[1_u128 << 64 | 5, 7], 0, key, INT128, SUM), 0);
    one.wait(two);
    assert_eq!(one.atomic(&[[1.5_f64, -2.0]], 32, key, DOUBLE_COMPLEX, SUM), 0);
    one.wait(two);
    assert_eq!(one.atomic(&[0x0102_u64], 17, key, UINT64, SUM), 0);
    one.wait(two);
    assert_eq!(close(mr), 0);
    assert_eq!(memory, [5, 1, 7 + 0x01_0200, 0, 1.5_f64.to_bits(), (-2.0_f64).to_bits()]);
    pair.close();
}

#[test]
fn what_cannot_be_done_is_refused_or_ends_with_the_target_s_error() {
    let pair = pair();
    let mut memory = [0_u64; 4];
    let mr = exposed(&pair, &mut memory);
    let mut other = [0_u8; 64];
    let readable = register(pair.domain, &mut other, flags::REMOTE_READ);
    let (one, two, key) = (&pair.one, &pair.two, key_of(mr));
    let many = vec![0_u64; 2000];
    assert_eq!(one.atomic(&[1_u64], 0, key, LONG_DOUBLE, SUM), Errno::OPNOTSUPP.returned());
    assert_eq!(one.atomic(&[1_u64], 0, key, UINT64, 99), Errno::OPNOTSUPP.returned());
    assert_eq!(one.atomic(&[1_u64], 0, key, UINT64, READ), Errno::OPNOTSUPP.returned());
    assert_eq!(one.atomic(&many, 0, key, UINT64, SUM), Errno::MSGSIZE.returned());
    assert_eq!(one.atomic::<u64>(&[], 0, key, UINT64, SUM), Errno::INVAL.returned(), "none");
    let null = ptr::null_mut();
    // SAFETY: an endpoint or null, and pointers that are null.
    unsafe {
        let ops = &*(*one.ep).atomic;
        let inval = Errno::INVAL.returned();
        assert_eq!((ops.write)(one.ep, null, 1, null, one.peer, 0, key, UINT64, SUM, null), inval);
        assert_eq!((ops.write)(null.cast(), null, 1, null, one.peer, 0, key, UINT64, SUM, null), inval);
        assert_eq!((ops.write)(one.ep, many.as_ptr().cast(), 1, null, 99, 0, key, UINT64, SUM, null), inval);
        let from = many.as_ptr().cast();
        assert_eq!(
            (ops.readwrite)(one.ep, from, 1, null, null, null, one.peer, 0, key, UINT64, SUM, null),
            inval
        );
        assert_eq!(
            (ops.writev)(one.ep, ptr::null(), null.cast(), 2, one.peer, 0, key, UINT64, SUM, null),
            inval
        );
        assert_eq!(
            (ops.inject)(one.ep, from, 1000, one.peer, 0, key, UINT64, SUM),
            Errno::MSGSIZE.returned()
        );
    }
    for (offset, key, error) in [
        (32, key, Errno::INVAL),
        (u64::MAX, key, Errno::INVAL),
        (0, key + 77, Errno::NOKEY),
        (0, key_of(readable), Errno::ACCES),
    ] {
        assert_eq!(one.atomic(&[1_u64], offset, key, UINT64, SUM), 0);
        let failed = one.wait_error(two);
        assert_eq!((failed.op_context, failed.err), (context(3), error.0), "{offset}");
    }
    assert_eq!((close(mr), close(readable)), (0, 0));
    assert_eq!(one.atomic(&[1_u64], 0, key, UINT64, SUM), 0);
    assert_eq!(one.wait_error(two).err, Errno::NOKEY.0, "closed");
    assert_eq!(memory, [0; 4]);
    pair.close();
}

#[test]
fn what_there_is_can_be_asked() {
    let pair = pair();
    let ep = pair.one.ep;
    let mut count = 0;
    let mut attr = AtomicAttr { count: 0, size: 0 };
    // SAFETY: an endpoint, a domain, and room.
    unsafe {
        let ops = &*(*ep).atomic;
        assert_eq!(((ops.writevalid)(ep, UINT64, SUM, &raw mut count), count), (0, 1024));
        assert_eq!((ops.readwritevalid)(ep, UINT64, READ, &raw mut count), 0);
        assert_eq!((ops.compwritevalid)(ep, UINT64, SUM, &raw mut count), Errno::OPNOTSUPP.returned_int());
        assert_eq!((ops.writevalid)(ep, LONG_DOUBLE, SUM, &raw mut count), Errno::OPNOTSUPP.returned_int());
        assert_eq!((ops.writevalid)(ep, UINT64, SUM, ptr::null_mut()), Errno::INVAL.returned_int());
        let query = (*(*pair.domain).ops).query_atomic;
        assert_eq!(query(pair.domain, INT128, CSWAP, &raw mut attr, COMPARE_ATOMIC), 0);
        assert_eq!((attr.count, attr.size), (512, 16));
        assert_eq!(query(pair.domain, UINT64, READ, &raw mut attr, FETCH_ATOMIC), 0);
        let unsupported = Errno::OPNOTSUPP.returned_int();
        assert_eq!(query(pair.domain, UINT64, READ, &raw mut attr, 0), unsupported);
        assert_eq!(query(pair.domain, UINT64, SUM, &raw mut attr, flags::TAGGED), unsupported);
        let both = FETCH_ATOMIC | COMPARE_ATOMIC;
        assert_eq!(query(pair.domain, UINT64, SUM, &raw mut attr, both), Errno::BADFLAGS.returned_int());
    }
    pair.close();
}

/// More operations than one endpoint serves or has in flight at a time.
#[test]
fn many_operations_under_way_end_in_order() {
    const MANY: usize = 5000;
    let pair = pair();
    let mut memory = [0_u64];
    let mr = exposed(&pair, &mut memory);
    let (one, two, key) = (&pair.one, &pair.two, key_of(mr));
    let mut old = vec![[u64::MAX]; MANY];
    let mut ended = 0;
    for result in &mut old {
        while one.fetch(&[1_u64], result, 0, key, UINT64, SUM) == Errno::AGAIN.returned() {
            one.wait(two);
            ended += 1;
        }
    }
    for _ in ended..MANY {
        one.wait(two);
    }
    assert!(old.iter().enumerate().all(|(at, result)| result[0] == at as u64));
    assert_eq!(close(mr), 0);
    assert_eq!(memory, [MANY as u64]);
    pair.close();
}
