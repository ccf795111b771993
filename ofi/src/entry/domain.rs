//! A domain (fi_domain(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::atomic::query as query_atomic;
use super::base::{self, ops};
use super::event::Reports;
use super::objects::{self, DomainObject};
use super::shared_domain::Shared;
use super::shared_fabric::Fabric;
use super::{absent, counter, endpoint, owner_receives, poll, queue, region, vector};
use crate::abi::domain::{AvAttr, FidAv};
use crate::abi::endpoint::FidEp;
use crate::abi::eq::{CntrAttr, CqAttr, FidCntr, FidCq};
use crate::abi::fabric::{FidDomain, Info, OpsDomain};
use crate::abi::fid::{CLASS_DOMAIN, CLASS_EQ, Fid, Ops, RxAttr, TxAttr};
use crate::abi::{Errno, flags};
use crate::border;
use crate::log::{self, Subsystem};
use crate::refuse::because;
use crate::state::lock::Lock;
use crate::state::{Domain, State};

static OPS: Ops = ops!(close: close, bind: bind, control: base::control);
static DOMAIN: OpsDomain = OpsDomain {
    size: size_of::<OpsDomain>(),
    av_open,
    cq_open,
    endpoint,
    scalable_ep,
    cntr_open,
    poll_open: poll::open,
    stx_ctx,
    srx_ctx,
    query_atomic,
    query_collective,
    endpoint2,
};

absent! {
    scalable_ep(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int;
    stx_ctx(*mut FidDomain, *mut TxAttr, *mut *mut c_void, *mut c_void) -> c_int;
    query_collective(*mut FidDomain, c_int, *mut c_void, u64) -> c_int;
}

/// A new domain.
///
/// # Safety
/// With `is_serialized` no two calls that concern the domain are made at once
/// (`FI_THREAD_DOMAIN`).
pub unsafe fn open(fabric: Arc<Fabric>, is_serialized: bool, context: *mut c_void) -> *mut FidDomain {
    // Relaxed: see the fabric's close.
    fabric.open.fetch_add(1, Ordering::Relaxed);
    let fid = Fid { fclass: CLASS_DOMAIN, context, ops: &raw const OPS };
    let head = FidDomain { fid, ops: &raw const DOMAIN, mr: &raw const region::OPS };
    let lock = if is_serialized {
        // SAFETY: the caller's promise.
        unsafe { Lock::unlocked(State::default()) }
    } else {
        Lock::new(State::default())
    };
    DomainObject::open(
        head,
        Arc::new(Shared {
            domain: Domain::new(lock),
            owner_calls: Mutex::new(()),
            fabric,
            reports: Reports::default(),
            tells_registrations: AtomicBool::new(false),
        }),
    )
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let domain = match unsafe { objects::domain(fid) } {
        Ok(domain) => domain,
        Err(error) => return error.returned_int(),
    };
    if !domain.domain.lock().is_empty() {
        log::warn(
            Subsystem::Domain,
            format_args!("a domain is closed before what was opened in it; close that first"),
        );
        return Errno::BUSY.returned_int();
    }
    // SAFETY: C's promise: it is closed once.
    let object = unsafe { DomainObject::close(fid) };
    // Relaxed: see the fabric's close.
    object.inner.fabric.open.fetch_sub(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, with: u64) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let bound = unsafe { objects::domain(fid) }.and_then(|domain| {
        // SAFETY: C's promise: null or an object.
        if unsafe { other.as_ref() }.ok_or(Errno::INVAL)?.fclass != CLASS_EQ {
            log::warn(Subsystem::Domain, format_args!("a domain is bound to event queues only"));
            return Err(Errno::INVAL);
        }
        if with & !flags::REG_MR != 0 {
            log::warn(Subsystem::Domain, format_args!("a domain is bound with the flag FI_REG_MR or none"));
            return Err(Errno::BADFLAGS);
        }
        // SAFETY: C's promise: an event queue of ours.
        unsafe { domain.reports.bind(&domain.fabric, other) }?;
        // Relaxed: who registers memory has seen the binding.
        domain.tells_registrations.store(with & flags::REG_MR != 0, Ordering::Relaxed);
        Ok(())
    });
    border::int(bound)
}

unsafe extern "C" fn av_open(
    domain: *mut FidDomain,
    attr: *mut AvAttr,
    out: *mut *mut FidAv,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or a structure.
        let attr = unsafe { border::read(attr) }?;
        // SAFETY: C's promise: null or room for a pointer.
        unsafe { vector::open(domain, &attr, out, context) }
    });
    border::int(opened)
}

unsafe extern "C" fn cq_open(
    domain: *mut FidDomain,
    attr: *mut CqAttr,
    out: *mut *mut FidCq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or a structure.
        let attr = unsafe { border::read(attr) }?;
        // SAFETY: C's promise: null or room for a pointer.
        unsafe { queue::open(domain, &attr, out, context) }
    });
    border::int(opened)
}

unsafe extern "C" fn cntr_open(
    domain: *mut FidDomain,
    attr: *mut CntrAttr,
    out: *mut *mut FidCntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or a structure.
        let attr = unsafe { border::read(attr) }?;
        if attr.flags & flags::PEER != 0 {
            log::warn(
                Subsystem::Domain,
                format_args!("an owner's counters are not offered, only its queues"),
            );
            return Err(Errno::INVAL);
        }
        // SAFETY: C's promise: null or room for a pointer.
        unsafe { counter::open(domain, &attr, out, context) }
    });
    border::int(opened)
}

unsafe extern "C" fn srx_ctx(
    domain: *mut FidDomain,
    attr: *mut RxAttr,
    out: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or a structure.
        let attr = unsafe { border::read(attr) }?;
        // SAFETY: C's promise: null or room for a pointer; an owner's context.
        unsafe { owner_receives::open(domain, &attr, out, context) }
    });
    border::int(opened)
}

unsafe extern "C" fn endpoint(
    domain: *mut FidDomain,
    info: *mut Info,
    out: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a domain of ours.
    let opened = unsafe { objects::domain(domain) }.and_then(|domain| {
        // SAFETY: C's promise: null or an fi_info.
        let chosen = unsafe { crate::info::chosen(info) }?;
        // SAFETY: C's promise: null or room for a pointer.
        unsafe { endpoint::open(domain, &chosen, out, context) }
    });
    border::int(opened)
}

unsafe extern "C" fn endpoint2(
    domain: *mut FidDomain,
    info: *mut Info,
    out: *mut *mut FidEp,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        let why = format_args!("an endpoint is opened with flags {flags:#x}; it has none");
        return because(Subsystem::EpCtrl, Errno::NOSYS, why).returned_int();
    }
    // SAFETY: the same promises.
    unsafe { endpoint(domain, info, out, context) }
}
