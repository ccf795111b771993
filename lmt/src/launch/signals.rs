//! The signals by which a user ends a program, as something that can be polled.
#![allow(unsafe_code)]

use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::sys::signal::Signal;

use super::sys::{self, ENDING_SIGNALS};

/// Never closed: a handler that still runs in some thread after the last owner
/// is gone must not write into whatever has that number next.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
/// Where the handler writes the number of the signal: the pipe's descriptor.
static WRITE_TO: AtomicI32 = AtomicI32::new(-1);
/// Whether some `CaughtSignals` lives.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// While it lives, SIGHUP, SIGINT and SIGTERM arrive in a pipe, in whichever
/// thread the kernel delivers them, except those that were ignored.
#[derive(Debug)]
pub(super) struct CaughtSignals {
    from: &'static PipeReader,
    old: Vec<(Signal, libc::sigaction)>,
}

extern "C" fn handle(signal: libc::c_int) {
    let number = signal as u8;
    // Relaxed: the descriptor was open before it was stored, and system calls
    // need no ordering of memory to see that.
    let to = WRITE_TO.load(Ordering::Relaxed);
    // SAFETY: errno's address is the thread's own and always valid.
    let errno_address = unsafe { libc::__errno_location() };
    // SAFETY: as said above.
    let errno = unsafe { errno_address.read() };
    // SAFETY: write is async-signal-safe and reads one byte of a live variable.
    // A full pipe holds enough signals already; it does not block (O_NONBLOCK).
    unsafe { libc::write(to, (&raw const number).cast(), 1) };
    // SAFETY: as said above. The interrupted code finds its errno unchanged.
    unsafe { errno_address.write(errno) };
}

impl CaughtSignals {
    /// Begins to catch.
    ///
    /// # Errors
    /// `ResourceBusy` when another group of this process does already.
    pub fn catch() -> io::Result<Self> {
        // Acquire pairs with the Release in `drop`: the former owner has put
        // the old actions back before they are read here.
        if TAKEN.swap(true, Ordering::Acquire) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let (from, to) = pipe().inspect_err(|_| TAKEN.store(false, Ordering::Release))?;
        // Relaxed: sigaction, a system call, comes after it in program order,
        // and only handlers that it installs read it.
        WRITE_TO.store(to.as_raw_fd(), Ordering::Relaxed);
        let mut signals = Self { from, old: Vec::new() };
        // Nothing that came to an earlier owner.
        while signals.next().is_some() {}
        let caught = ENDING_SIGNALS.into_iter().filter(|signal| !sys::is_ignored(*signal));
        signals.old =
            caught.filter_map(|signal| Some((signal, set_action(signal, &our_action())?))).collect();
        Ok(signals)
    }

    /// The next signal that has come, without waiting.
    pub fn next(&self) -> Option<i32> {
        let mut number = [0];
        match { self.from }.read(&mut number) {
            Ok(1) => Some(i32::from(number[0])),
            _ => None,
        }
    }
}

impl AsFd for CaughtSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

impl Drop for CaughtSignals {
    fn drop(&mut self) {
        for (signal, action) in &self.old {
            set_action(*signal, action);
        }
        // Release pairs with the Acquire in `catch`.
        TAKEN.store(false, Ordering::Release);
    }
}

fn pipe() -> io::Result<&'static (PipeReader, PipeWriter)> {
    if let Some(pipe) = PIPE.get() {
        return Ok(pipe);
    }
    let (from, to) = io::pipe()?;
    set_nonblocking(from.as_fd())?;
    set_nonblocking(to.as_fd())?;
    Ok(PIPE.get_or_init(|| (from, to)))
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn our_action() -> libc::sigaction {
    // SAFETY: a sigaction of zeros is valid: no flags, an empty mask, SIG_DFL.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    action
}

/// Sets a signal's action and gives the one before, unless it cannot be set.
fn set_action(signal: Signal, action: &libc::sigaction) -> Option<libc::sigaction> {
    let mut old = MaybeUninit::uninit();
    // SAFETY: both point to structures of the right type for the call's
    // duration, and every action given here is ours, whose handler is
    // async-signal-safe, or was in force before.
    let set = unsafe { libc::sigaction(signal as i32, action, old.as_mut_ptr()) };
    if set != 0 {
        return None;
    }
    // SAFETY: sigaction succeeded and has filled it in.
    Some(unsafe { old.assume_init() })
}
