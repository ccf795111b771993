//! fi_getinfo(3), fi_fabric(3), fi_domain(3), fi_endpoint(3), fi_cm(3): objects and
//! their options.
#![allow(unsafe_code)] // Reads what C gave.

use std::ffi::CStr;
use std::ptr;

use lmt_fi::abi::endpoint::{OPT_LEVEL_ENDPOINT, OPT_MIN_MULTI_RECV};
use lmt_fi::abi::eq::{CQ_FORMAT_TAGGED, WAIT_NONE};
use lmt_fi::abi::fabric::{EP_RDM, EpAttr, FabricAttr, Info};
use lmt_fi::abi::fid::{CONTROL_GETOPSFLAG, CONTROL_SETOPSFLAG, TxAttr};
use lmt_fi::abi::{Errno, flags};

use super::finish;
use crate::link::Link;
use crate::side::{Ask, CAPABILITIES, Side, VERSION, call, close, hints, zeroed};

const NO_DATA: i32 = Errno::NODATA.returned_int();

/// What `fi_getinfo` answers to changed hints; an offer is freed.
fn answer(side: &Side, change: impl FnOnce(&mut Info)) -> Result<(), i32> {
    let mut hints = hints(CAPABILITIES);
    change(&mut hints);
    let info = side.fi.getinfo(side.provider, VERSION, &mut hints)?;
    // SAFETY: what `fi_getinfo` gave, used no more.
    unsafe { (side.fi.freeinfo)(info) };
    Ok(())
}

pub fn getinfo(side: Side) -> Link {
    let offer = side.offer();
    // SAFETY: what `fi_getinfo` gave has this part, and those below.
    let fabric = unsafe { *offer.fabric_attr };
    // SAFETY: as above.
    let domain = unsafe { *offer.domain_attr };
    // SAFETY: as above.
    let ep = unsafe { *offer.ep_attr };
    // SAFETY: as above.
    let tx = unsafe { *offer.tx_attr };
    // SAFETY: a string of libfabric.
    assert_eq!(unsafe { CStr::from_ptr(fabric.prov_name) }, side.provider);
    assert!(!fabric.name.is_null() && !domain.name.is_null());
    assert_eq!((ep.ep_type, offer.caps & CAPABILITIES), (EP_RDM, CAPABILITIES));
    assert_eq!(offer.mode, 0, "no mode was offered by the caller");
    assert!(tx.inject_size > 0 && tx.iov_limit >= 2 && domain.cq_data_size >= 4);
    assert!(ep.max_msg_size >= 1 << 30);
    // SAFETY: it has no precondition.
    let version = unsafe { (side.fi.version)() };
    // SAFETY: what it gave.
    let copy = unsafe { (side.fi.dupinfo)(side.info) };
    assert!(version >= VERSION);
    // SAFETY: a copy of what it gave.
    assert_eq!(unsafe { *copy }.caps, offer.caps);
    // SAFETY: used no more.
    unsafe { (side.fi.freeinfo)(copy) };
    assert_eq!(side.fi.text(Errno::TRUNC.0), "Truncation error");
    assert_eq!(answer(&side, |_| {}), Ok(()));
    assert_eq!(answer(&side, |hints| hints.caps |= 1 << 5), Err(NO_DATA), "FI_MULTICAST");
    assert_eq!(answer(&side, |hints| hints.addr_format = 2), Err(NO_DATA), "FI_SOCKADDR_IN");
    let mut connected: EpAttr = zeroed();
    connected.ep_type = 1;
    assert_eq!(answer(&side, |hints| hints.ep_attr = &raw mut connected), Err(NO_DATA), "FI_EP_MSG");
    let mut long: TxAttr = zeroed();
    long.inject_size = 1 << 30;
    assert_eq!(answer(&side, |hints| hints.tx_attr = &raw mut long), Err(NO_DATA), "inject_size");
    side.close()
}

pub fn close_order(mut side: Side) -> Link {
    let busy = Errno::BUSY.returned_int();
    side.open(Ask::default());
    assert_eq!(close(side.fabric), busy, "the fabric has a domain");
    assert_eq!(close(side.domain), busy, "the domain has objects");
    assert_eq!(close(side.cq), busy, "the queue has an endpoint");
    assert_eq!(close(side.av), busy, "the address vector has an endpoint");
    assert_eq!(close(side.sends), busy, "the counter has an endpoint");
    finish(side)
}

pub fn enable(mut side: Side) -> Link {
    side.ep = side.open_ep();
    side.cq = side.open_cq(CQ_FORMAT_TAGGED, WAIT_NONE).expect("a queue");
    side.av = side.open_av(0, 0).expect("an address vector");
    assert_eq!(side.bind(side.cq, flags::SEND | flags::RECV), 0);
    assert_eq!(side.enable(), Errno::NOAV.returned_int(), "there is no address vector");
    assert_eq!(side.bind(side.av, 0), 0);
    assert_eq!(side.enable(), 0);
    assert_eq!(close(side.ep), 0);
    side.ep = side.open_ep();
    assert_eq!(side.bind(side.av, 0), 0);
    assert_eq!(side.enable(), Errno::NOCQ.returned_int(), "there is no queue");
    assert_eq!((close(side.ep), close(side.cq), close(side.av)), (0, 0, 0));
    side.close()
}

pub fn names(mut side: Side) -> Link {
    side.open(Ask::default());
    let too_small = Errno::TOOSMALL.returned_int();
    let whole = side.name();
    let (got, bytes, _) = side.getname(side.ep, 0);
    assert_eq!((got, bytes), (too_small, whole.len()));
    let (got, bytes, part) = side.getname(side.ep, whole.len() - 1);
    assert_eq!((got, bytes), (too_small, whole.len()));
    // What fits is written; a string may end in its zero.
    assert_eq!(part[..part.len() - 1], whole[..part.len() - 1]);
    let (got, bytes, all) = side.getname(side.ep, whole.len() + 9);
    assert_eq!((got, bytes, &all), (0, whole.len(), &whole));
    finish(side)
}

pub fn options(mut side: Side) -> Link {
    side.open(Ask::default());
    let (least, mut now, mut bytes) = (1000_usize, 0_usize, size_of::<usize>());
    let (level, option) = (OPT_LEVEL_ENDPOINT, OPT_MIN_MULTI_RECV);
    let set = call!(side.ep, ops ! setopt(level, option, (&raw const least).cast(), size_of::<usize>()));
    let got = call!(side.ep, ops ! getopt(level, option, (&raw mut now).cast(), &raw mut bytes));
    assert_eq!((set, got, now, bytes), (0, 0, least, size_of::<usize>()));
    let unknown = Errno::NOPROTOOPT.returned_int();
    assert_eq!(call!(side.ep, ops ! getopt(level, 999, (&raw mut now).cast(), &raw mut bytes)), unknown);
    assert_eq!(call!(side.ep, ops ! setopt(9, option, (&raw const least).cast(), 8)), unknown);
    finish(side)
}

/// The default flags of an endpoint's operations: `FI_GETOPSFLAG`, `FI_SETOPSFLAG`.
pub fn operation_flags(mut side: Side) -> Link {
    side.open(Ask { queue_flags: flags::SELECTIVE_COMPLETION, ..Ask::default() });
    let mut asked = flags::SEND | flags::COMPLETION;
    assert_eq!(side.control(side.ep, CONTROL_SETOPSFLAG, &raw mut asked), 0);
    let mut got = flags::SEND;
    assert_eq!(side.control(side.ep, CONTROL_GETOPSFLAG, &raw mut got), 0);
    assert_ne!(got & flags::COMPLETION, 0);
    let mut neither = flags::COMPLETION;
    let invalid = Errno::INVAL.returned_int();
    assert_eq!(side.control(side.ep, CONTROL_SETOPSFLAG, &raw mut neither), invalid, "no direction");
    assert_eq!(side.control(side.ep, 9999, ptr::null_mut::<u8>()), Errno::NOSYS.returned_int());
    finish(side)
}

/// A node and a service name the address of an endpoint to come, or one to talk to.
pub fn named(side: Side) -> Link {
    let lengths = |node: Option<&CStr>, service: Option<&CStr>, with: u64, source: Option<&[u8]>| {
        let text = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
        let (mut hints, mut info) = (hints(CAPABILITIES), ptr::null_mut());
        let mut fabric: FabricAttr = zeroed();
        fabric.prov_name = side.provider.as_ptr().cast_mut();
        hints.fabric_attr = &raw mut fabric;
        if let Some(source) = source {
            (hints.src_addr, hints.src_addrlen) = (source.as_ptr().cast_mut().cast(), source.len());
        }
        // SAFETY: strings, hints and room for a pointer, all alive for the call.
        let got = unsafe {
            (side.fi.getinfo)(VERSION, text(node), text(service), with, &raw const hints, &raw mut info)
        };
        if got != 0 {
            return Err(got);
        }
        // SAFETY: what `fi_getinfo` gave.
        let given = unsafe { *info };
        let bytes = given.src_addrlen;
        let source = match given.src_addr.is_null() {
            true => Vec::new(),
            // SAFETY: as many bytes as it says.
            false => unsafe { std::slice::from_raw_parts(given.src_addr.cast::<u8>(), bytes) }.to_vec(),
        };
        assert_eq!(given.dest_addr.is_null(), given.dest_addrlen == 0);
        // SAFETY: used no more.
        unsafe { (side.fi.freeinfo)(info) };
        Ok((source, given.dest_addrlen > 0))
    };
    let (service, node) = (Some(c"4711"), Some(c"localhost"));
    let (source, has_destination) = lengths(None, service, flags::SOURCE, None).expect("an offer");
    assert!(!source.is_empty() && !has_destination, "a source");
    assert!(lengths(node, service, 0, None).expect("an offer").1, "a destination");
    assert!(lengths(node, None, 0, None).expect("an offer").1, "a destination without a service");
    assert!(!lengths(node, None, flags::SOURCE, None).expect("an offer").0.is_empty());
    assert_eq!(lengths(None, None, 0, Some(&source)).expect("an offer").0, source, "as it was given");
    assert_eq!(lengths(None, None, flags::SOURCE, None), Err(NO_DATA));
    side.close()
}
