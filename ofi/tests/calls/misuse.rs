//! What cannot be done is refused with the error that the man pages give for it.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;

use lmt_fi::abi::fabric::{CONTROL_ENABLE, TxAttr};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use crate::harness::{
    Pair, bind, close, context, enable, free, getinfo, open_av, open_cq, open_domain, pair,
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
