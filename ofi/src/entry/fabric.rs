//! The fabric (fi_fabric(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::base::{self, ops};
use super::shared_fabric::Fabric;
use super::{absent, counter, domain, event, queue};
use crate::abi::Errno;
use crate::abi::eq::{EqAttr, FidEq, FidWait, WaitAttr};
use crate::abi::fabric::{FabricAttr, FidDomain, FidFabric, Info, OpsFabric, THREAD_DOMAIN};
use crate::abi::fid::{CLASS_CNTR, CLASS_CQ, CLASS_EQ, CLASS_FABRIC, Fid, Ops};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::offer::check_domain;
use crate::refuse::because;

type FabricObject = Object<FidFabric, Arc<Fabric>>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: base::control);
static FABRIC: OpsFabric = OpsFabric {
    size: size_of::<OpsFabric>(),
    domain,
    passive_ep,
    eq_open,
    wait_open,
    trywait: try_wait,
    domain2,
};

absent! {
    passive_ep(*mut FidFabric, *mut Info, *mut *mut c_void, *mut c_void) -> c_int;
    wait_open(*mut FidFabric, *mut WaitAttr, *mut *mut FidWait) -> c_int;
}

pub(super) unsafe extern "C" fn open(
    attr: *mut FabricAttr,
    out: *mut *mut FidFabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: libfabric's promise: null or a structure.
    let opened = unsafe { border::read(attr) }.and_then(|attr| {
        let fabric = Fabric { api_version: attr.api_version, open: AtomicUsize::new(0) };
        let fid = Fid { fclass: CLASS_FABRIC, context, ops: &raw const OPS };
        let head = FidFabric { fid, ops: &raw const FABRIC, api_version: attr.api_version };
        border::place(out)?;
        // SAFETY: libfabric's promise: room for a pointer.
        unsafe { border::write(out, FabricObject::open(head, Arc::new(fabric))) }
    });
    border::int(opened)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a fabric of ours.
    let fabric = match unsafe { FabricObject::get(fid) } {
        Ok(object) => &object.inner,
        Err(error) => return error.returned_int(),
    };
    // Relaxed: the count carries no data; who closes has seen its domains and queues closed.
    if fabric.open.load(Ordering::Relaxed) > 0 {
        log::warn(
            Subsystem::Fabric,
            format_args!("a fabric is closed before its domains and event queues; close those first"),
        );
        return Errno::BUSY.returned_int();
    }
    // SAFETY: C's promise: it is closed once.
    drop(unsafe { FabricObject::close(fid) });
    0
}

unsafe extern "C" fn eq_open(
    fabric: *mut FidFabric,
    attr: *mut EqAttr,
    out: *mut *mut FidEq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a fabric of ours.
    let opened = unsafe { FabricObject::get(fabric) }
        // SAFETY: C's promises: null or attributes, null or room for a pointer.
        .and_then(|fabric| unsafe { event::open(&fabric.inner, attr, out, context) });
    border::int(opened)
}

unsafe extern "C" fn domain(
    fabric: *mut FidFabric,
    info: *mut Info,
    out: *mut *mut FidDomain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a fabric of ours.
    let opened = unsafe { FabricObject::get(fabric) }.and_then(|fabric| {
        // SAFETY: C's promise: null or an fi_info.
        let info = unsafe { border::read(info) }?;
        // SAFETY: the same of its parts.
        let attr = unsafe { border::read(info.domain_attr) }?;
        border::place(out)?;
        check_domain(&attr, info.caps).map_err(|why| {
            let why = format_args!("{why}; give fi_domain what fi_getinfo gave");
            because(Subsystem::Domain, Errno::INVAL, why)
        })?;
        let is_serialized = attr.threading == THREAD_DOMAIN;
        // SAFETY: that is what a user promises who chooses this threading.
        let domain = unsafe { domain::open(Arc::clone(&fabric.inner), is_serialized, context) };
        // SAFETY: C's promise: room for a pointer.
        unsafe { border::write(out, domain) }
    });
    border::int(opened)
}

unsafe extern "C" fn domain2(
    fabric: *mut FidFabric,
    info: *mut Info,
    out: *mut *mut FidDomain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        let why = format_args!("a domain is opened with flags {flags:#x}; it has none");
        return because(Subsystem::Domain, Errno::NOSYS, why).returned_int();
    }
    // SAFETY: the same promises.
    unsafe { domain(fabric, info, out, context) }
}

/// `fi_trywait`.
unsafe extern "C" fn try_wait(fabric: *mut FidFabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: C's promise: null or so many pointers.
    let list = count.and_then(|count| unsafe { border::values(fids, count) });
    let list = match list.and_then(|list| border::place(fabric).map(|()| list)) {
        Ok(list) => list,
        Err(error) => return error.returned_int(),
    };
    let mut waits = Ok(());
    for &fid in list {
        // SAFETY: C's promise: null or an object.
        let asked = match unsafe { fid.as_ref() }.map(|fid| fid.fclass) {
            // SAFETY: C's promise: an event queue of ours.
            Some(CLASS_EQ) => unsafe { event::try_wait(fid) },
            // SAFETY: C's promise: a queue of ours.
            Some(CLASS_CQ) => unsafe { queue::try_wait(fid) },
            // SAFETY: C's promise: a counter of ours.
            Some(CLASS_CNTR) => unsafe { counter::try_wait(fid) },
            _ => {
                let why =
                    format_args!("event queues, completion queues and counters are waited for, nothing else");
                Err(because(Subsystem::Core, Errno::INVAL, why))
            }
        };
        waits = waits.and(asked);
    }
    border::int(waits)
}
