//! A poll set (fi_poll(3)): several queues and counters, looked at by one call.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::base::{self, ops};
use super::objects::{self, Cntr, Cq};
use super::shared_domain::Shared;
use crate::abi::Errno;
use crate::abi::eq::{FidPoll, OpsPoll, PollAttr};
use crate::abi::fabric::FidDomain;
use crate::abi::fid::{CLASS_CNTR, CLASS_CQ, CLASS_POLL, Fid, Ops};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::refuse::{because, no_flags};
use crate::state::sleep::{self, WaitedFor};

/// A queue or a counter, which is not closed while it is in a poll set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Member {
    what: WaitedFor,
    fid: usize,
}

/// A poll set of a domain.
struct Poll {
    domain: Arc<Shared>,
    members: Mutex<Vec<Member>>,
}

impl Poll {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        // A panic elsewhere leaves it usable: no change has two steps.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let members = std::mem::take(&mut *self.members());
        let mut state = self.domain.domain.lock();
        state.poll_sets -= 1;
        for member in members {
            if let Some(watch) = state.shared_state.watch(member.what) {
                watch.poll_sets -= 1;
            }
        }
    }
}

type PollObject = Object<FidPoll, Poll>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: base::control);
static POLL: OpsPoll = OpsPoll { size: size_of::<OpsPoll>(), poll, poll_add, poll_del };

pub(super) unsafe extern "C" fn open(
    domain: *mut FidDomain,
    attr: *mut PollAttr,
    out: *mut *mut FidPoll,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or attributes.
        let flags = unsafe { border::read_if(attr) }.map_or(0, |attr| attr.flags);
        border::place(out)?;
        no_flags(Subsystem::Domain, flags, "fi_poll_open")?;
        domain.domain.lock().poll_sets += 1;
        let fid = Fid { fclass: CLASS_POLL, context: ptr::null_mut(), ops: &raw const OPS };
        let head = FidPoll { fid, ops: &raw const POLL };
        let inner = Poll { domain: Arc::clone(domain), members: Mutex::default() };
        // SAFETY: C's promise: room for a pointer.
        unsafe { border::write(out, PollObject::open(head, inner)) }
    });
    border::int(opened)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    if let Err(error) = border::place(fid) {
        return error.returned_int();
    }
    // SAFETY: C's promise: a poll set of ours, which is closed once.
    drop(unsafe { PollObject::close(fid) });
    0
}

/// # Safety
/// The pointer is null or an object of ours.
unsafe fn member(fid: *mut Fid) -> Result<(Member, Arc<Shared>), Errno> {
    // SAFETY: the caller's promise.
    let class = unsafe { fid.as_ref() }.ok_or(Errno::INVAL)?.fclass;
    let (what, domain) = match class {
        CLASS_CQ => {
            // SAFETY: the caller's promise, and its class is a queue's.
            let cq = unsafe { objects::queue(fid) }?;
            (WaitedFor::Queue(cq.number), &cq.domain)
        }
        CLASS_CNTR => {
            // SAFETY: the caller's promise, and its class is a counter's.
            let cntr = unsafe { objects::counter(fid) }?;
            (WaitedFor::Counter(cntr.number), &cntr.domain)
        }
        _ => {
            log::warn(Subsystem::Domain, format_args!("a poll set has completion queues and counters only"));
            return Err(Errno::INVAL);
        }
    };
    Ok((Member { what, fid: fid.expose_provenance() }, Arc::clone(domain)))
}

unsafe extern "C" fn poll_add(set: *mut FidPoll, fid: *mut Fid, flags: u64) -> c_int {
    // SAFETY: C's promise: a poll set of ours.
    let added = unsafe { PollObject::get(set) }.and_then(|set| {
        // SAFETY: C's promise: an object of ours.
        let (member, domain) = unsafe { member(fid) }?;
        no_flags(Subsystem::Domain, flags, "fi_poll_add")?;
        if !Arc::ptr_eq(&domain, &set.inner.domain) {
            let why = format_args!("a poll set has queues and counters of its own domain only");
            return Err(because(Subsystem::Domain, Errno::DOMAIN, why));
        }
        let mut members = set.inner.members();
        if members.contains(&member) {
            let why = format_args!("it is in the poll set already");
            return Err(because(Subsystem::Domain, Errno::BUSY, why));
        }
        domain.domain.lock().shared_state.watch(member.what).ok_or(Errno::INVAL)?.poll_sets += 1;
        members.push(member);
        Ok(())
    });
    border::int(added)
}

unsafe extern "C" fn poll_del(set: *mut FidPoll, fid: *mut Fid, flags: u64) -> c_int {
    // SAFETY: C's promise: a poll set of ours.
    let removed = unsafe { PollObject::get(set) }.and_then(|set| {
        // SAFETY: C's promise: an object of ours.
        let (member, domain) = unsafe { member(fid) }?;
        no_flags(Subsystem::Domain, flags, "fi_poll_del")?;
        let mut members = set.inner.members();
        let at = members.iter().position(|one| *one == member);
        let at = at.ok_or_else(|| {
            because(Subsystem::Domain, Errno::INVAL, format_args!("it is not in the poll set"))
        })?;
        members.remove(at);
        domain.domain.lock().shared_state.watch(member.what).ok_or(Errno::INVAL)?.poll_sets -= 1;
        Ok(())
    });
    border::int(removed)
}

unsafe extern "C" fn poll(set: *mut FidPoll, contexts: *mut *mut c_void, count: c_int) -> c_int {
    // SAFETY: C's promise: a poll set of ours.
    let set = match unsafe { PollObject::get(set) } {
        Ok(set) => &set.inner,
        Err(error) => return error.returned_int(),
    };
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: C's promise: room for so many pointers.
    let room = match count.and_then(|count| unsafe { border::room(contexts, count) }) {
        Ok(room) => room,
        Err(error) => return error.returned_int(),
    };
    let members = set.members().clone();
    let mut found = 0;
    for member in &members {
        if found == room.len() {
            break;
        }
        let fid = ptr::with_exposed_provenance::<Fid>(member.fid);
        let context = match member.what {
            WaitedFor::Queue(_) => {
                // SAFETY: it is not closed while it is in the set.
                let cq = unsafe { objects::queue(fid) };
                cq.ok().and_then(Cq::context_if_something)
            }
            WaitedFor::Counter(_) => {
                // SAFETY: the same.
                let cntr = unsafe { objects::counter(fid) };
                cntr.ok().and_then(Cntr::context_if_changed)
            }
        };
        if let Some(context) = context {
            room[found].write(ptr::with_exposed_provenance_mut(context));
            found += 1;
        }
    }
    if found == 0 {
        let domain = &set.domain.domain;
        sleep::yield_if_idle(domain, members.iter().map(|member| member.what));
    }
    found as c_int
}
