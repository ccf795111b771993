//! The owner: receives that were posted, messages that came before their receive,
//! and a completion queue. One thread; C reaches it by the context of its objects.
#![allow(unsafe_code)] // Called by the provider, and calls it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::domain::FidAv;
use lmt_fi::abi::endpoint::FidEp;
use lmt_fi::abi::eq::{CqAttr, CqErrEntry, FidCq};
use lmt_fi::abi::fabric::{FidDomain, FidFabric};
use lmt_fi::abi::fid::{CLASS_CQ, CLASS_SRX_CTX, Fid, RxAttr};
use lmt_fi::abi::peer::{
    FidPeerCq, FidPeerSrx, GetAddr, OpsCqOwner, OpsSrxOwner, OpsSrxPeer, PeerCqContext, PeerMatchAttr,
    PeerRxEntry, PeerSrxContext,
};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};

use crate::harness::{
    Side, bind, close, context, enable, free, getinfo, insert, name_of, open_av, open_domain, open_ep,
    open_side,
};

/// Nothing here takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// By which number the owner knows the sender (`FI_AV_USER_ID`).
pub const SENDER: FiAddr = 0x1234_5678_9a00;

/// A receive, or a message without one.
#[repr(C)]
struct Held {
    entry: PeerRxEntry,
    piece: libc::iovec,
    ignore: u64,
}

/// What was written to the owner's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    pub context: *mut c_void,
    pub flags: u64,
    pub bytes: usize,
    pub data: u64,
    pub tag: u64,
    pub source: FiAddr,
    /// Bytes that were cut off, and why it failed.
    pub failure: Option<(usize, c_int)>,
}

/// What the owner knows.
#[derive(Default)]
struct Known {
    posted: Vec<*mut Held>,
    unexpected: Vec<*mut Held>,
    told: VecDeque<Told>,
    /// So many questions are answered with `-FI_ENOMEM`, and so many completions
    /// with `-FI_EAGAIN`.
    refusals: u32,
    full: u32,
    /// Entries that are out.
    entries: usize,
    /// What is inserted into which vector when the next completion is written.
    inserts: Option<(*mut FidAv, Vec<u8>)>,
}

/// An owner above one endpoint, and an ordinary endpoint that sends to it.
pub struct Owner {
    pub fabric: *mut FidFabric,
    pub domain: *mut FidDomain,
    pub sender: Side,
    pub ep: *mut FidEp,
    pub cq: *mut FidCq,
    pub av: *mut FidAv,
    pub srx: *mut FidEp,
    known: Box<RefCell<Known>>,
    /// What the provider is given; it keeps their addresses.
    peer_cq: *mut FidPeerCq,
    peer_srx: *mut FidPeerSrx,
}

static CQ_OPS: OpsCqOwner = OpsCqOwner { size: size_of::<OpsCqOwner>(), write, writeerr };
pub static SRX_OPS: OpsSrxOwner = OpsSrxOwner {
    size: size_of::<OpsSrxOwner>(),
    get_msg: Some(get_msg),
    get_tag: Some(get_tag),
    queue_msg: Some(queue),
    queue_tag: Some(queue),
    foreach_unspec_addr: Some(foreach_unspec_addr),
    free_entry: Some(free_entry),
};

fn known_of(fid: &Fid) -> &RefCell<Known> {
    // SAFETY: the context that `Owner::open` has given its objects, which it outlives.
    unsafe { &*fid.context.cast::<RefCell<Known>>() }
}

unsafe extern "C" fn write(
    cq: *mut FidPeerCq,
    context: *mut c_void,
    flags: u64,
    bytes: usize,
    _buf: *mut c_void,
    data: u64,
    tag: u64,
    source: FiAddr,
) -> isize {
    // SAFETY: the owner's queue.
    let mut known = known_of(unsafe { &(*cq).fid }).borrow_mut();
    if known.full > 0 {
        known.full -= 1;
        return Errno::AGAIN.returned();
    }
    known.told.push_back(Told { context, flags, bytes, data, tag, source, failure: None });
    let inserts = known.inserts.take();
    drop(known);
    if let Some((av, name)) = inserts {
        insert(av, &name, SENDER, lmt_fi::abi::flags::AV_USER_ID);
    }
    0
}

unsafe extern "C" fn writeerr(cq: *mut FidPeerCq, entry: *const CqErrEntry) -> isize {
    // SAFETY: the owner's queue.
    let mut known = known_of(unsafe { &(*cq).fid }).borrow_mut();
    // SAFETY: an entry for the length of the call.
    let &CqErrEntry { op_context, flags, len, data, tag, olen, err, .. } = unsafe { &*entry };
    let failure = Some((olen, err));
    let (context, bytes, source) = (op_context, len, ADDR_UNSPEC);
    known.told.push_back(Told { context, flags, bytes, data, tag, source, failure });
    0
}

fn matches(receive: &Held, message: &PeerRxEntry) -> bool {
    let kind = flags::TAGGED | flags::MSG;
    let same_kind = receive.entry.flags & kind == message.flags & kind;
    let same_tag = receive.entry.tag | receive.ignore == message.tag | receive.ignore;
    let same_source = receive.entry.addr == ADDR_UNSPEC || receive.entry.addr == message.addr;
    same_kind && same_tag && same_source
}

unsafe fn get(
    srx: *mut FidPeerSrx,
    attr: *mut PeerMatchAttr,
    out: *mut *mut PeerRxEntry,
    kind: u64,
) -> c_int {
    // SAFETY: the owner's receive context.
    let mut known = known_of(unsafe { &(*srx).ep_fid.fid }).borrow_mut();
    if known.refusals > 0 {
        known.refusals -= 1;
        return Errno::NOMEM.returned_int();
    }
    // SAFETY: attributes for the length of the call.
    let PeerMatchAttr { addr, msg_size, tag } = unsafe { *attr };
    let message = entry(srx, addr, tag, kind, ptr::null_mut());
    // SAFETY: receives that are held are the owner's alone.
    let at = known.posted.iter().position(|held| unsafe { matches(&**held, &message) });
    let (held, got) = match at {
        Some(at) => (known.posted.remove(at), 0),
        None => (hold(&mut known, message, &mut [], 0), Errno::NOENT.returned_int()),
    };
    // SAFETY: as above.
    unsafe { (*held).entry.msg_size = msg_size };
    // SAFETY: room for a pointer.
    unsafe { *out = held.cast() };
    got
}

unsafe extern "C" fn get_tag(
    srx: *mut FidPeerSrx,
    attr: *mut PeerMatchAttr,
    out: *mut *mut PeerRxEntry,
) -> c_int {
    // SAFETY: the same promises.
    unsafe { get(srx, attr, out, flags::TAGGED) }
}

unsafe extern "C" fn get_msg(
    srx: *mut FidPeerSrx,
    attr: *mut PeerMatchAttr,
    out: *mut *mut PeerRxEntry,
) -> c_int {
    // SAFETY: the same promises.
    unsafe { get(srx, attr, out, flags::MSG) }
}

unsafe extern "C" fn queue(entry: *mut PeerRxEntry) -> c_int {
    // SAFETY: an entry of this owner's.
    let known = known_of(unsafe { &(*(*entry).srx).ep_fid.fid });
    known.borrow_mut().unexpected.push(entry.cast());
    0
}

unsafe extern "C" fn free_entry(entry: *mut PeerRxEntry) {
    // SAFETY: an entry of this owner's.
    let known = known_of(unsafe { &(*(*entry).srx).ep_fid.fid });
    known.borrow_mut().entries -= 1;
    // SAFETY: made by `hold`, given back once.
    drop(unsafe { Box::from_raw(entry.cast::<Held>()) });
}

unsafe extern "C" fn foreach_unspec_addr(srx: *mut FidPeerSrx, get_addr: GetAddr) {
    // SAFETY: the owner's receive context.
    let unexpected = known_of(unsafe { &(*srx).ep_fid.fid }).borrow().unexpected.clone();
    for held in unexpected {
        // SAFETY: entries that are queued are the owner's alone.
        let entry = unsafe { &mut (*held).entry };
        if entry.addr == ADDR_UNSPEC {
            // SAFETY: the provider's function with an entry that it has queued.
            entry.addr = unsafe { get_addr(held.cast()) };
        }
    }
}

fn entry(srx: *mut FidPeerSrx, addr: FiAddr, tag: u64, kind: u64, context: *mut c_void) -> PeerRxEntry {
    PeerRxEntry {
        srx,
        addr,
        msg_size: 0,
        tag,
        cq_data: 0,
        flags: kind | flags::RECV | flags::COMPLETION,
        context,
        count: 0,
        desc: ptr::null_mut(),
        peer_context: ptr::null_mut(),
        owner_context: ptr::null_mut(),
        iov: ptr::null_mut(),
    }
}

/// Memory for an entry, until it is given back.
fn hold(known: &mut Known, entry: PeerRxEntry, into: &mut [u8], ignore: u64) -> *mut Held {
    known.entries += 1;
    let piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let held = Box::into_raw(Box::new(Held { entry, piece, ignore }));
    // SAFETY: just made.
    unsafe { (*held).entry.iov = &raw mut (*held).piece };
    // SAFETY: the same.
    unsafe { (*held).entry.count = 1 };
    held
}

/// What the flags of a receive's completion are.
pub const fn user_addresses(kind: u64) -> u64 {
    kind | flags::RECV
}

/// `fi_cq_open` with an owner's queue.
pub fn open_owned_cq(domain: *mut FidDomain, peer_cq: *mut FidPeerCq) -> Result<*mut FidCq, c_int> {
    // SAFETY: zeros are valid for all its fields.
    let mut attr: CqAttr = unsafe { std::mem::zeroed() };
    attr.flags = flags::PEER;
    let mut context = PeerCqContext { size: size_of::<PeerCqContext>(), cq: peer_cq };
    let mut cq = ptr::null_mut();
    // SAFETY: a domain, attributes, room for a pointer and an owner's context.
    let opened =
        unsafe { ((*(*domain).ops).cq_open)(domain, &raw mut attr, &raw mut cq, (&raw mut context).cast()) };
    if opened == 0 { Ok(cq) } else { Err(opened) }
}

/// `fi_srx_context` with these flags and an owner's receive context.
pub fn open_owned_srx(
    domain: *mut FidDomain,
    op_flags: u64,
    srx: *mut FidPeerSrx,
) -> Result<*mut FidEp, c_int> {
    // SAFETY: zeros are valid for all its fields.
    let mut attr: RxAttr = unsafe { std::mem::zeroed() };
    attr.op_flags = op_flags;
    let mut context = PeerSrxContext { size: size_of::<PeerSrxContext>(), srx };
    let mut out = ptr::null_mut();
    // SAFETY: a domain, attributes, room for a pointer and an owner's context.
    let opened =
        unsafe { ((*(*domain).ops).srx_ctx)(domain, &raw mut attr, &raw mut out, (&raw mut context).cast()) };
    if opened == 0 { Ok(out) } else { Err(opened) }
}

/// An owner's receive context with this table.
pub fn peer_srx(context: *mut c_void, owner_ops: *const OpsSrxOwner) -> FidPeerSrx {
    let fid = Fid { fclass: CLASS_SRX_CTX, context, ops: ptr::null() };
    let ep_fid = FidEp {
        fid,
        ops: ptr::null(),
        cm: ptr::null(),
        msg: ptr::null(),
        rma: ptr::null(),
        tagged: ptr::null(),
        atomic: ptr::null(),
        collective: ptr::null(),
    };
    FidPeerSrx { ep_fid, owner_ops, peer_ops: ptr::null() }
}

impl Owner {
    /// An owner that knows the sender already.
    pub fn open() -> Self {
        let owner = Self::open_unknowing();
        owner.insert_sender();
        owner
    }

    /// One that does not.
    pub fn open_unknowing() -> Self {
        let info = getinfo(|hints| hints.caps = flags::MSG | flags::TAGGED | flags::PEER | flags::AV_USER_ID)
            .expect("an offer");
        let (fabric, domain) = open_domain(info);
        let mut sender = open_side(domain, info, 0);
        let known = Box::new(RefCell::new(Known::default()));
        let context: *mut c_void = (&raw const *known).cast_mut().cast();
        let fid = Fid { fclass: CLASS_CQ, context, ops: ptr::null() };
        let peer_cq = Box::into_raw(Box::new(FidPeerCq { fid, owner_ops: &raw const CQ_OPS }));
        let peer_srx = Box::into_raw(Box::new(peer_srx(context, &raw const SRX_OPS)));
        let (ep, av) = (open_ep(domain, info), open_av(domain));
        let cq = open_owned_cq(domain, peer_cq).expect("a queue");
        let srx = open_owned_srx(domain, flags::PEER, peer_srx).expect("a receive context");
        assert_eq!((bind(ep, av, 0), bind(ep, cq, flags::SEND | flags::RECV)), (0, 0));
        assert_eq!((bind(ep, srx, 0), enable(ep)), (0, 0));
        sender.peer = sender.insert(&name_of(ep));
        free(info);
        Self { fabric, domain, sender, ep, cq, av, srx, known, peer_cq, peer_srx }
    }

    /// Tells the endpoint of the sender.
    pub fn insert_sender(&self) {
        let number = insert(self.av, &self.sender.name(), SENDER, flags::AV_USER_ID);
        assert_eq!(number, 0, "it is sent to by the vector's own number");
    }

    fn peer_ops(&self) -> &OpsSrxPeer {
        // SAFETY: the provider's table, which it has put there.
        unsafe { &*(*self.peer_srx).peer_ops }
    }

    /// Takes out a message that came before its receive.
    fn take(&self, wanted: &Held) -> Option<*mut Held> {
        let mut known = self.known.borrow_mut();
        // SAFETY: entries that are queued are the owner's alone.
        let at = known.unexpected.iter().position(|held| unsafe { matches(wanted, &(**held).entry) })?;
        Some(known.unexpected.remove(at))
    }

    fn wanted(&self, kind: u64, from: FiAddr, tag: u64, ignore: u64, number: usize) -> Held {
        let piece = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Held { entry: entry(self.peer_srx, from, tag, kind, context(number)), piece, ignore }
    }

    /// A receive of the owner's user.
    pub fn receive(&self, kind: u64, into: &mut [u8], from: FiAddr, tag: u64, ignore: u64, number: usize) {
        let wanted = self.wanted(kind, from, tag, ignore, number);
        let Some(held) = self.take(&wanted) else {
            let mut known = self.known.borrow_mut();
            let held = hold(&mut known, wanted.entry, into, ignore);
            return known.posted.push(held);
        };
        {
            // SAFETY: out of the queue, it is the owner's alone.
            let held = unsafe { &mut *held };
            held.piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
            held.entry.context = context(number);
        }
        let PeerOps { start, .. } = self.ops_for(kind);
        // SAFETY: the provider's function with an entry that it has queued.
        assert_eq!(unsafe { start(held.cast()) }, 0);
    }

    /// Drops a message that came before its receive; false without one.
    pub fn discard(&self, kind: u64, tag: u64) -> bool {
        let Some(held) = self.take(&self.wanted(kind, ADDR_UNSPEC, tag, 0, 0)) else { return false };
        let PeerOps { start, discard } = self.ops_for(kind);
        // SAFETY: the provider's function with an entry that it has queued.
        assert_eq!(unsafe { discard(held.cast()) }, 0);
        // SAFETY: the same; it is for no message any more.
        let again = unsafe { (start(held.cast()), discard(held.cast())) };
        assert_eq!(again, (Errno::INVAL.returned_int(), Errno::INVAL.returned_int()));
        // SAFETY: it is the owner's again.
        unsafe { free_entry(held.cast()) };
        true
    }

    fn ops_for(&self, kind: u64) -> PeerOps {
        let OpsSrxPeer { start_msg, start_tag, discard_msg, discard_tag, .. } = *self.peer_ops();
        if kind == flags::TAGGED {
            PeerOps { start: start_tag, discard: discard_tag }
        } else {
            PeerOps { start: start_msg, discard: discard_msg }
        }
    }

    /// Takes a receive back that nothing has matched; false without one.
    pub fn take_back(&self, number: usize) -> bool {
        let mut known = self.known.borrow_mut();
        // SAFETY: receives that are held are the owner's alone.
        let is_it = |held: &*mut Held| unsafe { (**held).entry.context == context(number) };
        let Some(at) = known.posted.iter().position(is_it) else { return false };
        let held = known.posted.remove(at);
        drop(known);
        // SAFETY: as above.
        unsafe { free_entry(held.cast()) };
        true
    }

    /// Answers the next questions with "no memory", and the next completions with
    /// "no room".
    pub fn refuse(&self, questions: u32, completions: u32) {
        let mut known = self.known.borrow_mut();
        (known.refusals, known.full) = (questions, completions);
    }

    /// Inserts the sender while the next completion is being written.
    pub fn insert_sender_from_within(&self) {
        self.known.borrow_mut().inserts = Some((self.av, self.sender.name()));
    }

    /// Tags and sources of the messages that came before their receives.
    pub fn unexpected(&self) -> Vec<(u64, FiAddr)> {
        let known = self.known.borrow();
        // SAFETY: entries that are queued are the owner's alone.
        known.unexpected.iter().map(|held| unsafe { ((**held).entry.tag, (**held).entry.addr) }).collect()
    }

    /// How many entries are out.
    pub fn entries(&self) -> usize {
        self.known.borrow().entries
    }

    /// Moves both sides' messages once; what the queue was told.
    pub fn progress(&self) -> Option<Told> {
        // SAFETY: queues; they are asked for nothing, but make progress.
        unsafe { ((*(*self.cq).ops).read)(self.cq, ptr::null_mut(), 0) };
        // SAFETY: the same.
        unsafe { ((*(*self.sender.cq).ops).read)(self.sender.cq, ptr::null_mut(), 0) };
        self.known.borrow_mut().told.pop_front()
    }

    /// The next completion.
    pub fn wait(&self) -> Told {
        let start = Instant::now();
        loop {
            if let Some(told) = self.progress() {
                return told;
            }
            assert!(start.elapsed() < TIME_LIMIT, "nothing came in time");
        }
    }

    /// Progress until so many messages wait for their receives.
    pub fn until_unexpected(&self, count: usize) {
        let start = Instant::now();
        while self.known.borrow().unexpected.len() < count {
            assert_eq!(self.progress(), None);
            assert!(start.elapsed() < TIME_LIMIT, "{} of {count} came", self.unexpected().len());
        }
    }

    /// The sender's next completion, which is to be this one's.
    pub fn wait_sent(&self, number: usize) {
        let start = Instant::now();
        loop {
            match self.sender.read() {
                Ok((entry, _)) => return assert_eq!(entry.op_context, context(number)),
                Err(error) => assert_eq!(error, Errno::AGAIN.returned()),
            }
            assert_eq!(self.progress(), None);
            assert!(start.elapsed() < TIME_LIMIT, "a send did not end in time");
        }
    }

    /// Closes everything in the order in which lnx does.
    pub fn close(self) {
        assert_eq!(close(self.ep), 0);
        assert_eq!((close(self.srx), close(self.cq), close(self.av)), (0, 0, 0));
        self.sender.close();
        assert_eq!((close(self.domain), close(self.fabric)), (0, 0));
        assert_eq!(self.known.borrow().entries, 0, "every entry came back");
        // SAFETY: made by `Box::into_raw`, and used by nobody any more.
        drop(unsafe { (Box::from_raw(self.peer_cq), Box::from_raw(self.peer_srx)) });
    }
}

/// What the owner asks the provider for.
struct PeerOps {
    start: unsafe extern "C" fn(*mut PeerRxEntry) -> c_int,
    discard: unsafe extern "C" fn(*mut PeerRxEntry) -> c_int,
}
