//! A completion queue that belongs to another provider (fi_peer(3), "Peer CQ"):
//! completions are written to the owner's; reading this one only makes progress.
#![allow(unsafe_code)] // Called from C, and calls the owner.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::objects::{self, Cq};
use super::{absent, owner_receives};
use crate::abi::eq::{CqErrEntry, FidCq, OpsCq};
use crate::abi::peer::{CqErrEntryWithSource, FidPeerCq, OpsCqOwner, PeerCqContext};
use crate::abi::{Errno, FiAddr};
use crate::border;
use crate::log::{self, Subsystem};
use crate::refuse::because;
use crate::state::State;
use crate::state::completion::{Failure, Item};
use crate::state::queue::DoneWith;
use crate::state::sleep::{self, WaitedFor};

pub(super) static CQ: OpsCq =
    OpsCq { size: size_of::<OpsCq>(), read, readfrom, readerr, sread, sreadfrom, signal, strerror };

absent! {
    readfrom(*mut FidCq, *mut c_void, usize, *mut FiAddr) -> isize;
    readerr(*mut FidCq, *mut CqErrEntry, u64) -> isize;
    sread(*mut FidCq, *mut c_void, usize, *const c_void, c_int) -> isize;
    sreadfrom(*mut FidCq, *mut c_void, usize, *mut FiAddr, *const c_void, c_int) -> isize;
    signal(*mut FidCq) -> c_int;
}

unsafe extern "C" fn strerror(
    _cq: *mut FidCq,
    _prov_errno: c_int,
    _data: *const c_void,
    _to: *mut c_char,
    _room_bytes: usize,
) -> *const c_char {
    ptr::null()
}

/// The owner's queue that the context of `fi_cq_open` names, as an address.
///
/// # Safety
/// The context is null or a `struct fi_peer_cq_context` whose queue, if not null,
/// stays until this provider's is closed.
pub(super) unsafe fn owner_of(context: *const c_void) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let PeerCqContext { size, cq } = unsafe { border::read(context.cast()) }?;
    // SAFETY: the caller's promise.
    let ops = unsafe { cq.as_ref() }.ok_or(Errno::INVAL)?.owner_ops;
    // SAFETY: a table of the owner's begins with its size.
    let ops_bytes = unsafe { border::read(ops.cast::<usize>()) }?;
    if size < size_of::<PeerCqContext>() || ops_bytes < size_of::<OpsCqOwner>() {
        log::warn(
            Subsystem::Cq,
            format_args!(
                "an owner's queue of {size} bytes with a table of {ops_bytes} is none that is known; it is to have {} and {}",
                size_of::<PeerCqContext>(),
                size_of::<OpsCqOwner>()
            ),
        );
        return Err(Errno::INVAL);
    }
    Ok(cq.expose_provenance())
}

unsafe extern "C" fn read(cq: *mut FidCq, _entries: *mut c_void, count: usize) -> isize {
    // SAFETY: C's promise: a queue of ours.
    match unsafe { objects::queue(cq) } {
        Ok(cq) if count == 0 => {
            attend(cq);
            sleep::yield_if_idle(&cq.domain.domain, [WaitedFor::Queue(cq.number)]);
            Errno::AGAIN.returned()
        }
        Ok(_) => {
            let why = format_args!("completions are read from the owner's queue; read none from this one");
            because(Subsystem::Cq, Errno::NOSYS, why).returned()
        }
        Err(error) => error.returned(),
    }
}

/// Makes progress, hands up what has arrived, and tells the owner what has ended.
/// The owner is called without the domain's lock, for it may call back.
fn attend(cq: &Cq) {
    let Some(owner) = cq.owner else { return };
    // One thread at a time: messages are handed up in their order, and an entry is
    // given back behind its completion. Whoever is here does it for all threads.
    let Some(_calls) = cq.domain.try_call_owners() else {
        // What ends or arrives now is told at the next look.
        cq.domain.domain.lock().progress_queue(cq.number);
        return;
    };
    let (round, owners, mut arrival) = {
        let mut state = cq.domain.domain.lock();
        state.progress_queue(cq.number);
        state.round += 1;
        (state.round, state.owners_to_tell(), state.next_arrival(cq.number))
    };
    owner_receives::ask_for_sources(owners);
    while let Some(one) = arrival {
        owner_receives::offer_to_owner(&cq.domain, one, round);
        arrival = cq.domain.domain.lock().next_arrival(cq.number);
    }
    tell(cq, ptr::with_exposed_provenance_mut(owner));
}

/// What the owner is to be told next.
enum Next {
    Completion(Item),
    /// There is none; these entries are not used any more.
    DoneWith(Vec<DoneWith>),
}

fn next(state: &mut State, number: usize) -> Next {
    let Some(queue) = state.shared_state.queues.get_mut(number) else { return Next::DoneWith(Vec::new()) };
    match queue.take() {
        Some(item) => Next::Completion(item),
        None => Next::DoneWith(std::mem::take(&mut queue.done_with)),
    }
}

fn tell(cq: &Cq, owner: *mut FidPeerCq) {
    loop {
        let next = next(&mut cq.domain.domain.lock(), cq.number);
        match next {
            Next::Completion(item) => {
                // SAFETY: the owner's queue stays until `cq` is closed (fi_peer(3)).
                let written = unsafe { write(owner, &item) };
                if written < 0 {
                    // It has no room now; the next look tries again.
                    let mut state = cq.domain.domain.lock();
                    if let Some(queue) = state.shared_state.queues.get_mut(cq.number) {
                        queue.put_back(item);
                    }
                    return;
                }
            }
            Next::DoneWith(entries) => return entries.into_iter().for_each(owner_receives::free),
        }
    }
}

/// Writes a completion to the owner's queue.
///
/// # Safety
/// `owner` is an owner's queue that was checked by [`owner_of`] and is still there.
unsafe fn write(owner: *mut FidPeerCq, item: &Item) -> isize {
    // SAFETY: the caller's promise, here and below.
    let ops = unsafe { (*owner).owner_ops };
    match item {
        Item::Done(entry) => {
            let pointer = ptr::with_exposed_provenance_mut::<c_void>;
            // SAFETY: as above.
            let write = unsafe { (*ops).write };
            // SAFETY: the owner's function with the owner's queue.
            unsafe {
                write(
                    owner,
                    pointer(entry.context),
                    entry.flags,
                    entry.bytes,
                    pointer(entry.buffer),
                    entry.data,
                    entry.tag,
                    entry.source,
                )
            }
        }
        Item::Failed(failure) => {
            let failure = CqErrEntryWithSource {
                entry: error_entry(failure, ptr::null_mut()),
                src_addr: failure.entry.source,
            };
            // SAFETY: as above.
            let writeerr = unsafe { (*ops).writeerr };
            // SAFETY: the owner's function with the owner's queue, and an entry as
            // the longest version of it is.
            unsafe { writeerr(owner, (&raw const failure).cast()) }
        }
    }
}

/// A failure as C reads it, with the caller's own memory for more about it.
pub(super) fn error_entry(failure: &Failure, err_data: *mut c_void) -> CqErrEntry {
    let Failure { entry, cut_bytes, error } = failure;
    CqErrEntry {
        op_context: ptr::with_exposed_provenance_mut(entry.context),
        flags: entry.flags,
        len: entry.bytes,
        buf: ptr::with_exposed_provenance_mut(entry.buffer),
        data: entry.data,
        tag: entry.tag,
        olen: *cut_bytes,
        err: error.0,
        prov_errno: error.0,
        err_data,
        err_data_size: 0,
    }
}
