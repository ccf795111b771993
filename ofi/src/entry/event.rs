//! An event queue (fi_eq(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::base::{self, ops};
use super::shared_fabric::Fabric;
use super::waiting::{self, WaitObject};
use crate::abi::eq::{EqAttr, EqEntry, EqErrEntry, FidEq, OpsEq};
use crate::abi::fid::{CLASS_EQ, Fid, Ops};
use crate::abi::{Errno, flags};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::refuse::{because, no_flags};
use crate::state::events::{AfterRead, Events, FailedRequest};
use crate::state::watch::WaitSet;
use crate::wait;

/// An event queue and what it was opened for.
pub struct Eq {
    fabric: Arc<Fabric>,
    events: Arc<Events>,
    /// Whether the user writes to it.
    is_written: bool,
    wait_object: WaitObject,
}

type EqObject = Object<FidEq, Eq>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: control);
static EQ: OpsEq = OpsEq { size: size_of::<OpsEq>(), read, readerr, write, sread, strerror };

/// The event queue that an object reports to; it stays open for as long.
#[derive(Debug, Default)]
pub struct Reports(OnceLock<Arc<Events>>);

impl Reports {
    /// Where it reports to.
    pub fn events(&self) -> Option<&Arc<Events>> {
        self.0.get()
    }

    /// Has an object report to a queue from now on.
    ///
    /// # Safety
    /// The pointer is null or an event queue of ours that nobody closes during the
    /// call.
    ///
    /// # Errors
    /// [`Errno::BUSY`]: it reports to one already.
    pub(super) unsafe fn bind(&self, fabric: &Arc<Fabric>, eq: *const Fid) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        let eq = unsafe { get(eq) }?;
        if !Arc::ptr_eq(fabric, &eq.fabric) {
            log::warn(
                Subsystem::Eq,
                format_args!("an event queue of another fabric is bound; bind one of the same"),
            );
            return Err(Errno::INVAL);
        }
        self.0.set(Arc::clone(&eq.events)).map_err(|_| {
            log::warn(
                Subsystem::Eq,
                format_args!("an object reports to an event queue already; it can have one"),
            );
            Errno::BUSY
        })
    }
}

/// Tells that a request has ended well.
pub(super) fn tell<F>(events: &Events, number: u32, fid: *mut F, context: *mut c_void, data: u64) {
    let words = [fid.expose_provenance(), context.expose_provenance(), data as usize];
    events.tell(number, &words.map(usize::to_ne_bytes).concat());
}

const _: () = assert!(size_of::<EqEntry>() == 3 * size_of::<usize>());

/// # Safety
/// `attr` is null or attributes, and `out` null or room for a pointer.
pub(super) unsafe fn open(
    fabric: &Arc<Fabric>,
    attr: *const EqAttr,
    out: *mut *mut FidEq,
    context: *mut c_void,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let attr = unsafe { border::read(attr) }?;
    border::place(out)?;
    if attr.flags & !(flags::WRITE | flags::AFFINITY) != 0 {
        log::warn(
            Subsystem::Eq,
            format_args!("an event queue has the flags FI_WRITE and FI_AFFINITY, no others"),
        );
        return Err(Errno::BADFLAGS);
    }
    let wait_object = WaitObject::named(Subsystem::Eq, attr.wait_obj)?;
    let events = Arc::new(Events::default());
    if wait_object.has_descriptor() {
        let set = Arc::new(WaitSet::new()?);
        events.with_watch(|watch| watch.wait_in(set));
    }
    // Relaxed: see the fabric's close.
    fabric.open.fetch_add(1, Ordering::Relaxed);
    let fid = Fid { fclass: CLASS_EQ, context, ops: &raw const OPS };
    let head = FidEq { fid, ops: &raw const EQ };
    let is_written = attr.flags & flags::WRITE != 0;
    let inner = Eq { fabric: Arc::clone(fabric), events, is_written, wait_object };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, EqObject::open(head, inner)) }
}

/// The event queue behind a pointer.
///
/// # Safety
/// It is null or an event queue of this provider that nobody closes during the call.
unsafe fn get<'a, P>(eq: *const P) -> Result<&'a Eq, Errno> {
    // SAFETY: the caller's promise.
    unsafe { EqObject::get(eq) }.map(|object| &object.inner)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: an event queue of ours.
    let eq = match unsafe { get(fid) } {
        Ok(eq) => eq,
        Err(error) => return error.returned_int(),
    };
    if Arc::strong_count(&eq.events) > 1 {
        log::warn(
            Subsystem::Eq,
            format_args!("an event queue is closed before what is bound to it; close that first"),
        );
        return Errno::BUSY.returned_int();
    }
    // SAFETY: C's promise: it is closed once.
    let object = unsafe { EqObject::close(fid) };
    // Relaxed: see the fabric's close.
    object.inner.fabric.open.fetch_sub(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: C's promise: an event queue of ours.
    let done = unsafe { get(fid) }.and_then(|eq| {
        let set = eq.events.with_watch(|watch| watch.set().cloned());
        // SAFETY: C's promise: null or room for what the command gives.
        unsafe { waiting::control(command, argument, eq.wait_object, || set.ok_or(Errno::NODATA)) }
    });
    border::int(done)
}

/// Whether a user of the event queue may block; see fi_trywait(3).
///
/// # Safety
/// The pointer is null or an event queue of ours.
pub(super) unsafe fn try_wait(eq: *const Fid) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let eq = unsafe { get(eq) }?;
    if !eq.wait_object.has_descriptor() {
        return Err(waiting::no_descriptor(Subsystem::Eq));
    }
    if eq.events.may_block() { Ok(()) } else { Err(Errno::AGAIN) }
}

/// Where an event is written.
struct Output {
    event: *mut u32,
    bytes: *mut c_void,
}

impl Output {
    /// # Safety
    /// There is room for a number, and for as many bytes.
    unsafe fn put(&self, number: u32, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.event.write(number) };
        if !bytes.is_empty() {
            // SAFETY: the caller's promise; what is read is a copy of our own.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.cast::<u8>(), bytes.len()) };
        }
    }
}

fn then(flags: u64) -> Result<AfterRead, Errno> {
    match flags {
        0 => Ok(AfterRead::Take),
        flags::PEEK => Ok(AfterRead::Leave),
        _ => Err(because(
            Subsystem::Eq,
            Errno::BADFLAGS,
            format_args!("an event is read with FI_PEEK or no flag"),
        )),
    }
}

/// # Safety
/// `eq` is null or an event queue of ours; `event` is null or room for a number, and
/// `buf` null or room for `len` bytes.
unsafe fn read_until(
    eq: *mut FidEq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
    deadline: Option<Option<Instant>>,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let eq = unsafe { get(eq) }?;
    border::place(event)?;
    if len > 0 {
        border::place(buf)?;
    }
    let then = then(flags)?;
    let output = Output { event, bytes: buf };
    // SAFETY: room for a number and for `len` bytes, and an event has no more.
    let put = |number: u32, bytes: &[u8]| unsafe { output.put(number, bytes) };
    match deadline {
        None => eq.events.read(len, then, put),
        Some(_) if !eq.wait_object.waits() => {
            log::warn(Subsystem::Eq, format_args!("fi_eq_sread needs a queue with a wait object"));
            Err(Errno::INVAL)
        }
        Some(deadline) => eq.events.wait(len, then, deadline, put),
    }
}

fn read_bytes(read: Result<usize, Errno>) -> isize {
    read.map_or_else(Errno::returned, |bytes| bytes as isize)
}

unsafe extern "C" fn read(
    eq: *mut FidEq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    // SAFETY: C's promises, the same ones.
    read_bytes(unsafe { read_until(eq, event, buf, len, flags, None) })
}

unsafe extern "C" fn sread(
    eq: *mut FidEq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout_ms: c_int,
    flags: u64,
) -> isize {
    let deadline = wait::deadline(timeout_ms);
    // SAFETY: C's promises, the same ones.
    read_bytes(unsafe { read_until(eq, event, buf, len, flags, Some(deadline)) })
}

unsafe extern "C" fn readerr(eq: *mut FidEq, out: *mut EqErrEntry, flags: u64) -> isize {
    // SAFETY: C's promise: an event queue of ours.
    let eq = unsafe { get(eq) }.and_then(|eq| {
        border::place(out)?;
        no_flags(Subsystem::Eq, flags, "fi_eq_readerr").map(|()| eq)
    });
    let eq = match eq {
        Ok(eq) => eq,
        Err(error) => return error.returned(),
    };
    let Some(FailedRequest { fid, context, data, error }) = eq.events.take_failure() else {
        return Errno::AGAIN.returned();
    };
    let entry = EqErrEntry {
        fid: ptr::with_exposed_provenance_mut(fid),
        context: ptr::with_exposed_provenance_mut(context),
        data,
        err: error.0,
        prov_errno: error.0,
        err_data: ptr::null_mut(),
        err_data_size: 0,
    };
    // SAFETY: C's promise: room for an entry, and it is not null.
    unsafe { out.write(entry) };
    size_of::<EqErrEntry>() as isize
}

unsafe extern "C" fn write(eq: *mut FidEq, event: u32, buf: *const c_void, len: usize, flags: u64) -> isize {
    // SAFETY: C's promise: an event queue of ours.
    let written = unsafe { get(eq) }.and_then(|eq| {
        if !eq.is_written {
            log::warn(Subsystem::Eq, format_args!("fi_eq_write needs a queue opened with FI_WRITE"));
            return Err(Errno::INVAL);
        }
        no_flags(Subsystem::Eq, flags, "fi_eq_write")?;
        // SAFETY: C's promise: null or so many bytes.
        eq.events.write(event, unsafe { border::bytes(buf, len) }?)?;
        Ok(len)
    });
    read_bytes(written)
}

unsafe extern "C" fn strerror(
    _eq: *mut FidEq,
    prov_errno: c_int,
    _data: *const c_void,
    to: *mut c_char,
    room_bytes: usize,
) -> *const c_char {
    // SAFETY: C's promise: null or room for so many bytes.
    unsafe { border::give_error_text(prov_errno, to, room_bytes) }
}
