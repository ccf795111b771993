//! A counter (fi_cntr(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::base::{self, ops};
use super::objects::{self, Cntr, CntrObject};
use super::shared_domain::Shared;
use super::waiting::{self, WaitObject};
use crate::abi::Errno;
use crate::abi::eq::{CNTR_EVENTS_COMP, CntrAttr, FidCntr, OpsCntr};
use crate::abi::fid::{CLASS_CNTR, Fid, Ops};
use crate::border;
use crate::log::{self, Subsystem};
use crate::state::State;
use crate::state::counter::Counter;
use crate::state::sleep::{self, Armed, WaitedFor};
use crate::wait;

static OPS: Ops = ops!(close: close, bind: base::bind, control: control);
static CNTR: OpsCntr =
    OpsCntr { size: size_of::<OpsCntr>(), read, readerr, add, set, wait: wait_for, adderr, seterr };

/// # Safety
/// `out` is null or room for a pointer.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    attr: &CntrAttr,
    out: *mut *mut FidCntr,
    context: *mut c_void,
) -> Result<(), Errno> {
    border::place(out)?;
    if attr.flags != 0 || attr.events != CNTR_EVENTS_COMP {
        log::warn(
            Subsystem::Cntr,
            format_args!("a counter counts completions (FI_CNTR_EVENTS_COMP) and has no flags"),
        );
        return Err(if attr.flags != 0 { Errno::BADFLAGS } else { Errno::INVAL });
    }
    let wait_object = WaitObject::named(Subsystem::Cntr, attr.wait_obj)?;
    let number = domain.domain.lock().shared_state.counters.insert(Counter::default());
    let fid = Fid { fclass: CLASS_CNTR, context, ops: &raw const OPS };
    let head = FidCntr { fid, ops: &raw const CNTR };
    let inner =
        Cntr { domain: Arc::clone(domain), number, wait_object, context: context.expose_provenance() };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, CntrObject::open(head, inner)) }
}

impl Cntr {
    fn with<T>(&self, f: impl FnOnce(&mut Counter) -> T) -> Result<T, Errno> {
        self.domain.domain.lock().shared_state.counters.get_mut(self.number).map(f).ok_or(Errno::INVAL)
    }

    /// Its numbers after a look for what has come.
    fn now(&self) -> (u64, u64) {
        let mut state = self.domain.domain.lock();
        if let Some(counter) = state.shared_state.counters.get_mut(self.number) {
            counter.watch.user_polls();
        }
        let should_yield = state.progress_counter(self.number);
        let Some(counter) = state.shared_state.counters.get_mut(self.number) else { return (0, 0) };
        counter.seen = counter.numbers();
        let seen = counter.seen;
        drop(state);
        if should_yield {
            sleep::yield_core(&self.domain.domain, WaitedFor::Counter(self.number));
        }
        seen
    }

    /// Whether its numbers are others than when they were last looked at, after a
    /// look for what has come. They count as looked at now.
    fn has_changed(&self, state: &mut State) -> bool {
        state.progress_counter(self.number);
        let Some(counter) = state.shared_state.counters.get_mut(self.number) else { return false };
        let before = counter.seen;
        counter.seen = counter.numbers();
        counter.seen != before
    }

    /// The context that it was opened with, if it has changed.
    pub(super) fn context_if_changed(&self) -> Option<usize> {
        let mut state = self.domain.domain.lock();
        self.has_changed(&mut state).then_some(self.context)
    }
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: C's promise: a counter of ours.
    let done = unsafe { objects::counter(fid) }.and_then(|cntr| {
        let set = || cntr.domain.domain.lock().wait_set(WaitedFor::Counter(cntr.number));
        // SAFETY: C's promise: null or room for what the command gives.
        unsafe { waiting::control(command, argument, cntr.wait_object, set) }
    });
    border::int(done)
}

/// Whether a user of the counter may block; see fi_trywait(3).
///
/// # Safety
/// The pointer is null or a counter of ours.
pub(super) unsafe fn try_wait(cntr: *const Fid) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let cntr = unsafe { objects::counter(cntr) }?;
    if !cntr.wait_object.has_descriptor() {
        return Err(waiting::no_descriptor(Subsystem::Cntr));
    }
    let mut state = cntr.domain.domain.lock();
    if cntr.has_changed(&mut state) {
        return Err(Errno::AGAIN);
    }
    match state.arm(WaitedFor::Counter(cntr.number), true)? {
        Armed::Sleep(..) => Ok(()),
        Armed::Look => Err(Errno::AGAIN),
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a counter of ours.
    let closed = unsafe { objects::counter(fid) }.and_then(|cntr| {
        if cntr.with(|counter| !counter.endpoints.is_empty() || counter.watch.poll_sets > 0)? {
            log::warn(
                Subsystem::Cntr,
                format_args!("a counter is closed before its endpoints or poll sets; close those first"),
            );
            return Err(Errno::BUSY);
        }
        cntr.domain.domain.lock().shared_state.counters.remove(cntr.number);
        Ok(())
    });
    if closed.is_ok() {
        // SAFETY: C's promise: it is closed once.
        drop(unsafe { CntrObject::close(fid) });
    }
    border::int(closed)
}

unsafe extern "C" fn read(cntr: *mut FidCntr) -> u64 {
    // SAFETY: C's promise: a counter of ours.
    unsafe { objects::counter(cntr) }.map_or(0, |cntr| cntr.now().0)
}

unsafe extern "C" fn readerr(cntr: *mut FidCntr) -> u64 {
    // SAFETY: C's promise: a counter of ours.
    unsafe { objects::counter(cntr) }.map_or(0, |cntr| cntr.now().1)
}

/// # Safety
/// The pointer is null or a counter of ours.
unsafe fn change(cntr: *mut FidCntr, f: impl FnOnce(&mut Counter)) -> c_int {
    // SAFETY: the caller's promise.
    border::int(unsafe { objects::counter(cntr) }.and_then(|cntr| cntr.with(|counter| counter.change(f))))
}

unsafe extern "C" fn add(cntr: *mut FidCntr, number: u64) -> c_int {
    // SAFETY: C's promise.
    unsafe { change(cntr, |counter| counter.value = counter.value.wrapping_add(number)) }
}

unsafe extern "C" fn set(cntr: *mut FidCntr, number: u64) -> c_int {
    // SAFETY: C's promise.
    unsafe { change(cntr, |counter| counter.value = number) }
}

unsafe extern "C" fn adderr(cntr: *mut FidCntr, number: u64) -> c_int {
    // SAFETY: C's promise.
    unsafe { change(cntr, |counter| counter.errors = counter.errors.wrapping_add(number)) }
}

unsafe extern "C" fn seterr(cntr: *mut FidCntr, number: u64) -> c_int {
    // SAFETY: C's promise.
    unsafe { change(cntr, |counter| counter.errors = number) }
}

unsafe extern "C" fn wait_for(cntr: *mut FidCntr, threshold: u64, timeout_ms: c_int) -> c_int {
    // SAFETY: C's promise: a counter of ours.
    let cntr = match unsafe { objects::counter(cntr) } {
        Ok(cntr) => cntr,
        Err(error) => return error.returned_int(),
    };
    if !cntr.wait_object.waits() {
        log::warn(Subsystem::Cntr, format_args!("fi_cntr_wait needs a counter with a wait object"));
        return Errno::INVAL.returned_int();
    }
    let deadline = wait::deadline(timeout_ms);
    let (_, errors_before) = cntr.now();
    let decide = |value: u64, errors: u64| match () {
        () if value >= threshold => Some(Ok(())),
        () if errors != errors_before => Some(Err(Errno::AVAIL)),
        () => None,
    };
    let reached = wait::until(
        &cntr.domain.domain,
        WaitedFor::Counter(cntr.number),
        deadline,
        |state| {
            let counter = state.shared_state.counters.get(cntr.number);
            counter.is_none_or(|counter| decide(counter.value, counter.errors).is_none())
        },
        || {
            let (value, errors) = cntr.now();
            decide(value, errors)
        },
    );
    border::int(reached.unwrap_or(Err(Errno::TIMEDOUT)))
}
