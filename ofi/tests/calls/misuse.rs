//! What cannot be done is refused with the error that the man pages give for it.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::c_int;
use std::ptr;

use lmt_fi::abi::domain::{AvAttr, FidAv};
use lmt_fi::abi::endpoint::{FidEp, Msg};
use lmt_fi::abi::eq::{CntrAttr, CqAttr, EqAttr, FidCq, WAIT_SET};
use lmt_fi::abi::fabric::{DomainAttr, EpAttr, FidDomain, Info};
use lmt_fi::abi::fid::{CONTROL_ENABLE, RxAttr, TxAttr};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use crate::harness::{
    Pair, bind, close, context, enable, free, getinfo, open_av, open_cq, open_domain, open_ep, pair,
};

#[test]
fn nothing_is_offered_for_what_cannot_be() {
    let no_data = Err(Errno::NODATA.returned_int());
    assert_eq!(getinfo(|info| info.caps = 1 << 5), no_data, "multicast");
    assert_eq!(getinfo(|info| info.addr_format = 2), no_data, "Internet addresses");
    let first = getinfo(|_| {}).expect("an offer");
    // SAFETY: what `getinfo` gave.
    let mut tx: TxAttr = unsafe { *(*first).tx_attr };
    tx.inject_size = 1 << 30;
    assert_eq!(getinfo(|info| info.tx_attr = &raw mut tx), no_data);
    free(first);
}

#[test]
fn nothing_is_offered_to_who_has_not_asked_for_it() {
    let mut info = ptr::null_mut();
    // SAFETY: the provider and room for a pointer.
    let got = unsafe {
        ((*lmt_fi::fi_prov_ini()).getinfo)(
            crate::harness::VERSION,
            ptr::null(),
            ptr::null(),
            0,
            ptr::null(),
            &raw mut info,
        )
    };
    let asked =
        ["LMT_FI", "FI_PROVIDER", "I_MPI_OFI_PROVIDER"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(got == Errno::NODATA.returned_int() || asked);
}

/// The parts of an offer.
struct Parts<'a> {
    caps: &'a mut u64,
    tx: &'a mut TxAttr,
    rx: &'a mut RxAttr,
    ep: &'a mut EpAttr,
    domain: &'a mut DomainAttr,
}

/// An offer that `change` has made one of something else opens nothing.
fn opens_nothing<T>(
    what: &str,
    open: impl FnOnce(*mut Info, *mut *mut T) -> c_int,
    change: impl FnOnce(Parts<'_>),
) {
    let info = getinfo(|_| {}).expect("an offer");
    // SAFETY: what `getinfo` gave, here and below; nobody else has it.
    let offer = unsafe { &mut *info };
    change(Parts {
        caps: &mut offer.caps,
        // SAFETY: as above.
        tx: unsafe { &mut *offer.tx_attr },
        // SAFETY: as above.
        rx: unsafe { &mut *offer.rx_attr },
        // SAFETY: as above.
        ep: unsafe { &mut *offer.ep_attr },
        // SAFETY: as above.
        domain: unsafe { &mut *offer.domain_attr },
    });
    let mut opened = ptr::null_mut();
    assert_eq!(open(info, &raw mut opened), Errno::INVAL.returned_int(), "{what}");
    assert!(opened.is_null(), "{what}");
    free(info);
}

#[test]
fn nothing_is_opened_that_was_not_offered() {
    let info = getinfo(|_| {}).expect("an offer");
    let (fabric, domain) = open_domain(info);
    free(info);
    // SAFETY: a domain, an offer with changes and room for a pointer.
    let ep = |info, out| unsafe { ((*(*domain).ops).endpoint)(domain, info, out, ptr::null_mut()) };
    opens_nothing("multicast", ep, |of| *of.caps |= 1 << 5);
    opens_nothing("stream", ep, |of| of.ep.ep_type = 1);
    opens_nothing("protocol", ep, |of| of.ep.protocol = 7);
    opens_nothing("two sending contexts", ep, |of| of.ep.tx_ctx_cnt = 2);
    opens_nothing("long injects", ep, |of| of.tx.inject_size = 1 << 20);
    opens_nothing("ordered reads", ep, |of| of.tx.msg_order = 1);
    opens_nothing("fences", ep, |of| of.tx.op_flags = flags::FENCE);
    opens_nothing("ordered completions", ep, |of| of.rx.comp_order = 1);
    opens_nothing("many pieces", ep, |of| of.rx.iov_limit = 1000);
    // SAFETY: a fabric, an offer with changes and room for a pointer.
    let other = |info, out| unsafe { ((*(*fabric).ops).domain)(fabric, info, out, ptr::null_mut()) };
    opens_nothing("progress by itself", other, |of| of.domain.data_progress = 1);
    opens_nothing("long numbers", other, |of| of.domain.cq_data_size = 8);
    opens_nothing("shared contexts", other, |of| of.domain.max_ep_stx_ctx = 1);
    assert_eq!((close(domain), close(fabric)), (0, 0));
}

#[test]
fn closing_in_the_wrong_order_is_refused() {
    let pair = pair();
    let busy = Errno::BUSY.returned_int();
    assert_eq!((close(pair.fabric), close(pair.domain)), (busy, busy));
    assert_eq!((close(pair.one.cq), close(pair.one.av), close(pair.one.sends)), (busy, busy, busy));
    pair.close();
}

#[test]
fn an_endpoint_is_enabled_when_it_has_what_it_needs() {
    let info = getinfo(|_| {}).expect("an offer");
    let (fabric, domain) = open_domain(info);
    let mut ep = ptr::null_mut();
    // SAFETY: a domain, what `getinfo` gave and room for a pointer.
    let opened = unsafe { ((*(*domain).ops).endpoint)(domain, info, &raw mut ep, ptr::null_mut()) };
    assert_eq!(opened, 0);
    free(info);
    let (av, cq) = (open_av(domain), open_cq(domain, 0));
    // SAFETY: an endpoint; nothing is to be sent.
    let sent = unsafe { ((*(*ep).tagged).inject)(ep, ptr::null(), 0, 0, 0) };
    assert_eq!(sent, Errno::OPBADSTATE.returned());
    assert_eq!(enable(ep), Errno::NOAV.returned_int());
    assert_eq!(bind(ep, av, 0), 0);
    assert_eq!(enable(ep), Errno::NOCQ.returned_int());
    assert_eq!(bind(ep, cq, flags::SEND), 0);
    assert_eq!(enable(ep), Errno::NOCQ.returned_int());
    assert_eq!(bind(ep, cq, flags::PEEK), Errno::BADFLAGS.returned_int());
    assert_eq!(bind(ep, cq, 0), Errno::INVAL.returned_int());
    assert_eq!(bind(ep, cq, flags::SEND), Errno::BUSY.returned_int());
    assert_eq!(bind(ep, cq, flags::RECV), 0);
    assert_eq!(bind::<u8>(ep, ptr::null_mut(), 0), Errno::INVAL.returned_int());
    assert_eq!(enable(ep), 0);
    assert_eq!((close(ep), close(av), close(cq), close(domain), close(fabric)), (0, 0, 0, 0, 0));
}

#[test]
fn an_endpoint_that_only_sends_needs_no_queue_for_receives() {
    let no_queue = Errno::NOCQ.returned_int();
    for (caps, needed, not_enough) in [
        (flags::MSG | flags::SEND, flags::SEND, flags::RECV),
        (flags::TAGGED | flags::RECV, flags::RECV, flags::SEND),
        (flags::RMA | flags::WRITE, flags::SEND, flags::RECV),
    ] {
        let info = getinfo(|info| info.caps = caps).expect("an offer");
        let (fabric, domain) = open_domain(info);
        let ep = open_ep(domain, info);
        free(info);
        let (av, queues) = (open_av(domain), [not_enough, needed].map(|_| open_cq(domain, 0)));
        assert_eq!((bind(ep, av, 0), bind(ep, queues[0], not_enough)), (0, 0));
        assert_eq!(enable(ep), no_queue, "{caps:#x}");
        assert_eq!(bind(ep, queues[1], needed), 0);
        assert_eq!(enable(ep), 0);
        let ep_only = open_only(domain, caps, av, needed, queues[1]);
        assert_eq!((close(ep), close(ep_only), close(av)), (0, 0, 0));
        assert_eq!((queues.map(close), close(domain), close(fabric)), ([0, 0], 0, 0));
    }
}

/// An enabled endpoint with a queue for one direction only.
fn open_only(
    domain: *mut FidDomain,
    caps: u64,
    av: *mut FidAv,
    direction: u64,
    cq: *mut FidCq,
) -> *mut FidEp {
    let info = getinfo(|info| info.caps = caps).expect("an offer");
    let ep = open_ep(domain, info);
    free(info);
    assert_eq!((bind(ep, av, 0), bind(ep, cq, direction), enable(ep)), (0, 0, 0));
    ep
}

#[test]
fn null_pointers_and_addresses_of_nobody_are_refused() {
    let Pair { domain, one, .. } = &pair();
    let invalid = Errno::INVAL.returned();
    let null = ptr::null_mut();
    // SAFETY: null where an endpoint is to be, or an endpoint of the provider; no
    // memory is lent.
    unsafe {
        let tagged = &*(*one.ep).tagged;
        assert_eq!((tagged.inject)(null, ptr::null(), 0, 0, 0), invalid);
        assert_eq!((tagged.inject)(one.ep.cast(), ptr::null(), 5, one.peer, 0), invalid);
        assert_eq!((tagged.inject)(one.ep, ptr::null(), 0, 99, 0), invalid);
        assert_eq!((tagged.send)(one.ep, ptr::null(), 0, null.cast(), ADDR_UNSPEC, 0, context(1)), invalid);
        assert_eq!((tagged.recvmsg)(one.ep, ptr::null(), 0), invalid);
        assert_eq!((tagged.sendmsg)(one.ep, ptr::null(), 0), invalid);
        let long = [0_u8; 5000];
        let injected = (tagged.inject)(one.ep, long.as_ptr().cast(), long.len(), one.peer, 0);
        assert_eq!(injected, Errno::MSGSIZE.returned());
        assert_eq!(((*(*one.ep).ops).cancel)(null.cast(), null.cast()), invalid);
        assert_eq!(
            ((*(*one.ep).fid.ops).control)(one.ep.cast(), 99, null.cast()),
            Errno::NOSYS.returned_int()
        );
        assert_eq!(
            ((*(*one.ep).fid.ops).control)(ptr::null_mut(), CONTROL_ENABLE, null.cast()),
            Errno::INVAL.returned_int()
        );
        assert_eq!(
            ((*(**domain).ops).cq_open)(*domain, ptr::null_mut(), ptr::null_mut(), null.cast()),
            Errno::INVAL.returned_int()
        );
        assert_eq!(((*(*one.cq).ops).read)(one.cq, ptr::null_mut(), 1), invalid);
        assert_eq!(((*(*one.cq).ops).readerr)(one.cq, ptr::null_mut(), 0), invalid);
        let mut number = 7;
        let garbage = [0xff_u8; 64];
        let av = &*(*one.av).ops;
        let inserted = (av.insert)(one.av, garbage.as_ptr().cast(), 1, &raw mut number, 0, ptr::null_mut());
        assert_eq!((inserted, number), (0, ADDR_UNSPEC));
        let mut bytes = 64;
        assert_eq!((av.lookup)(one.av, 99, ptr::null_mut(), &raw mut bytes), Errno::INVAL.returned_int());
        let mut nobody = 99;
        assert_eq!((av.remove)(one.av, &raw mut nobody, 1, 0), Errno::INVAL.returned_int());
    }
}

#[test]
fn wrong_attributes_are_refused() {
    let Pair { fabric, domain, one, .. } = &pair();
    let (invalid, flags_of, nosys) =
        (Errno::INVAL.returned_int(), Errno::BADFLAGS.returned_int(), Errno::NOSYS.returned_int());
    // SAFETY: objects of the provider, attributes and room, all alive for the calls;
    // zeros are valid for all fields.
    unsafe {
        let tables = &*(**domain).ops;
        let mut cq = ptr::null_mut();
        let queue = |change: &dyn Fn(&mut CqAttr), cq| {
            let mut attr: CqAttr = std::mem::zeroed();
            change(&mut attr);
            (tables.cq_open)(*domain, &raw mut attr, cq, ptr::null_mut())
        };
        assert_eq!(queue(&|attr| attr.format = 77, &raw mut cq), invalid);
        assert_eq!(queue(&|attr| attr.wait_obj = WAIT_SET, &raw mut cq), nosys);
        assert_eq!(queue(&|attr| attr.flags = flags::READ, &raw mut cq), flags_of);
        assert_eq!(queue(&|_| {}, ptr::null_mut()), invalid);
        let mut cntr = ptr::null_mut();
        let counter = |change: &dyn Fn(&mut CntrAttr), cntr| {
            let mut attr: CntrAttr = std::mem::zeroed();
            change(&mut attr);
            (tables.cntr_open)(*domain, &raw mut attr, cntr, ptr::null_mut())
        };
        assert_eq!(counter(&|attr| attr.events = 9, &raw mut cntr), invalid);
        assert_eq!(counter(&|attr| attr.flags = 1, &raw mut cntr), flags_of);
        assert_eq!(counter(&|attr| attr.wait_obj = WAIT_SET, &raw mut cntr), nosys);
        let mut av = ptr::null_mut();
        let vector = |change: &dyn Fn(&mut AvAttr), av| {
            let mut attr: AvAttr = std::mem::zeroed();
            change(&mut attr);
            (tables.av_open)(*domain, &raw mut attr, av, ptr::null_mut())
        };
        assert_eq!(vector(&|attr| attr.name = c"shared".as_ptr(), &raw mut av), nosys);
        assert_eq!(vector(&|attr| attr.av_type = 9, &raw mut av), invalid);
        assert_eq!(vector(&|attr| attr.flags = flags::WRITE, &raw mut av), flags_of);
        let mut eq = ptr::null_mut();
        let mut attr: EqAttr = std::mem::zeroed();
        attr.flags = flags::READ;
        let events = &*(**fabric).ops;
        assert_eq!((events.eq_open)(*fabric, &raw mut attr, &raw mut eq, ptr::null_mut()), flags_of);
        let mut mr = ptr::null_mut();
        let reg = (*(**domain).mr).reg;
        let fid = domain.cast();
        let none = ptr::null_mut();
        assert_eq!(reg(fid, ptr::null(), 8, flags::SEND, 0, 0, 0, &raw mut mr, none), invalid);
        assert_eq!(reg(fid, ptr::null(), 0, flags::PEEK, 0, 0, 0, &raw mut mr, none), invalid);
        assert_eq!(reg(fid, ptr::null(), 0, flags::SEND, 0, 0, 1, &raw mut mr, none), flags_of);
        let msg = &*(*one.ep).msg;
        let pieces = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; 17];
        let many = (msg.sendv)(one.ep, pieces.as_ptr(), ptr::null_mut(), 17, one.peer, none);
        assert_eq!(many, Errno::INVAL.returned());
        let message = Msg {
            msg_iov: pieces.as_ptr(),
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: one.peer,
            context: none,
            data: 0,
        };
        let refused = Errno::BADFLAGS.returned();
        for flag in [flags::FENCE, flags::PEEK, flags::CLAIM, flags::DISCARD, flags::MULTICAST] {
            assert_eq!((msg.sendmsg)(one.ep, &raw const message, flag), refused, "{flag:#x}");
        }
        assert_eq!((msg.recvmsg)(one.ep, &raw const message, flags::PEEK), refused);
        assert_eq!((msg.recvmsg)(one.ep, &raw const message, flags::TRIGGER), refused);
    }
}

#[test]
fn objects_of_other_kinds_and_domains_are_not_bound() {
    let (first, second) = (pair(), pair());
    let ep = first.one.ep;
    assert_eq!(bind(ep, second.one.cq, flags::SEND), Errno::DOMAIN.returned_int());
    assert_eq!(bind(ep, second.one.av, 0), Errno::DOMAIN.returned_int());
    assert_eq!(bind(ep, second.one.sends, flags::READ), Errno::DOMAIN.returned_int());
    assert_eq!(bind(ep, first.domain, 0), Errno::NOSYS.returned_int());
    for kinds in [flags::COMPLETION, flags::REMOTE_READ, flags::SEND | flags::REMOTE_WRITE] {
        assert_eq!(bind(ep, first.one.sends, kinds), Errno::BADFLAGS.returned_int());
    }
    first.close();
    second.close();
}
