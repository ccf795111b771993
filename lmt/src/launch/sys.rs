//! The system calls of launching that have no safe wrapper.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

/// The signals by which a user ends a program.
pub(super) const ENDING_SIGNALS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// Numbers that [`take_inherited_fd`] has given away.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Takes over the descriptor that [`super::Launcher::inherit_fd`] passed to this
/// process, and closes it on exec from now on.
///
/// `raw` is what the variable named there says. Call this before the process
/// opens descriptors of its own under numbers that a wrong variable could name.
///
/// # Errors
/// `EBADF` when no such descriptor is open, it is a standard stream or is closed
/// on exec, hence was not inherited, or it was taken before.
pub fn take_inherited_fd(raw: RawFd) -> io::Result<OwnedFd> {
    if raw <= libc::STDERR_FILENO {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: fcntl with this command takes no pointer; a number that is not
    // open gives EBADF.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFD) };
    // Rust's own descriptors are all closed on exec: this one is nobody's.
    if flags == -1 || flags & libc::FD_CLOEXEC != 0 || taken.contains(&raw) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: as above.
    let set = unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) };
    if set == -1 {
        return Err(io::Error::last_os_error());
    }
    taken.push(raw);
    // SAFETY: `raw` is open, was inherited from the program that ran this one (it
    // was not closed on exec, as every descriptor that Rust opens is), and is
    // given away once: so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A descriptor that becomes readable when the process ends (pidfd_open(2)).
pub(super) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What waiting for any child gave.
pub(super) enum Reaped {
    /// This child has ended with this status.
    Child(i32, i32),
    /// Children are left, and none of them has ended.
    NoneYet,
    /// There are no children.
    NoChildren,
}

/// Reaps one child without waiting. nix's wrapper loses the status of a child
/// that a real-time signal killed.
pub(super) fn reap() -> Reaped {
    let mut status = 0;
    // SAFETY: `status` is a live, writable integer.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    match pid {
        0 => Reaped::NoneYet,
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) => Reaped::NoChildren,
        -1 => Reaped::NoneYet,
        pid => Reaped::Child(pid, status),
    }
}

/// Sends a signal to a child that has not been reaped.
pub(super) fn signal_child(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes two integers. That `pid` is positive and an unreaped
    // child of ours, hence no stranger, is the caller's business.
    let sent = unsafe { libc::kill(pid, signal) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the signal is ignored, as under nohup(1).
pub(super) fn is_ignored(signal: Signal) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null action only asks; `old` has room for the answer.
    let asked = unsafe { libc::sigaction(signal as i32, std::ptr::null(), old.as_mut_ptr()) };
    if asked != 0 {
        return false;
    }
    // SAFETY: sigaction succeeded and has filled it in.
    let old = unsafe { old.assume_init() };
    old.sa_sigaction == libc::SIG_IGN
}

/// Sets a signal's disposition to ignored or default.
fn set_ignored(signal: Signal, ignored: bool) {
    let handler = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither disposition runs code of ours, and a `Signal` is valid.
    unsafe { libc::signal(signal as i32, handler) };
}

/// Ignores the signals by which a user ends a program, and says which of them
/// were not ignored before.
pub(super) fn ignore_ending_signals() -> Vec<Signal> {
    let changed: Vec<Signal> = ENDING_SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    for signal in &changed {
        set_ignored(*signal, true);
    }
    changed
}

/// Keeps a descriptor open over the exec that follows. Async-signal-safe.
fn keep_over_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl with this command takes no pointer.
    let set = unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Prepares the supervisor between fork and exec: these descriptors stay open
/// and it leads a process group of its own.
pub(super) fn prepare_supervisor(command: &mut Command, keep: Vec<RawFd>) {
    let prepare = move || {
        keep.iter().try_for_each(|fd| keep_over_exec(*fd))?;
        nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        Ok(())
    };
    // SAFETY: after fork in a program with threads only async-signal-safe calls
    // are allowed: the closure makes system calls (fcntl, setpgid),
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// How a rank's process differs from the supervisor that forks it.
pub(super) struct RankSetup {
    pub keep: Vec<RawFd>,
    pub supervisor_pid: i32,
    pub launcher_pgid: i32,
    pub cpu: Option<CpuSet>,
    /// Signals that the supervisor ignores and the rank does not.
    pub default_signals: Vec<Signal>,
}

/// Prepares a rank between fork and exec.
pub(super) fn prepare_rank(command: &mut Command, setup: RankSetup) {
    let prepare = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The supervisor may have died before the line above took effect.
        if nix::unistd::getppid().as_raw() != setup.supervisor_pid {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // Fails when the launcher's group has just gone; then so will this rank.
        let _ = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(setup.launcher_pgid));
        for signal in &setup.default_signals {
            set_ignored(*signal, false);
        }
        // By it a group is ended; a launcher that waits for signals has it blocked.
        SigSet::from_iter([Signal::SIGTERM]).thread_unblock()?;
        if let Some(cpu) = &setup.cpu {
            sched_setaffinity(Pid::from_raw(0), cpu)?;
        }
        setup.keep.iter().try_for_each(|fd| keep_over_exec(*fd))
    };
    // SAFETY: the closure only makes async-signal-safe system calls (prctl,
    // getppid, setpgid, sigaction, sigprocmask, sched_setaffinity, fcntl), allocates nothing
    // (errors from an errno do not) and takes no lock.
    unsafe { command.pre_exec(prepare) };
}
