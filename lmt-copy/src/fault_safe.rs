//! Copies of memory that may be gone, of which a fault is an answer and not the end of the
//! process.
//!
//! Memory of another process, where it is mapped here as it is there, goes when that unmaps
//! it or dies. Then the kernel raises SIGBUS or SIGSEGV in the thread that copies. Where
//! such pages are of a kind that the kernel does not copy itself (VM_PFNMAP, as XPMEM's),
//! it cannot be asked before. So a handler looks whether the address lies in what this very
//! thread copies: then it has the thread go on behind the copy, which has failed. All
//! other faults are passed on to whoever handled them before.
//!
//! The handler uses atomics, pthread_self(3) and, to pass a signal on, sigaction(2) and
//! raise(3): all it does is safe in a handler (signal-safety(7)).
#![allow(unsafe_code)] // Signal handlers, and a function of instructions.

use std::ffi::c_int;
use std::io::Error;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

use crate::copier::Distance;
use crate::copy::copy_toward;

/// What faults are told by.
const SIGNALS: [c_int; 2] = [libc::SIGBUS, libc::SIGSEGV];

/// What handled them before, once this does.
static PREVIOUS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Whether the handlers could be installed.
static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();

/// Whether a thread can be made to go on behind a copy: the instructions for it are those
/// of one kind of CPU.
const IS_POSSIBLE: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// What one [`FaultSafeCopy`] copies just now. All fields but the last two are written by the
/// thread that copies, and count for the handler in that thread only: Relaxed is enough.
#[derive(Debug, Default)]
struct Record {
    /// The thread, or 0 while it copies nothing.
    thread: AtomicUsize,
    /// The process: a forked child has the record of a thread that it does not have.
    process: AtomicI32,
    /// The doubtful memory: the first byte, and the one behind the last.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Where the thread goes on after a fault.
    resume: Resume,
    /// Whether one has it. Acquire and Release: the next one finds it at rest.
    is_taken: AtomicBool,
    /// The record that was added before.
    next: AtomicPtr<Record>,
}

/// Stack pointer and instruction behind a copy.
#[derive(Debug, Default)]
#[repr(C)]
struct Resume {
    stack: AtomicUsize,
    instruction: AtomicUsize,
}

/// All records, the one added last in front. None is ever freed: there are no more than
/// were in use at one time.
static RECORDS: AtomicPtr<Record> = AtomicPtr::new(std::ptr::null_mut());

fn records() -> impl Iterator<Item = &'static Record> {
    // Acquire pairs with the Release of `take`: what is found is whole.
    let of = |pointer: &AtomicPtr<Record>| {
        // SAFETY: null, or a leaked box that is used by shared references only.
        unsafe { pointer.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(of(&RECORDS), move |record| of(&record.next))
}

/// A record, an old one if one is free.
fn take() -> &'static Record {
    let record = take_any();
    record.process.store(this_process(), Ordering::Relaxed);
    record
}

/// Asks the kernel, which a signal handler may do.
fn this_process() -> i32 {
    // SAFETY: it has no precondition.
    unsafe { libc::getpid() }
}

/// A record that nobody has.
fn take_any() -> &'static Record {
    let is_free = |record: &&Record| !record.is_taken.swap(true, Ordering::Acquire);
    records().find(is_free).unwrap_or_else(|| {
        let new: &'static Record = Box::leak(Box::new(Record { is_taken: true.into(), ..Record::default() }));
        let mut first = RECORDS.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange, whose Release pairs with `records`.
            new.next.store(first, Ordering::Relaxed);
            let pointer = std::ptr::from_ref(new).cast_mut();
            match RECORDS.compare_exchange(first, pointer, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return new,
                Err(other) => first = other,
            }
        }
    })
}

/// Why memory that may be gone is not touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultsUnhandled {
    /// SIGBUS or SIGSEGV is blocked in this thread: the kernel would end the process.
    Blocked,
    /// Another handler has it now.
    Replaced,
}

impl std::fmt::Display for FaultsUnhandled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Blocked => "this thread blocks SIGBUS or SIGSEGV, by which it would learn that memory of the peer is gone; unblock it",
            Self::Replaced => "a handler of SIGBUS or SIGSEGV was installed after lmt's; install it before the first endpoint connects",
        })
    }
}

impl std::error::Error for FaultsUnhandled {}

/// Copies of memory that may be gone, one at a time.
#[derive(Debug)]
pub struct FaultSafeCopy(&'static Record);

impl FaultSafeCopy {
    /// Installs handlers of SIGBUS and SIGSEGV, the first time in a process.
    ///
    /// # Errors
    /// What sigaction(2) answers; ENOTSUP on a CPU that is not known.
    pub fn new() -> Result<Self, Error> {
        let installed =
            *INSTALLED.get_or_init(|| install().map_err(|error| error.raw_os_error().unwrap_or(0)));
        installed.map(|()| Self(take())).map_err(Error::from_raw_os_error)
    }

    /// Whether a fault of this thread would come to the handler, as SIGBUS or as SIGSEGV. To be
    /// asked before each copy, since others may change it: four system calls.
    ///
    /// # Errors
    /// Why not.
    pub fn check() -> Result<(), FaultsUnhandled> {
        let ours = on_fault as *const () as usize;
        if SIGNALS.iter().any(|signal| action(*signal).map_or(0, |now| now.sa_sigaction) != ours) {
            return Err(FaultsUnhandled::Replaced);
        }
        if SIGNALS.iter().any(|signal| is_blocked(*signal)) { Err(FaultsUnhandled::Blocked) } else { Ok(()) }
    }

    /// Copies `bytes` bytes; whether it could. If not, some of them may have been copied.
    ///
    /// # Safety
    /// As [`copy_toward`], but that bytes in the range `doubtful` of addresses need not be
    /// there. Nothing but such a mapping is in it.
    pub unsafe fn copy(
        &mut self,
        doubtful: Range<usize>,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
        distance: Distance,
    ) -> bool {
        let Self(record) = self;
        record.start.store(doubtful.start, Ordering::Relaxed);
        record.end.store(doubtful.end, Ordering::Relaxed);
        record.thread.store(this_thread(), Ordering::Relaxed);
        // The handler runs in this thread: the compiler alone could spoil the order.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the caller's promise; a fault in `doubtful`, which the record now says,
        // ends the call.
        let has_failed = unsafe { copy_or_resume(target, source, bytes, distance, &raw const record.resume) };
        compiler_fence(Ordering::SeqCst);
        record.thread.store(0, Ordering::Relaxed);
        has_failed == 0
    }
}

impl Drop for FaultSafeCopy {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Release);
    }
}

fn this_thread() -> usize {
    // SAFETY: it has no precondition; it reads a register of the thread.
    unsafe { libc::pthread_self() as usize }
}

/// Calls [`copy_plainly`]; 0 when that returns. After a fault the handler has the thread go on
/// at `2`, with the stack as it is there: then 1.
///
/// # Safety
/// As [`copy_plainly`]; `resume` is a record's.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[unsafe(naked)]
unsafe extern "C" fn copy_or_resume(
    target: *mut u8,
    source: *const u8,
    bytes: usize,
    distance: Distance,
    resume: *const Resume,
) -> u32 {
    // What the caller wants kept is on the stack, whatever the copy has in registers when
    // it faults. Seven words and the caller's address: the stack is aligned for the call.
    std::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [r8], rsp",
        "lea rax, [rip + 2f]",
        "mov [r8 + 8], rax",
        "call {copy}",
        "xor eax, eax",
        "jmp 3f",
        "2:",
        "cld",
        "mov eax, 1",
        "3:",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        copy = sym copy_plainly,
    )
}

/// Elsewhere nothing is copied: see [`IS_POSSIBLE`].
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe extern "C" fn copy_or_resume(
    _: *mut u8,
    _: *const u8,
    _: usize,
    _: Distance,
    _: *const Resume,
) -> u32 {
    1
}

/// The copy. Nothing in it has to be undone when it is left in the middle: no lock is held,
/// no destructor is to run.
///
/// # Safety
/// As [`copy_toward`], but for faults.
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
unsafe extern "C" fn copy_plainly(target: *mut u8, source: *const u8, bytes: usize, distance: Distance) {
    // SAFETY: the caller's promise.
    unsafe { copy_toward(target, source, bytes, distance) };
}

/// What the kernel calls in a thread that has faulted, or when somebody sends the signal.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel gives what sigaction(2) says for SA_SIGINFO.
    let told = unsafe { &*info };
    // SAFETY: for these signals, if the kernel itself has sent them, there is an address.
    let address = unsafe { told.si_addr() }.addr();
    // From 0 on down it is a process that has sent it.
    let is_fault = told.si_code > 0;
    let is_ours = |record: &&Record| {
        let range = record.start.load(Ordering::Relaxed)..record.end.load(Ordering::Relaxed);
        let is_here = record.process.load(Ordering::Relaxed) == this_process();
        is_here && record.thread.load(Ordering::Relaxed) == this_thread() && range.contains(&address)
    };
    match records().find(is_ours).filter(|_| is_fault) {
        // SAFETY: the kernel gave the context, which is this handler's until it returns.
        Some(record) => resume(&record.resume, unsafe { &mut *context }),
        None => pass_on(signal, is_fault, info, context),
    }
}

/// Has the thread go on behind its copy.
fn resume(at: &Resume, context: &mut libc::ucontext_t) {
    #[cfg(target_arch = "x86_64")]
    {
        let registers = &mut context.uc_mcontext.gregs;
        registers[libc::REG_RSP as usize] = at.stack.load(Ordering::Relaxed) as i64;
        registers[libc::REG_RIP as usize] = at.instruction.load(Ordering::Relaxed) as i64;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, context);
}

/// Leaves a signal to whoever handled it before; if nobody did, it does what it would have done.
fn pass_on(signal: c_int, is_fault: bool, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let at = SIGNALS.iter().position(|one| *one == signal);
    let previous = at.and_then(|at| Some(&PREVIOUS.get()?[at]));
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    if handler == libc::SIG_IGN && !is_fault {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        let mut usual = zeroed_action();
        usual.sa_sigaction = libc::SIG_DFL;
        // SAFETY: the action is the default one. The instruction that has faulted is run
        // again when this handler returns, and ends the process.
        unsafe { libc::sigaction(signal, &raw const usual, std::ptr::null_mut()) };
        if !is_fault {
            // SAFETY: it has no precondition. The signal comes when this handler returns.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    if previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0) {
        type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::ucontext_t);
        // SAFETY: it was installed as a function of this type.
        let handler: Handler = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: it was installed as a function of this type.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

fn zeroed_action() -> libc::sigaction {
    // SAFETY: numbers, a set of signals and an optional function: all zeros are valid.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// What handles a signal now.
fn action(signal: c_int) -> Result<libc::sigaction, Error> {
    let mut now = zeroed_action();
    // SAFETY: it changes nothing and writes to `now`.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    if answer == 0 { Ok(now) } else { Err(Error::last_os_error()) }
}

fn install() -> Result<(), Error> {
    if !IS_POSSIBLE {
        return Err(Error::from_raw_os_error(libc::ENOTSUP));
    }
    // Known first: the handler may be called as soon as it is there.
    let _ = PREVIOUS.set([action(SIGNALS[0])?, action(SIGNALS[1])?]);
    let mut ours = zeroed_action();
    ours.sa_sigaction = on_fault as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in SIGNALS {
        // SAFETY: the handler is a function of the type that SA_SIGINFO asks for, and does
        // only what is safe in one.
        if unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) } != 0 {
            return Err(Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether this thread blocks a signal.
fn is_blocked(signal: c_int) -> bool {
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: it changes nothing and writes to `blocked`.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: a set, by the call; before it zeros, which is a set too.
    unsafe { libc::sigismember(blocked.as_ptr(), signal) == 1 }
}

#[cfg(all(test, not(miri)))]
#[path = "fault_safe_tests.rs"]
mod tests;
