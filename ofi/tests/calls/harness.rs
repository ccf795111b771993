//! Two endpoints of the provider in one process, called through its tables as
//! libfabric's inline functions do.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::domain::{AvAttr, FidAv};
use lmt_fi::abi::endpoint::FidEp;
use lmt_fi::abi::eq::{
    CQ_FORMAT_TAGGED, CntrAttr, CqAttr, CqErrEntry, CqTaggedEntry, FidCntr, FidCq, WAIT_UNSPEC,
};
use lmt_fi::abi::errno::Errno;
use lmt_fi::abi::fabric::{FabricAttr, FidDomain, FidFabric, Info};
use lmt_fi::abi::fid::{CONTROL_ENABLE, Fid};
use lmt_fi::abi::provider::version;
use lmt_fi::abi::{FiAddr, flags};

/// The version of libfabric's interface that the tests are written for.
pub const VERSION: u32 = version(1, 17);
/// Nothing here takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// `fi_getinfo` with these hints, and a name that asks for this provider.
pub fn getinfo(change: impl FnOnce(&mut Info)) -> Result<*mut Info, c_int> {
    let name = CString::new("lmt").expect("no zero in it");
    let mut fabric = FabricAttr {
        fabric: ptr::null_mut(),
        name: ptr::null_mut(),
        prov_name: name.as_ptr().cast_mut(),
        prov_version: 0,
        api_version: 0,
    };
    // SAFETY: null pointers and zeros are valid for all its fields.
    let mut hints: Info = unsafe { std::mem::zeroed() };
    hints.fabric_attr = &raw mut fabric;
    change(&mut hints);
    let mut info = ptr::null_mut();
    // SAFETY: the provider, hints and room for a pointer, all alive for the call.
    let got = unsafe {
        ((*lmt_fi::fi_prov_ini()).getinfo)(
            VERSION,
            ptr::null(),
            ptr::null(),
            0,
            &raw const hints,
            &raw mut info,
        )
    };
    if got == 0 { Ok(info) } else { Err(got) }
}

/// Frees what [`getinfo`] gave, as libfabric does: piece by piece.
pub fn free(info: *mut Info) {
    // SAFETY: it came from `getinfo` and is used no more.
    let parts = unsafe { &*info };
    // SAFETY: as above.
    let (domain, fabric) = unsafe { ((*parts.domain_attr).name, (*parts.fabric_attr).name) };
    let pieces: [*mut c_void; 10] = [
        parts.src_addr,
        parts.dest_addr,
        domain.cast(),
        fabric.cast(),
        parts.tx_attr.cast(),
        parts.rx_attr.cast(),
        parts.ep_attr.cast(),
        parts.domain_attr.cast(),
        parts.fabric_attr.cast(),
        info.cast(),
    ];
    for piece in pieces {
        // SAFETY: allocated by calloc(3) or strdup(3), and freed once.
        unsafe { libc::free(piece) };
    }
}

/// One endpoint and what is bound to it.
pub struct Side {
    pub ep: *mut FidEp,
    pub cq: *mut FidCq,
    pub av: *mut FidAv,
    pub sends: *mut FidCntr,
    pub receives: *mut FidCntr,
    /// The number of the other endpoint, and of this one.
    pub peer: FiAddr,
    pub own: FiAddr,
}

/// Two of them in a domain.
pub struct Pair {
    pub fabric: *mut FidFabric,
    pub domain: *mut FidDomain,
    pub one: Side,
    pub two: Side,
}

/// `fi_close`.
pub fn close<T>(object: *mut T) -> c_int {
    let fid = object.cast::<Fid>();
    // SAFETY: an object of the provider, which begins with a fid.
    unsafe { ((*(*fid).ops).close)(fid) }
}

/// `fi_ep_bind`.
pub fn bind<T>(ep: *mut FidEp, other: *mut T, with: u64) -> c_int {
    // SAFETY: objects of the provider.
    unsafe { ((*(*ep).fid.ops).bind)(ep.cast(), other.cast(), with) }
}

/// `fi_enable`.
pub fn enable(ep: *mut FidEp) -> c_int {
    // SAFETY: an endpoint of the provider.
    unsafe { ((*(*ep).fid.ops).control)(ep.cast(), CONTROL_ENABLE, ptr::null_mut()) }
}

/// Opens a fabric and a domain.
pub fn open_domain(info: *mut Info) -> (*mut FidFabric, *mut FidDomain) {
    let (mut fabric, mut domain) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: what `getinfo` gave, and room for pointers.
    let opened =
        unsafe { ((*lmt_fi::fi_prov_ini()).fabric)((*info).fabric_attr, &raw mut fabric, ptr::null_mut()) };
    assert_eq!(opened, 0);
    // SAFETY: as above.
    let opened = unsafe { ((*(*fabric).ops).domain)(fabric, info, &raw mut domain, ptr::null_mut()) };
    assert_eq!(opened, 0);
    (fabric, domain)
}

pub fn open_cq(domain: *mut FidDomain, format: c_int) -> *mut FidCq {
    let mut attr = CqAttr {
        size: 0,
        flags: 0,
        format,
        wait_obj: WAIT_UNSPEC,
        signaling_vector: 0,
        wait_cond: 0,
        wait_set: ptr::null_mut(),
    };
    let mut cq = ptr::null_mut();
    // SAFETY: a domain, attributes and room for a pointer.
    let opened = unsafe { ((*(*domain).ops).cq_open)(domain, &raw mut attr, &raw mut cq, ptr::null_mut()) };
    assert_eq!(opened, 0);
    cq
}

pub fn open_av(domain: *mut FidDomain) -> *mut FidAv {
    let mut attr = AvAttr {
        av_type: 0,
        rx_ctx_bits: 0,
        count: 0,
        ep_per_node: 0,
        name: ptr::null(),
        map_addr: ptr::null_mut(),
        flags: 0,
    };
    let mut av = ptr::null_mut();
    // SAFETY: a domain, attributes and room for a pointer.
    let opened = unsafe { ((*(*domain).ops).av_open)(domain, &raw mut attr, &raw mut av, ptr::null_mut()) };
    assert_eq!(opened, 0);
    av
}

pub fn open_cntr(domain: *mut FidDomain) -> *mut FidCntr {
    let mut attr = CntrAttr { events: 0, wait_obj: WAIT_UNSPEC, wait_set: ptr::null_mut(), flags: 0 };
    let mut cntr = ptr::null_mut();
    // SAFETY: a domain, attributes and room for a pointer.
    let opened =
        unsafe { ((*(*domain).ops).cntr_open)(domain, &raw mut attr, &raw mut cntr, ptr::null_mut()) };
    assert_eq!(opened, 0);
    cntr
}

/// An endpoint with everything bound, whose peers are still to be inserted.
pub fn open_side(domain: *mut FidDomain, info: *mut Info, queue_flags: u64) -> Side {
    let ep = open_ep(domain, info);
    let (cq, av) = (open_cq(domain, CQ_FORMAT_TAGGED), open_av(domain));
    let (sends, receives) = (open_cntr(domain), open_cntr(domain));
    assert_eq!(bind(ep, av, 0), 0);
    assert_eq!(bind(ep, cq, flags::SEND | flags::RECV | queue_flags), 0);
    assert_eq!((bind(ep, sends, flags::SEND), bind(ep, receives, flags::RECV)), (0, 0));
    assert_eq!(enable(ep), 0);
    Side { ep, cq, av, sends, receives, peer: 0, own: 0 }
}

/// `fi_getname`.
pub fn name_of(ep: *mut FidEp) -> Vec<u8> {
    let mut bytes = 0;
    // SAFETY: an endpoint; no room, and a number that says so.
    let asked = unsafe { ((*(*ep).cm).getname)(ep.cast(), ptr::null_mut(), &raw mut bytes) };
    assert_eq!(asked, Errno::TOOSMALL.returned_int());
    let mut name = vec![0; bytes];
    // SAFETY: room for as many bytes as `bytes` says.
    let got = unsafe { ((*(*ep).cm).getname)(ep.cast(), name.as_mut_ptr().cast(), &raw mut bytes) };
    assert_eq!((got, bytes), (0, name.len()));
    name
}

/// `fi_av_insert` of one name, with the caller's own number if the flags say so.
pub fn insert(av: *mut FidAv, name: &[u8], mut number: FiAddr, with: u64) -> FiAddr {
    // SAFETY: a vector, one name and room for its number.
    let inserted =
        unsafe { ((*(*av).ops).insert)(av, name.as_ptr().cast(), 1, &raw mut number, with, ptr::null_mut()) };
    assert_eq!(inserted, 1);
    number
}

/// `fi_endpoint`.
pub fn open_ep(domain: *mut FidDomain, info: *mut Info) -> *mut FidEp {
    let mut ep = ptr::null_mut();
    // SAFETY: a domain, what `getinfo` gave and room for a pointer.
    let opened = unsafe { ((*(*domain).ops).endpoint)(domain, info, &raw mut ep, ptr::null_mut()) };
    assert_eq!(opened, 0);
    ep
}

impl Side {
    pub fn name(&self) -> Vec<u8> {
        name_of(self.ep)
    }

    /// `fi_av_insert`.
    pub fn insert(&self, name: &[u8]) -> FiAddr {
        insert(self.av, name, 0, 0)
    }

    /// `fi_cq_readfrom`, once.
    pub fn read(&self) -> Result<(CqTaggedEntry, FiAddr), isize> {
        // SAFETY: zeros are valid for all its fields.
        let mut entry: CqTaggedEntry = unsafe { std::mem::zeroed() };
        let mut source = 0;
        // SAFETY: a queue and room for one entry and one source.
        let read =
            unsafe { ((*(*self.cq).ops).readfrom)(self.cq, (&raw mut entry).cast(), 1, &raw mut source) };
        if read == 1 { Ok((entry, source)) } else { Err(read) }
    }

    /// `fi_cq_readerr`.
    pub fn read_error(&self) -> CqErrEntry {
        // SAFETY: zeros are valid for all its fields.
        let mut entry: CqErrEntry = unsafe { std::mem::zeroed() };
        // SAFETY: a queue and room for one entry.
        let read = unsafe { ((*(*self.cq).ops).readerr)(self.cq, &raw mut entry, 0) };
        assert_eq!(read, 1);
        entry
    }

    fn until<T>(
        &self,
        other: &Self,
        mut look: impl FnMut(Result<(CqTaggedEntry, FiAddr), isize>) -> Option<T>,
    ) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look(self.read()) {
                return found;
            }
            // SAFETY: a queue; it is asked for nothing, but makes progress.
            unsafe { ((*(*other.cq).ops).read)(other.cq, ptr::null_mut(), 0) };
            assert!(start.elapsed() < TIME_LIMIT, "nothing came in time");
        }
    }

    /// The next completion, while the other side makes progress too.
    pub fn wait(&self, other: &Self) -> (CqTaggedEntry, FiAddr) {
        self.until(other, |read| match read {
            Ok(completion) => Some(completion),
            Err(error) if error == Errno::AGAIN.returned() => None,
            Err(error) => panic!("reading ended with {error}"),
        })
    }

    /// The next failure.
    pub fn wait_error(&self, other: &Self) -> CqErrEntry {
        self.until(other, |read| match read {
            Err(error) if error == Errno::AVAIL.returned() => Some(()),
            Err(error) if error == Errno::AGAIN.returned() => None,
            other => panic!("a failure is to come: {:?}", other.map(|_| ())),
        });
        self.read_error()
    }

    /// `fi_cntr_read`.
    pub fn count(cntr: *mut FidCntr) -> u64 {
        // SAFETY: a counter.
        unsafe { ((*(*cntr).ops).read)(cntr) }
    }

    pub fn close(self) {
        assert_eq!(close(self.ep), 0);
        assert_eq!((close(self.sends), close(self.receives)), (0, 0));
        assert_eq!((close(self.cq), close(self.av)), (0, 0));
    }
}

/// Calls until it is not asked to try again, with progress of `side` in between: of the other
/// side, if that is in this process.
pub fn until_taken(side: &Side, mut call: impl FnMut() -> isize) -> isize {
    let start = Instant::now();
    loop {
        let returned = call();
        if returned != Errno::AGAIN.returned() {
            return returned;
        }
        // SAFETY: a queue; it is asked for nothing, but makes progress.
        unsafe { ((*(*side.cq).ops).read)(side.cq, ptr::null_mut(), 0) };
        assert!(start.elapsed() < TIME_LIMIT, "it was never taken");
    }
}

/// Two endpoints that know each other and themselves.
pub fn pair() -> Pair {
    share_handoff_cells(0, |_| {})
}

pub fn share_handoff_cells(queue_flags: u64, change: impl FnOnce(&mut Info)) -> Pair {
    let info = getinfo(change).expect("an offer");
    let (fabric, domain) = open_domain(info);
    let mut one = open_side(domain, info, queue_flags);
    let mut two = open_side(domain, info, queue_flags);
    free(info);
    (one.own, one.peer) = (one.insert(&one.name()), one.insert(&two.name()));
    (two.own, two.peer) = (two.insert(&two.name()), two.insert(&one.name()));
    Pair { fabric, domain, one, two }
}

impl Pair {
    /// Closes everything in order.
    pub fn close(self) {
        self.one.close();
        self.two.close();
        assert_eq!((close(self.domain), close(self.fabric)), (0, 0));
    }
}

/// A context, which is only handed back.
pub fn context(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}
