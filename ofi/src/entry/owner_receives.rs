//! Receives that another provider matches (fi_peer(3), "Peer SRX"): its receive
//! context, what it is asked, and what it asks for.
#![allow(unsafe_code)] // Called from C, and calls the owner.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use lmt::buffer::Access;
use lmt::{Message, Space};

use super::base::{self, ops};
use super::messages::{kind_of, reports};
use super::objects::{Ep, Vector};
use super::registry::{Handle, Registered};
use super::shared_domain::Shared;
use super::{context_ops, core_version};
use crate::abi::endpoint::FidEp;
use crate::abi::fid::{CLASS_SRX_CTX, Fid, Ops, RxAttr};
use crate::abi::peer::{
    FIRST_VERSION, FidPeerSrx, GetEntry, OpsSrxOwner, OpsSrxPeer, PeerMatchAttr, PeerRxEntry, PeerSrxContext,
    WithEntry,
};
use crate::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::refuse::because;
use crate::state::arrivals::{Arrival, MatchedReceive};
use crate::state::completion::{Entry, Failure, Item};
use crate::state::endpoint::Endpoint;
use crate::state::owner::Owner;
use crate::state::queue::DoneWith;
use crate::state::spaces::{PLAIN, TAGGED};
use crate::state::{CompletionTarget, SharedState};

/// An owner's receive context.
#[derive(Debug)]
pub struct Context {
    domain: Arc<Shared>,
    /// Where the owner has it.
    address: usize,
}

type ContextObject = Object<FidEp, Context>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: base::control);
static PEER: OpsSrxPeer = OpsSrxPeer {
    size: size_of::<OpsSrxPeer>(),
    start_msg,
    start_tag,
    discard_msg: discard,
    discard_tag: discard,
};

/// # Safety
/// `out` is null or room for a pointer, and `context` is null or a `struct
/// fi_peer_srx_context` whose receive context, if not null, stays until this
/// provider's is closed.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    attr: &RxAttr,
    out: *mut *mut FidEp,
    context: *const c_void,
) -> Result<(), Errno> {
    if attr.op_flags & flags::PEER == 0 {
        log::warn(
            Subsystem::EpCtrl,
            format_args!("shared receive contexts are not offered, but for an owner's (FI_PEER)"),
        );
        return Err(Errno::NOSYS);
    }
    // SAFETY: the caller's promise.
    let PeerSrxContext { size, srx } = unsafe { border::read(context.cast()) }?;
    if out.is_null() || srx.is_null() || size < size_of::<PeerSrxContext>() {
        let why = format_args!(
            "an owner's receive context of {size} bytes, or none, or no room for this one; it is to have {}",
            size_of::<PeerSrxContext>()
        );
        return Err(because(Subsystem::EpCtrl, Errno::INVAL, why));
    }
    // SAFETY: not null, and an owner's receive context by the caller's promise.
    unsafe { check(srx) }.inspect_err(|error| {
        log::warn(
            Subsystem::EpCtrl,
            format_args!(
                "an owner's receive context is not of the form that libfabric has had since 2.3: {}",
                error.text()
            ),
        );
    })?;
    // SAFETY: as above; the owner leaves this field to its peer.
    unsafe { (*srx).peer_ops = &raw const PEER };
    domain.domain.lock().receive_contexts += 1;
    let fid = Fid { fclass: CLASS_SRX_CTX, context: ptr::null_mut(), ops: &raw const OPS };
    let head = context_ops::head(fid);
    let inner = Context { domain: Arc::clone(domain), address: srx.expose_provenance() };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, ContextObject::open(head, inner)) }
}

/// # Safety
/// It is an owner's receive context.
unsafe fn check(srx: *mut FidPeerSrx) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let ops = unsafe { (*srx).owner_ops };
    // SAFETY: a table of the owner's begins with its size.
    if unsafe { border::read(ops.cast::<usize>()) }? < size_of::<OpsSrxOwner>() {
        return Err(Errno::NOSYS);
    }
    // SAFETY: as long as our idea of it.
    let OpsSrxOwner { get_msg, get_tag, queue_msg, queue_tag, foreach_unspec_addr, free_entry, .. } =
        unsafe { border::read(ops) }?;
    let [Some(_), Some(get_tag)] = [get_msg, get_tag] else { return Err(Errno::INVAL) };
    if queue_msg.is_none() || queue_tag.is_none() || foreach_unspec_addr.is_none() || free_entry.is_none() {
        return Err(Errno::INVAL);
    }
    match core_version::of_code(get_tag as *const c_void) {
        Some(version) if version < FIRST_VERSION => Err(Errno::NOSYS),
        _ => Ok(()),
    }
}

/// The receive context behind a pointer.
///
/// # Safety
/// It is null or one of this provider that nobody closes during the call.
pub(super) unsafe fn get<'a, P>(context: *const P) -> Result<&'a Context, Errno> {
    // SAFETY: the caller's promise.
    unsafe { ContextObject::get(context) }.map(|object| &object.inner)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a receive context of ours.
    let closed = unsafe { get(fid) }.and_then(|context| {
        let mut state = context.domain.domain.lock();
        let uses = |endpoint: &mut Endpoint| {
            endpoint.owner.as_ref().is_some_and(|owner| owner.context == context.address)
        };
        if state.endpoints.iter_mut().any(uses) {
            log::warn(
                Subsystem::EpCtrl,
                format_args!("a receive context is closed before its endpoints; close those first"),
            );
            return Err(Errno::BUSY);
        }
        state.receive_contexts -= 1;
        Ok(state.shared_state.forget_context(context.address))
    });
    border::int(closed.map(|done_with| {
        // The owner has its entries back before it closes what they belong to.
        done_with.into_iter().for_each(free);
        // SAFETY: C's promise: it is closed once.
        drop(unsafe { ContextObject::close(fid) });
    }))
}

/// Has the owner match what comes to an endpoint.
pub(super) fn bind(ep: &Ep, context: &Context) -> Result<(), Errno> {
    if !Arc::ptr_eq(&ep.domain, &context.domain) {
        return Err(Errno::DOMAIN);
    }
    ep.with(|endpoint, _| {
        if endpoint.is_enabled() {
            return Err(Errno::OPBADSTATE);
        }
        if endpoint.owner.is_some() {
            return Err(Errno::BUSY);
        }
        let registered = Registered::new(&ep.domain, ep.number)?;
        endpoint.owner = Some(Owner::new(context.address, registered.number()));
        // Of no other endpoint yet, since there was no owner.
        let _first = ep.registered.set(registered);
        Ok(())
    })
}

/// The owner's functions.
///
/// # Safety
/// `srx` is a receive context that [`open`] has checked and that is still open.
unsafe fn ops_of(srx: *mut FidPeerSrx) -> OpsSrxOwner {
    // SAFETY: the caller's promise.
    let ops = unsafe { (*srx).owner_ops };
    // SAFETY: a table that was checked, of the length that is read.
    unsafe { *ops }
}

/// Calls `f` with an endpoint, if it is still open.
fn with<T>(
    domain: &Shared,
    endpoint: usize,
    f: impl FnOnce(&mut Endpoint, &mut SharedState) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut state = domain.domain.lock();
    let state = &mut *state;
    f(state.endpoints.get_mut(endpoint).ok_or(Errno::INVAL)?, &mut state.shared_state)
}

fn owner_of(endpoint: &mut Endpoint) -> Result<&mut Owner, Errno> {
    endpoint.owner.as_mut().ok_or(Errno::INVAL)
}

/// Asks the owner for a receive for a message that has arrived. What it has none
/// for is kept until it asks for it; what it cannot take now is asked about in the
/// next round again.
pub(super) fn offer_to_owner(domain: &Shared, arrival: Arrival, round: u64) {
    let srx = ptr::with_exposed_provenance_mut::<FidPeerSrx>(arrival.context);
    // SAFETY: endpoints are closed before their receive context.
    let OwnerOps { get, queue, free } = unsafe { OwnerOps::of(srx, arrival.space) };
    let status = arrival.message.status();
    let tag = if arrival.space == TAGGED { status.tag } else { 0 };
    let mut attr = PeerMatchAttr { addr: arrival.source, msg_size: status.bytes as usize, tag };
    let mut entry = ptr::null_mut();
    // SAFETY: the owner's function with its own context, attributes and room for a
    // pointer.
    let got = unsafe { get(srx, &raw mut attr, &raw mut entry) };
    let Arrival { endpoint, space, message, registered, .. } = arrival;
    let put_off = |message| {
        log::info(Subsystem::EpData, format_args!("the owner takes no message now; it is asked again"));
        // Closed in the meantime, the endpoint's messages are dropped.
        let _kept = with(domain, endpoint, |endpoint, _| {
            owner_of(endpoint).map(|owner| owner.put_off(space, message, round))
        });
    };
    if entry.is_null() || ![0, Errno::NOENT.returned_int()].contains(&got) {
        return put_off(message);
    }
    if got == 0 {
        // SAFETY: an entry that the owner has filled in.
        let begun = unsafe { receive(domain, endpoint, entry, space, message) };
        return begun.unwrap_or_else(|error| {
            // SAFETY: as above.
            unsafe { fail(domain, endpoint, entry, space, error) };
        });
    }
    let handle = Handle::new(registered);
    // SAFETY: an entry of the owner's that nobody else has yet.
    unsafe { describe(entry, handle, status.immediate) };
    let _kept = with(domain, endpoint, |endpoint, _| {
        owner_of(endpoint).map(|owner| owner.keep(handle.message(), message))
    });
    // SAFETY: the same entry; the owner may ask for the message at once.
    if unsafe { queue(entry) } == 0 {
        return;
    }
    let taken = with(domain, endpoint, |endpoint, _| Ok(owner_of(endpoint)?.take(handle.message())));
    // SAFETY: the owner has not kept the entry.
    unsafe { free(entry) };
    if let Ok(Some(message)) = taken {
        put_off(message);
    }
}

/// What the owner of a message is asked with.
struct OwnerOps {
    get: GetEntry,
    queue: WithEntry,
    free: unsafe extern "C" fn(*mut PeerRxEntry),
}

unsafe extern "C" fn get_nothing(
    _: *mut FidPeerSrx,
    _: *mut PeerMatchAttr,
    _: *mut *mut PeerRxEntry,
) -> c_int {
    Errno::NOSYS.returned_int()
}
unsafe extern "C" fn queue_nothing(_: *mut PeerRxEntry) -> c_int {
    Errno::NOSYS.returned_int()
}
unsafe extern "C" fn free_nothing(_: *mut PeerRxEntry) {}

impl OwnerOps {
    /// Those for messages of this space. None is null: [`check`] has seen to it, and
    /// if one has become so, it does nothing.
    ///
    /// # Safety
    /// `srx` is a receive context that [`open`] has checked and that is still open.
    unsafe fn of(srx: *mut FidPeerSrx, space: Space) -> Self {
        // SAFETY: the caller's promise.
        let ops = unsafe { ops_of(srx) };
        let (get, queue) =
            if space == TAGGED { (ops.get_tag, ops.queue_tag) } else { (ops.get_msg, ops.queue_msg) };
        Self {
            get: get.unwrap_or(get_nothing),
            queue: queue.unwrap_or(queue_nothing),
            free: ops.free_entry.unwrap_or(free_nothing),
        }
    }
}

/// Notes in the owner's entry how it asks for the message, and its sender's number.
///
/// # Safety
/// The entry is the owner's, and nobody else uses it during the call.
unsafe fn describe(entry: *mut PeerRxEntry, handle: Handle, data: Option<u32>) {
    // SAFETY: the caller's promise.
    let entry = unsafe { &mut *entry };
    entry.peer_context = ptr::without_provenance_mut(handle.to_raw());
    if let Some(data) = data {
        entry.flags |= flags::REMOTE_CQ_DATA;
        entry.cq_data = data.into();
    }
}

/// Begins to receive a message into what the owner's entry says.
///
/// # Safety
/// The entry is the owner's, and its memory is lent as [`border::pieces`] asks.
unsafe fn receive(
    domain: &Shared,
    endpoint: usize,
    address: *mut PeerRxEntry,
    space: Space,
    message: Message,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let entry = unsafe { *address };
    // SAFETY: the caller's promise.
    let pieces = unsafe { border::pieces(entry.iov, entry.count, Access::Write) }?;
    with(domain, endpoint, |endpoint, shared_state| {
        let receive = MatchedReceive {
            entry: address.expose_provenance(),
            context: entry.context.expose_provenance(),
            flags: flags::RECV | kind_of(space),
            reports: reports(endpoint.receive_queue, entry.flags),
            address: pieces.address,
        };
        endpoint.receive_for_owner(shared_state, message, &receive, pieces.buffer)
    })
}

/// Tells the owner that a receive that it has matched cannot be.
///
/// # Safety
/// The entry is the owner's.
unsafe fn fail(domain: &Shared, endpoint: usize, entry: *mut PeerRxEntry, space: Space, error: Errno) {
    // SAFETY: the caller's promise.
    let context = unsafe { (*entry).context }.expose_provenance();
    let of = Entry::bare(context, flags::RECV | kind_of(space));
    let failure = Item::Failed(Failure { entry: of, cut_bytes: 0, error });
    // Closed in the meantime, there is nobody to be told.
    let _told = with(domain, endpoint, |endpoint, shared_state| {
        endpoint.push(shared_state, CompletionTarget::Receive, failure);
        endpoint.done_with(shared_state, entry.expose_provenance());
        Ok(())
    });
}

/// Gives an entry back to its owner.
pub(super) fn free(done_with: DoneWith) {
    let srx = ptr::with_exposed_provenance_mut::<FidPeerSrx>(done_with.context);
    // SAFETY: endpoints are closed before their receive context, and their entries
    // are given back before.
    let OwnerOps { free, .. } = unsafe { OwnerOps::of(srx, TAGGED) };
    // SAFETY: an entry of this owner's, given back once.
    unsafe { free(ptr::with_exposed_provenance_mut(done_with.entry)) }
}

/// The message that an entry is for, out of what is kept.
fn take(entry: &PeerRxEntry) -> Result<(Arc<Shared>, usize, Message), Errno> {
    let handle = Handle::from_raw(entry.peer_context.addr());
    let (domain, endpoint) = handle.endpoint()?;
    let message = with(&domain, endpoint, |endpoint, _| {
        owner_of(endpoint)?.take(handle.message()).ok_or(Errno::INVAL)
    })?;
    Ok((domain, endpoint, message))
}

/// # Safety
/// The pointer is null or an entry of an owner's.
unsafe fn start(address: *mut PeerRxEntry, space: Space) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let entry = unsafe { border::read(address) }?;
    // Looked at before the message is taken, which may be asked for again.
    // SAFETY: the caller's promise; the pieces are not used.
    drop(unsafe { border::pieces(entry.iov, entry.count, Access::Write) }?);
    let (domain, endpoint, message) = take(&entry)?;
    // SAFETY: the owner lends the memory until the entry is given back.
    unsafe { receive(&domain, endpoint, address, space, message) }
}

unsafe extern "C" fn start_tag(entry: *mut PeerRxEntry) -> c_int {
    // SAFETY: C's promise: an entry that was queued.
    border::int(unsafe { start(entry, TAGGED) })
}

unsafe extern "C" fn start_msg(entry: *mut PeerRxEntry) -> c_int {
    // SAFETY: the same promise.
    border::int(unsafe { start(entry, PLAIN) })
}

/// Drops a message. The entry stays the owner's.
unsafe extern "C" fn discard(entry: *mut PeerRxEntry) -> c_int {
    // SAFETY: C's promise: an entry that was queued.
    let dropped = unsafe { border::read(entry) }.and_then(|entry| take(&entry)).map(drop);
    border::int(dropped)
}

/// Who sent the message of an entry.
unsafe extern "C" fn source(entry: *mut PeerRxEntry) -> FiAddr {
    // SAFETY: the owner's promise: an entry that was queued.
    let found = unsafe { border::read(entry) }.and_then(|entry| {
        let handle = Handle::from_raw(entry.peer_context.addr());
        let (domain, endpoint) = handle.endpoint()?;
        with(&domain, endpoint, |endpoint, shared_state| {
            endpoint.source_of_kept(shared_state, handle.message())
        })
    });
    found.unwrap_or(ADDR_UNSPEC)
}

/// Addresses have been inserted: the owners ask again who sent what was of unknown
/// sources before. If owners are being called, as by who inserts out of such a call,
/// they do so with the next look at a queue of theirs.
pub(super) fn tell_of_sources(vector: &Vector) {
    let domain = &vector.domain;
    domain.domain.lock().sources_came(vector.number);
    if let Some(_calls) = domain.try_call_owners() {
        let owners = domain.domain.lock().owners_to_tell();
        ask_for_sources(owners);
    }
}

/// Has these owners ask; called by who may call owners.
pub(super) fn ask_for_sources(owners: Vec<usize>) {
    for owner in owners {
        let srx = ptr::with_exposed_provenance_mut::<FidPeerSrx>(owner);
        // SAFETY: endpoints are closed before their receive context.
        let ops = unsafe { ops_of(srx) };
        if let Some(foreach) = ops.foreach_unspec_addr {
            // SAFETY: the owner's function with its own context.
            unsafe { foreach(srx, source) };
        }
    }
}
