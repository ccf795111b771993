//! An endpoint (fi_endpoint(3)): made, bound, enabled, closed.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

use super::base::ops;
use super::event::Reports;
use super::objects::{self, Cntr, Cq, Ep, EpObject, Vector};
use super::shared_domain::Shared;
use super::waiting::unknown_command;
use super::{absent, atomic, cm, owner_receives, plain, remote, tagged};
use crate::abi::endpoint::{self, FidEp, OpsEp};
use crate::abi::fid::{
    CLASS_AV, CLASS_CNTR, CLASS_CQ, CLASS_EP, CLASS_EQ, CLASS_SRX_CTX, CONTROL_ENABLE, CONTROL_GETOPSFLAG,
    CONTROL_SETOPSFLAG, Fid, Ops, RxAttr, TxAttr,
};
use crate::abi::{Errno, flags};
use crate::border;
use crate::log::{self, Subsystem};
use crate::offer::{Chosen, QUEUE_SIZE, check_endpoint};
use crate::refuse::because;
use crate::state::counter::Counted;
use crate::state::endpoint::{Binding, Endpoint, Settings};

static OPS: Ops = ops!(close: close, bind: bind, control: control);
static EP: OpsEp =
    OpsEp { size: size_of::<OpsEp>(), cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left };

absent! {
    tx_ctx(*mut FidEp, c_int, *mut TxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
    rx_ctx(*mut FidEp, c_int, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
}

/// A multi-receive buffer is given back when less than this is left of it, unless
/// the user says otherwise (`FI_OPT_MIN_MULTI_RECV`).
const MULTI_MIN_BYTES: usize = 64;

/// What an endpoint does, out of what it is capable of; nothing of it means all.
const DIRECTIONS: u64 =
    flags::SEND | flags::RECV | flags::READ | flags::WRITE | flags::REMOTE_READ | flags::REMOTE_WRITE;

/// # Safety
/// `out` is null or room for a pointer.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    chosen: &Chosen,
    out: *mut *mut FidEp,
    context: *mut c_void,
) -> Result<(), Errno> {
    border::place(out)?;
    check_endpoint(chosen).map_err(|why| {
        let why = format_args!("{why}; give fi_endpoint what fi_getinfo gave");
        because(Subsystem::EpCtrl, Errno::INVAL, why)
    })?;
    let does = |kinds| chosen.caps & DIRECTIONS == 0 || chosen.caps & kinds != 0;
    let settings = Settings {
        sends: does(flags::SEND | flags::READ | flags::WRITE),
        receives: does(flags::RECV),
        directed: chosen.caps & flags::DIRECTED_RECV != 0,
        send_flags: chosen.tx.map_or(0, |tx| tx.op_flags),
        receive_flags: chosen.rx.map_or(0, |rx| rx.op_flags),
        multi_min_bytes: MULTI_MIN_BYTES,
    };
    let (number, name) = domain.domain.lock().open_endpoint(settings, chosen.source.as_deref())?;
    let fid = Fid { fclass: CLASS_EP, context, ops: &raw const OPS };
    let head = FidEp {
        fid,
        ops: &raw const EP,
        cm: &raw const cm::OPS,
        msg: &raw const plain::OPS,
        rma: &raw const remote::OPS,
        tagged: &raw const tagged::OPS,
        atomic: &raw const atomic::OPS,
        collective: ptr::null(),
    };
    let inner = Ep {
        domain: Arc::clone(domain),
        number,
        name,
        registered: OnceLock::new(),
        reports: Reports::default(),
    };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, EpObject::open(head, inner)) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let removed = match unsafe { objects::endpoint(fid) } {
        Ok(ep) => ep.domain.domain.lock().remove_endpoint(ep.number),
        Err(error) => return error.returned_int(),
    };
    // Without the lock, for it may wait for peers.
    drop(removed);
    // SAFETY: C's promise: it is closed once.
    drop(unsafe { EpObject::close(fid) });
    0
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, with: u64) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let bound = unsafe { objects::endpoint(fid) }.and_then(|ep| {
        // SAFETY: C's promise: null or an object.
        let class = unsafe { other.as_ref() }.ok_or(Errno::INVAL)?.fclass;
        match class {
            // SAFETY: C's promise: an address vector of ours.
            CLASS_AV => bind_vector(ep, unsafe { objects::vector(other) }?),
            // SAFETY: C's promise: a queue of ours.
            CLASS_CQ => bind_queue(ep, unsafe { objects::queue(other) }?, with),
            // SAFETY: C's promise: a counter of ours.
            CLASS_CNTR => bind_counter(ep, unsafe { objects::counter(other) }?, with),
            // SAFETY: C's promise: a receive context of ours.
            CLASS_SRX_CTX => owner_receives::bind(ep, unsafe { owner_receives::get(other) }?),
            // Of what an endpoint does, nothing is told there.
            // SAFETY: C's promise: an event queue of ours.
            CLASS_EQ => unsafe { ep.reports.bind(ep.domain.fabric(), other) },
            _ => Err(Errno::NOSYS),
        }
    });
    border::int(bound.inspect_err(|error| {
        log::warn(Subsystem::EpCtrl, format_args!("an endpoint cannot be bound: {}", error.text()));
    }))
}

fn check_domain(ep: &Ep, other: &Arc<Shared>) -> Result<(), Errno> {
    if Arc::ptr_eq(&ep.domain, other) { Ok(()) } else { Err(Errno::DOMAIN) }
}

fn bind_vector(ep: &Ep, vector: &Vector) -> Result<(), Errno> {
    check_domain(ep, &vector.domain)?;
    ep.with(|endpoint, shared_state| {
        if endpoint.vector.is_some() {
            return Err(Errno::BUSY);
        }
        endpoint.vector = Some(vector.number);
        shared_state.vectors.get_mut(vector.number).ok_or(Errno::INVAL)?.endpoints.push(ep.number);
        Ok(())
    })
}

fn bind_queue(ep: &Ep, cq: &Cq, with: u64) -> Result<(), Errno> {
    check_domain(ep, &cq.domain)?;
    let directions = flags::SEND | flags::RECV;
    if with & !(directions | flags::SELECTIVE_COMPLETION) != 0 {
        return Err(Errno::BADFLAGS);
    }
    if with & directions == 0 {
        return Err(Errno::INVAL);
    }
    ep.with(|endpoint, shared_state| {
        let binding = Some(Binding { queue: cq.number, selective: with & flags::SELECTIVE_COMPLETION != 0 });
        let taken = |direction, slot: Option<Binding>| with & direction != 0 && slot.is_some();
        if taken(flags::SEND, endpoint.send_queue) || taken(flags::RECV, endpoint.receive_queue) {
            return Err(Errno::BUSY);
        }
        if with & flags::SEND != 0 {
            endpoint.send_queue = binding;
        }
        if with & flags::RECV != 0 {
            endpoint.receive_queue = binding;
        }
        let queue = shared_state.queues.get_mut(cq.number).ok_or(Errno::INVAL)?;
        endpoint.wakes(&queue.watch, &queue.endpoints, ep.number)?;
        enter(&mut queue.endpoints, ep.number);
        Ok(())
    })
}

fn bind_counter(ep: &Ep, cntr: &Cntr, with: u64) -> Result<(), Errno> {
    check_domain(ep, &cntr.domain)?;
    if !Counted::are_kinds(with) {
        let why = format_args!(
            "a counter is bound with flags {with:#x}; it counts FI_SEND, FI_RECV, FI_READ and FI_WRITE, nothing that peers do here (FI_RMA_EVENT)"
        );
        return Err(because(Subsystem::EpCtrl, Errno::BADFLAGS, why));
    }
    ep.with(|endpoint, shared_state| {
        endpoint.counted.bind(with, cntr.number);
        let counter = shared_state.counters.get_mut(cntr.number).ok_or(Errno::INVAL)?;
        endpoint.wakes(&counter.watch, &counter.endpoints, ep.number)?;
        enter(&mut counter.endpoints, ep.number);
        Ok(())
    })
}

fn enter(endpoints: &mut Vec<usize>, number: usize) {
    if !endpoints.contains(&number) {
        endpoints.push(number);
    }
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let done = unsafe { objects::endpoint(fid) }.and_then(|ep| match command {
        CONTROL_ENABLE => ep.with(Endpoint::enable).inspect_err(|error| {
            log::warn(Subsystem::EpCtrl, format_args!("an endpoint cannot be enabled: {}", error.text()));
        }),
        CONTROL_GETOPSFLAG => {
            // SAFETY: C's promise: null or flags.
            let which = unsafe { border::read(argument.cast::<u64>()) }?;
            let now = ep.with(|endpoint, _| default_flags(endpoint, which).map(|flags| *flags))?;
            // SAFETY: C's promise: room for flags.
            unsafe { border::write(argument.cast(), now) }
        }
        CONTROL_SETOPSFLAG => {
            // SAFETY: C's promise: null or flags.
            let new = unsafe { border::read(argument.cast::<u64>()) }?;
            let flags = new & !(flags::SEND | flags::RECV);
            ep.with(|endpoint, _| default_flags(endpoint, new).map(|place| *place = flags))
        }
        _ => Err(unknown_command(command)),
    });
    border::int(done)
}

/// The flags of the operations in the direction that `which` names.
fn default_flags(endpoint: &mut Endpoint, which: u64) -> Result<&mut u64, Errno> {
    match which & (flags::SEND | flags::RECV) {
        flags::SEND => Ok(&mut endpoint.settings.send_flags),
        flags::RECV => Ok(&mut endpoint.settings.receive_flags),
        _ => Err(because(
            Subsystem::EpCtrl,
            Errno::INVAL,
            format_args!("default flags are of FI_TRANSMIT or of FI_RECV; name one of them"),
        )),
    }
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> isize {
    // SAFETY: C's promise: an endpoint of ours.
    let cancelled = unsafe { objects::endpoint(fid) }.and_then(|ep| {
        ep.with(|endpoint, shared_state| endpoint.cancel(shared_state, context.expose_provenance()))
    });
    border::size(cancelled)
}

fn unknown_option(level: c_int, option: c_int) -> Errno {
    let why = format_args!("there is no such option {option} of level {level}");
    because(Subsystem::EpCtrl, Errno::NOPROTOOPT, why)
}

unsafe extern "C" fn getopt(
    fid: *mut Fid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let done = unsafe { objects::endpoint(fid) }.and_then(|ep| {
        let number = match (level, option) {
            (endpoint::OPT_LEVEL_ENDPOINT, endpoint::OPT_MIN_MULTI_RECV) => {
                ep.with(|endpoint, _| Ok(endpoint.settings.multi_min_bytes))?
            }
            (endpoint::OPT_LEVEL_ENDPOINT, endpoint::OPT_CM_DATA_SIZE) => 0,
            _ => return Err(unknown_option(level, option)),
        };
        // SAFETY: C's promise: null or a number.
        let room_bytes = unsafe { border::read(bytes) }?;
        if room_bytes < size_of::<usize>() {
            let why = format_args!(
                "an option has {} bytes, and there is room for {room_bytes}",
                size_of::<usize>()
            );
            return Err(because(Subsystem::EpCtrl, Errno::TOOSMALL, why));
        }
        // SAFETY: C's promise: null or room for as many bytes as it says.
        unsafe { border::write(bytes, size_of::<usize>()) }?;
        // SAFETY: the same.
        unsafe { border::write(value.cast::<usize>(), number) }
    });
    border::int(done)
}

unsafe extern "C" fn setopt(
    fid: *mut Fid,
    level: c_int,
    option: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let done = unsafe { objects::endpoint(fid) }.and_then(|ep| {
        if (level, option) != (endpoint::OPT_LEVEL_ENDPOINT, endpoint::OPT_MIN_MULTI_RECV) {
            return Err(unknown_option(level, option));
        }
        if bytes < size_of::<usize>() {
            let why = format_args!("an option of {bytes} bytes is set, which has {}", size_of::<usize>());
            return Err(because(Subsystem::EpCtrl, Errno::INVAL, why));
        }
        // SAFETY: C's promise: null or a number.
        let number = unsafe { border::read(value.cast::<usize>()) }?;
        ep.with(|endpoint, _| {
            endpoint.settings.multi_min_bytes = number;
            Ok(())
        })
    });
    border::int(done)
}

unsafe extern "C" fn rx_size_left(ep: *mut FidEp) -> isize {
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { objects::endpoint(ep) }.map_or_else(Errno::returned, |_| QUEUE_SIZE as isize)
}

unsafe extern "C" fn tx_size_left(ep: *mut FidEp) -> isize {
    // SAFETY: the same promise.
    unsafe { rx_size_left(ep) }
}
