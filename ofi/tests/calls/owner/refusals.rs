//! What an owner gets wrong, or asks for in vain.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::CStr;
use std::ptr;

use lmt_fi::abi::eq::{CntrAttr, WAIT_UNSPEC};
use lmt_fi::abi::peer::{FidPeerCq, OpsSrxOwner};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::matching::{Owner, SRX_OPS, open_owned_cq, open_owned_srx, peer_srx};
use crate::harness::{bind, close, enable, free, getinfo, open_ep, pair};

#[test]
fn what_is_offered_is_called_shm_where_an_owner_asks_and_only_there() {
    let asked = |caps| {
        let info = getinfo(|hints| hints.caps = caps).expect("an offer");
        // SAFETY: what `getinfo` gave.
        let names = unsafe { [(*(*info).domain_attr).name, (*(*info).fabric_attr).name] };
        // SAFETY: strings that a zero ends.
        let names = names.map(|name| unsafe { CStr::from_ptr(name) }.to_owned());
        // SAFETY: what `getinfo` gave.
        let got = unsafe { (names, (*info).caps, (*(*info).rx_attr).iov_limit) };
        free(info);
        got
    };
    let (names, caps, limit) = asked(flags::TAGGED | flags::PEER);
    assert_eq!((names, limit), ([c"shm".to_owned(), c"shm".to_owned()], 4));
    assert_eq!(caps & (flags::PEER | flags::AV_USER_ID), flags::PEER);
    let (names, caps, limit) = asked(0);
    assert_eq!((names, limit), ([c"lmt".to_owned(), c"lmt".to_owned()], 16));
    assert_eq!(caps & (flags::PEER | flags::AV_USER_ID), 0);
}

#[test]
fn an_owner_has_the_receives_and_the_queue() {
    let owner = Owner::open();
    let mut into = [0; 8];
    // SAFETY: an endpoint, and memory for the call.
    let received = unsafe {
        let (address, none) = (into.as_mut_ptr().cast(), ptr::null_mut());
        ((*(*owner.ep).tagged).recv)(owner.ep, address, 8, none, ADDR_UNSPEC, 0, 0, none)
    };
    assert_eq!(received, Errno::NOSYS.returned());
    // SAFETY: a queue, and room for what it does not give.
    let read = unsafe { ((*(*owner.cq).ops).read)(owner.cq, into.as_mut_ptr().cast(), 1) };
    assert_eq!(read, Errno::NOSYS.returned());
    // SAFETY: a receive context, which has no receives.
    let posted = unsafe {
        let (address, none) = (into.as_mut_ptr().cast(), ptr::null_mut());
        ((*(*owner.srx).msg).recv)(owner.srx, address, 8, none, ADDR_UNSPEC, none)
    };
    assert_eq!(posted, Errno::NOSYS.returned());
    assert_eq!(bind(owner.ep, owner.srx, 0), Errno::OPBADSTATE.returned_int(), "it is enabled");
    assert_eq!(close(owner.srx), Errno::BUSY.returned_int());
    assert_eq!(close(owner.cq), Errno::BUSY.returned_int());
    owner.close();
}

#[test]
fn what_is_missing_or_unknown_is_refused() {
    let pair = pair();
    let domain = pair.domain;
    assert_eq!(open_owned_cq(domain, ptr::null_mut()).err(), Some(Errno::INVAL.returned_int()));
    // SAFETY: zeros and null pointers are valid for all its fields.
    let mut empty: FidPeerCq = unsafe { std::mem::zeroed() };
    assert_eq!(open_owned_cq(domain, &raw mut empty).err(), Some(Errno::INVAL.returned_int()));
    let mut good = peer_srx(ptr::null_mut(), &raw const SRX_OPS);
    let refused = |flags, srx| open_owned_srx(domain, flags, srx).err();
    assert_eq!(refused(0, &raw mut good), Some(Errno::NOSYS.returned_int()), "not an owner's");
    assert_eq!(refused(flags::PEER, ptr::null_mut()), Some(Errno::INVAL.returned_int()));
    let mut without = peer_srx(ptr::null_mut(), ptr::null());
    assert_eq!(refused(flags::PEER, &raw mut without), Some(Errno::INVAL.returned_int()));
    let lacking = OpsSrxOwner { queue_msg: None, ..SRX_OPS };
    let mut lacking = peer_srx(ptr::null_mut(), &raw const lacking);
    assert_eq!(refused(flags::PEER, &raw mut lacking), Some(Errno::INVAL.returned_int()));
    // As version 1.17 has it.
    let old = OpsSrxOwner { size: 48, ..SRX_OPS };
    let mut old = peer_srx(ptr::null_mut(), &raw const old);
    assert_eq!(refused(flags::PEER, &raw mut old), Some(Errno::NOSYS.returned_int()));
    let mut attr =
        CntrAttr { events: 0, wait_obj: WAIT_UNSPEC, wait_set: ptr::null_mut(), flags: flags::PEER };
    let mut cntr = ptr::null_mut();
    // SAFETY: a domain, attributes and room for a pointer.
    let opened =
        unsafe { ((*(*domain).ops).cntr_open)(domain, &raw mut attr, &raw mut cntr, ptr::null_mut()) };
    assert_eq!(opened, Errno::INVAL.returned_int());
    pair.close();
}

#[test]
fn an_endpoint_with_an_owner_needs_the_owner_s_queue() {
    let pair = pair();
    let info = getinfo(|hints| hints.caps = flags::TAGGED | flags::PEER).expect("an offer");
    let ep = open_ep(pair.domain, info);
    free(info);
    let mut owner = peer_srx(ptr::null_mut(), &raw const SRX_OPS);
    let srx = open_owned_srx(pair.domain, flags::PEER, &raw mut owner).expect("a receive context");
    assert_eq!((bind(ep, pair.one.av, 0), bind(ep, srx, 0)), (0, 0));
    assert_eq!(bind(ep, srx, 0), Errno::BUSY.returned_int());
    assert_eq!(bind(ep, pair.one.cq, flags::SEND | flags::RECV), 0);
    assert_eq!(enable(ep), Errno::NOCQ.returned_int());
    assert_eq!((close(ep), close(srx)), (0, 0));
    pair.close();
}
