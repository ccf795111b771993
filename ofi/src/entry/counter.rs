//! A counter (fi_cntr(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::base::{self, ops};
use super::domain::Shared;
use crate::abi::Errno;
use crate::abi::eq::{FidCntr, OpsCntr};
use crate::abi::fabric::{CLASS_CNTR, Fid, Ops};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::state::counter::Counter;
use crate::wait;

/// A counter, by its number in its domain.
#[derive(Debug)]
pub struct Cntr {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
}

type CntrObject = Object<FidCntr, Cntr>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: base::control);
static CNTR: OpsCntr =
    OpsCntr { size: size_of::<OpsCntr>(), read, readerr, add, set, wait: wait_for, adderr, seterr };

/// # Safety
/// `out` is null or room for a pointer.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    out: *mut *mut FidCntr,
    context: *mut c_void,
) -> Result<(), Errno> {
    if out.is_null() {
        return Err(Errno::INVAL);
    }
    let number = domain.domain.lock().around.counters.insert(Counter::default());
    let fid = Fid { fclass: CLASS_CNTR, context, ops: &raw const OPS };
    let head = FidCntr { fid, ops: &raw const CNTR };
    let inner = Cntr { domain: Arc::clone(domain), number };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, CntrObject::open(head, inner)) }
}

/// The counter behind a pointer.
///
/// # Safety
/// It is null or a counter of this provider that nobody closes during the call.
pub unsafe fn get<'a, P>(counter: *const P) -> Result<&'a Cntr, Errno> {
    // SAFETY: the caller's promise.
    unsafe { CntrObject::get(counter) }.map(|object| &object.inner)
}

impl Cntr {
    fn with<T>(&self, f: impl FnOnce(&mut Counter) -> T) -> Result<T, Errno> {
        self.domain.domain.lock().around.counters.get_mut(self.number).map(f).ok_or(Errno::INVAL)
    }

    /// Its numbers after a look for what has come.
    fn now(&self) -> (u64, u64) {
        self.domain.domain.lock().progress_counter(self.number);
        self.with(|counter| (counter.value, counter.errors)).unwrap_or_default()
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a counter of ours.
    let closed = unsafe { get(fid) }.and_then(|cntr| {
        if cntr.with(|counter| !counter.endpoints.is_empty())? {
            log::warn(
                Subsystem::Cq,
                format_args!("a counter is closed before its endpoints; close those first"),
            );
            return Err(Errno::BUSY);
        }
        cntr.domain.domain.lock().around.counters.remove(cntr.number);
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
    unsafe { get(cntr) }.map_or(0, |cntr| cntr.now().0)
}

unsafe extern "C" fn readerr(cntr: *mut FidCntr) -> u64 {
    // SAFETY: C's promise: a counter of ours.
    unsafe { get(cntr) }.map_or(0, |cntr| cntr.now().1)
}

/// # Safety
/// The pointer is null or a counter of ours.
unsafe fn change(cntr: *mut FidCntr, f: impl FnOnce(&mut Counter)) -> c_int {
    // SAFETY: the caller's promise.
    border::int(unsafe { get(cntr) }.and_then(|cntr| cntr.with(f)))
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
    let cntr = match unsafe { get(cntr) } {
        Ok(cntr) => cntr,
        Err(error) => return error.returned_int(),
    };
    let deadline = u64::try_from(timeout_ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
    let (_, errors_before) = cntr.now();
    let reached = wait::until(
        &cntr.domain.domain,
        deadline,
        |state| {
            state
                .around
                .counters
                .get(cntr.number)
                .map(|counter| counter.endpoints.clone())
                .unwrap_or_default()
        },
        || match cntr.now() {
            (value, _) if value >= threshold => Some(Ok(())),
            (_, errors) if errors != errors_before => Some(Err(Errno::AVAIL)),
            _ => None,
        },
    );
    border::int(reached.unwrap_or(Err(Errno::TIMEDOUT)))
}
