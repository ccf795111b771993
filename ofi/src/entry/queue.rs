//! A completion queue (fi_cq(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::base::{self, ops};
use super::objects::{self, Cq, CqObject};
use super::owner_queue;
use super::shared_domain::Shared;
use super::waiting::{self, WaitObject};
use crate::abi::eq::{self, CqAttr, CqErrEntry, CqTaggedEntry, FidCq, OpsCq};
use crate::abi::fid::{CLASS_CQ, Fid, Ops};
use crate::abi::{Errno, FiAddr, flags, provider};
use crate::border;
use crate::log::{self, Subsystem};
use crate::state::State;
use crate::state::completion::{Entry, Failure};
use crate::state::queue::{Format, Queue, Read};
use crate::state::sleep::{self, Armed, WaitedFor};
use crate::wait;

static OPS: Ops = ops!(close: close, bind: base::bind, control: control);
static CQ: OpsCq =
    OpsCq { size: size_of::<OpsCq>(), read, readfrom, readerr, sread, sreadfrom, signal, strerror };

/// From this version on a failure's completion ends with the source.
const WITH_SOURCE: u32 = provider::version(1, 20);
/// From this version on the caller may offer memory for more about a failure.
const WITH_ERROR_DATA: u32 = provider::version(1, 5);

/// # Safety
/// `out` is null or room for a pointer; with `FI_PEER`, `context` is as
/// [`owner_queue::owner_of`] says.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    attr: &CqAttr,
    out: *mut *mut FidCq,
    context: *mut c_void,
) -> Result<(), Errno> {
    border::place(out)?;
    let is_owned = attr.flags & flags::PEER != 0;
    // SAFETY: the caller's promise.
    let owner = if is_owned { Some(unsafe { owner_queue::owner_of(context) }?) } else { None };
    let format = match attr.format {
        eq::CQ_FORMAT_UNSPEC | eq::CQ_FORMAT_CONTEXT => Format::Context,
        eq::CQ_FORMAT_MSG => Format::Msg,
        eq::CQ_FORMAT_DATA => Format::Data,
        eq::CQ_FORMAT_TAGGED => Format::Tagged,
        other => {
            log::warn(Subsystem::Cq, format_args!("there is no queue of format {other}"));
            return Err(Errno::INVAL);
        }
    };
    if attr.flags & !(flags::AFFINITY | flags::PEER) != 0 {
        log::warn(Subsystem::Cq, format_args!("a queue has the flag FI_AFFINITY, no others"));
        return Err(Errno::BADFLAGS);
    }
    let wait_object = WaitObject::named(Subsystem::Cq, attr.wait_obj)?;
    let queue = Queue::new(is_owned);
    let number = domain.domain.lock().shared_state.queues.insert(queue);
    // What an owner hands over as context is for this call only.
    let context = if is_owned { ptr::null_mut() } else { context };
    let fid = Fid { fclass: CLASS_CQ, context, ops: &raw const OPS };
    let ops = if is_owned { &raw const owner_queue::CQ } else { &raw const CQ };
    let head = FidCq { fid, ops };
    let inner = Cq {
        domain: Arc::clone(domain),
        number,
        format,
        wait_object,
        context: context.expose_provenance(),
        owner,
    };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, CqObject::open(head, inner)) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a queue of ours.
    let closed = unsafe { objects::queue(fid) }.and_then(|cq| {
        let mut state = cq.domain.domain.lock();
        let queues = &mut state.shared_state.queues;
        if queues.get(cq.number).is_some_and(|queue| !queue.endpoints.is_empty() || queue.watch.poll_sets > 0)
        {
            log::warn(
                Subsystem::Cq,
                format_args!("a queue is closed before its endpoints or poll sets; close those first"),
            );
            return Err(Errno::BUSY);
        }
        queues.remove(cq.number);
        Ok(())
    });
    if closed.is_ok() {
        // SAFETY: C's promise: it is closed once.
        drop(unsafe { CqObject::close(fid) });
    }
    border::int(closed)
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: C's promise: a queue of ours.
    let done = unsafe { objects::queue(fid) }.and_then(|cq| {
        let set = || cq.domain.domain.lock().wait_set(WaitedFor::Queue(cq.number));
        // SAFETY: C's promise: null or room for what the command gives.
        unsafe { waiting::control(command, argument, cq.wait_object, set) }
    });
    border::int(done)
}

/// Whether a user of the queue may block; see fi_trywait(3).
///
/// # Safety
/// The pointer is null or a queue of ours.
pub(super) unsafe fn try_wait(cq: *const Fid) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let cq = unsafe { objects::queue(cq) }?;
    if !cq.wait_object.has_descriptor() {
        return Err(waiting::no_descriptor(Subsystem::Cq));
    }
    let mut state = cq.domain.domain.lock();
    let has_something = cq.has_something(&mut state);
    // A signal has one waiter look, not every one from now on.
    let is_signalled = state.shared_state.queues.get_mut(cq.number).is_some_and(Queue::take_signal);
    if has_something || is_signalled {
        return Err(Errno::AGAIN);
    }
    match state.arm(WaitedFor::Queue(cq.number), true)? {
        Armed::Sleep(..) => Ok(()),
        Armed::Look => Err(Errno::AGAIN),
    }
}

impl Cq {
    /// Whether a reader would find something, after a look for what has come.
    fn has_something(&self, state: &mut State) -> bool {
        state.progress_queue(self.number);
        state.shared_state.queues.get(self.number).is_some_and(|queue| !queue.is_empty())
    }

    /// The context that it was opened with, if a reader would find something.
    pub(super) fn context_if_something(&self) -> Option<usize> {
        let mut state = self.domain.domain.lock();
        self.has_something(&mut state).then_some(self.context)
    }
}

// The words of 8 bytes as which an entry is written.
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(CqTaggedEntry, op_context) == 0 && size_of::<*mut c_void>() == 8);
    assert!(offset_of!(CqTaggedEntry, flags) == 8 && offset_of!(CqTaggedEntry, len) == 16);
    assert!(offset_of!(CqTaggedEntry, buf) == 24 && offset_of!(CqTaggedEntry, data) == 32);
    assert!(offset_of!(CqTaggedEntry, tag) == 40 && size_of::<CqTaggedEntry>() == 48);
};

/// Where completions are written.
struct Output {
    entries: *mut u8,
    sources: *mut FiAddr,
    count: usize,
}

impl Output {
    /// Writes completion number `at`.
    ///
    /// # Safety
    /// `entries` has room for more than `at` entries of this format, and `sources`
    /// is null or has room for as many.
    #[inline]
    unsafe fn put(&self, at: usize, format: Format, entry: &Entry) {
        let Entry { context, flags, bytes, buffer, data, tag, .. } = *entry;
        // SAFETY: there is room for entry `at` behind those before it.
        let place = unsafe { self.entries.add(at * format.bytes()) }.cast::<u64>();
        // Word by word, each where it lies in `CqTaggedEntry`: a copy of the whole would wait
        // until its parts are written.
        let put = |word: usize, value: u64| {
            // SAFETY: called for the words of 8 bytes that an entry of this format has; they
            // need not be aligned.
            unsafe { place.wrapping_add(word).write_unaligned(value) };
        };
        // Addresses are handed back as they came.
        put(0, context as u64);
        if format >= Format::Msg {
            put(1, flags);
            put(2, bytes as u64);
        }
        if format >= Format::Data {
            put(3, buffer as u64);
            put(4, data);
        }
        if format == Format::Tagged {
            put(5, tag);
        }
        if !self.sources.is_null() {
            // SAFETY: there is room for as many sources.
            let place = unsafe { self.sources.add(at) };
            // SAFETY: the same.
            unsafe { place.write(entry.source) };
        }
    }

    /// Reads as many as there are and as there is room for; and whether its caller is to let
    /// others run.
    ///
    /// # Safety
    /// `entries` has room for `count` entries of the queue's format, and `sources`
    /// is null or has room for as many.
    #[inline(always)] // The path of a short message.
    unsafe fn fill(&self, state: &mut State, cq: &Cq) -> (isize, bool) {
        let Some(queue) = state.shared_state.queues.get_mut(cq.number) else {
            return (Errno::INVAL.returned(), false);
        };
        queue.watch.user_polls();
        // Who wants no completion wants progress.
        let polls = self.count == 0 || queue.is_empty();
        let is_idle = polls && (state.progress_queue(cq.number) | state.take_owed_yield());
        // SAFETY: the caller's promise.
        let read = unsafe { self.take(state, cq) };
        // A peek that found nothing ends with an error.
        let is_idle = if polls { is_idle } else { state.yields_after_peek(cq.number, read >= 0) };
        let should_yield = is_idle && read < 0;
        if polls && read < 0 && !should_yield && cq.domain.domain.is_of_one_thread() {
            state.begin_idle(cq.number);
        }
        (read, should_yield)
    }

    /// Reads as many as there are already.
    ///
    /// # Safety
    /// As [`Output::fill`].
    #[inline(always)] // As `fill`.
    unsafe fn take(&self, state: &mut State, cq: &Cq) -> isize {
        let Some(queue) = state.shared_state.queues.get_mut(cq.number) else {
            return Errno::INVAL.returned();
        };
        let mut at = 0;
        while at < self.count {
            // SAFETY: `at` is below `count`.
            match queue.read(|entry| unsafe { self.put(at, cq.format, entry) }) {
                Read::Entry => at += 1,
                Read::Failure if at == 0 => return Errno::AVAIL.returned(),
                Read::Failure | Read::Nothing => break,
            }
        }
        if at == 0 { Errno::AGAIN.returned() } else { at as isize }
    }
}

unsafe extern "C" fn read(cq: *mut FidCq, entries: *mut c_void, count: usize) -> isize {
    // SAFETY: the same promises, without sources.
    unsafe { readfrom(cq, entries, count, ptr::null_mut()) }
}

unsafe extern "C" fn readfrom(
    cq: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    sources: *mut FiAddr,
) -> isize {
    if !cq.is_null() && !entries.is_null() {
        // SAFETY: C's promise: a queue of ours.
        let is_idle = unsafe { objects::queue(cq) }.is_ok_and(|cq| cq.domain.domain.polls_idly(cq.number));
        if is_idle {
            return Errno::AGAIN.returned();
        }
    }
    // SAFETY: C's promises.
    unsafe { poll(cq, entries, count, sources) }
}

/// A read that is no idle poll.
///
/// # Safety
/// As of `fi_cq_readfrom`.
#[inline(never)] // So that an idle poll saves no registers.
unsafe fn poll(cq: *mut FidCq, entries: *mut c_void, count: usize, sources: *mut FiAddr) -> isize {
    // SAFETY: the caller's promise: a queue of ours.
    let cq = unsafe { objects::queue(cq) }.and_then(|cq| {
        if count > 0 {
            border::place(entries)?;
        }
        Ok(cq)
    });
    let cq = match cq {
        Ok(cq) => cq,
        Err(error) => return error.returned(),
    };
    let output = Output { entries: entries.cast(), sources, count };
    let (read, should_yield) = {
        let mut state = cq.domain.domain.lock();
        // SAFETY: the caller's promise: null or room for `count` of each; entries are not null
        // where one is written.
        unsafe { output.fill(&mut state, cq) }
    };
    if should_yield {
        sleep::yield_core(&cq.domain.domain, WaitedFor::Queue(cq.number));
    }
    read
}

unsafe extern "C" fn readerr(cq: *mut FidCq, out: *mut CqErrEntry, _flags: u64) -> isize {
    // SAFETY: C's promise: a queue of ours.
    let cq = match unsafe { objects::queue(cq) }.and_then(|cq| border::place(out).map(|()| cq)) {
        Ok(cq) => cq,
        Err(error) => return error.returned(),
    };
    let failure = {
        let mut state = cq.domain.domain.lock();
        if state.shared_state.queues.get(cq.number).is_none_or(Queue::is_empty) {
            state.progress_queue(cq.number);
        }
        state.shared_state.queues.get_mut(cq.number).and_then(Queue::take_failure)
    };
    let Some(failure) = failure else { return Errno::AGAIN.returned() };
    let version = cq.domain.api_version();
    // SAFETY: C's promise: an entry as its version has it.
    unsafe { give_failure(&failure, out, version) };
    1
}

/// Writes a failure as a caller of this version of libfabric's interface expects
/// it: no byte behind what its structure has.
///
/// # Safety
/// `out` points to such a structure.
unsafe fn give_failure(failure: &Failure, out: *mut CqErrEntry, version: u32) {
    // From that version on it may be the caller's own memory, which stays the caller's.
    // SAFETY: a field of the caller's structure.
    let theirs = unsafe { &raw const (*out).err_data };
    // SAFETY: as above; a pointer of C, whatever is in it.
    let theirs = unsafe { theirs.read() };
    let err_data = if version >= WITH_ERROR_DATA { theirs } else { ptr::null_mut() };
    // SAFETY: the caller's promise.
    unsafe { out.write(owner_queue::error_entry(failure, err_data)) };
    if version >= WITH_SOURCE {
        // SAFETY: of that version, the structure has one more field.
        let source = unsafe { out.add(1) }.cast::<FiAddr>();
        // SAFETY: the same.
        unsafe { source.write(failure.entry.source) };
    }
}

unsafe extern "C" fn sread(
    cq: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: the same promises, without sources.
    unsafe { sreadfrom(cq, entries, count, ptr::null_mut(), condition, timeout_ms) }
}

unsafe extern "C" fn sreadfrom(
    cq: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    sources: *mut FiAddr,
    _condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: C's promise: a queue of ours.
    let this = match unsafe { objects::queue(cq) } {
        Ok(this) if !this.wait_object.waits() => {
            log::warn(Subsystem::Cq, format_args!("fi_cq_sread needs a queue with a wait object"));
            return Errno::INVAL.returned();
        }
        Ok(this) => this,
        Err(error) => return error.returned(),
    };
    let deadline = wait::deadline(timeout_ms);
    wait::until(
        &this.domain.domain,
        WaitedFor::Queue(this.number),
        deadline,
        |state| {
            state
                .shared_state
                .queues
                .get(this.number)
                .is_none_or(|queue| queue.is_empty() && !queue.is_signalled())
        },
        || {
            // SAFETY: the same promises.
            let read = unsafe { readfrom(cq, entries, count, sources) };
            if read != Errno::AGAIN.returned() {
                return Some(read);
            }
            let mut state = this.domain.domain.lock();
            let queue = state.shared_state.queues.get_mut(this.number)?;
            // Who has no room waits for a completion that it does not take.
            let is_there = count == 0 && !queue.is_empty();
            if is_there { Some(0) } else { queue.take_signal().then_some(read) }
        },
    )
    .unwrap_or(Errno::AGAIN.returned())
}

unsafe extern "C" fn signal(cq: *mut FidCq) -> c_int {
    // SAFETY: C's promise: a queue of ours.
    let done = unsafe { objects::queue(cq) }.and_then(|cq| {
        if !cq.wait_object.waits() {
            log::warn(Subsystem::Cq, format_args!("fi_cq_signal needs a queue with a wait object"));
            return Err(Errno::INVAL);
        }
        let mut state = cq.domain.domain.lock();
        state.shared_state.queues.get_mut(cq.number).ok_or(Errno::INVAL).map(Queue::signal)
    });
    border::int(done)
}

unsafe extern "C" fn strerror(
    _cq: *mut FidCq,
    prov_errno: c_int,
    _data: *const c_void,
    to: *mut c_char,
    room_bytes: usize,
) -> *const c_char {
    // SAFETY: C's promise: null or room for so many bytes.
    unsafe { border::give_error_text(prov_errno, to, room_bytes) }
}
