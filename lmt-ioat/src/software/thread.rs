//! Making the copying thread.

use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use lmt_core::errno_advice::thread_advice;
use lmt_core::mechanism::Unavailable;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::Pid;

/// Room for the segments of one system call (32 KiB) and what is around it.
const STACK_BYTES: usize = 256 << 10;

/// Starts a thread that takes no signals, on `cpu` if one is given.
///
/// # Errors
/// [`Unavailable`] when the system makes no thread or does not bind it.
pub(super) fn spawn(
    cpu: Option<usize>,
    life: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Unavailable> {
    let (tell, told) = mpsc::sync_channel(1);
    let body = move || {
        let bound = cpu.map_or(Ok(()), bind);
        let is_bound = bound.is_ok();
        // The one who waits for it cannot be gone.
        let _heard = tell.send(bound);
        if is_bound {
            life();
        }
    };
    // A thread begins with the mask of who makes it, so no signal can reach it
    // before it has blocked them.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let spawned = Builder::new().name("lmt-copy".to_owned()).stack_size(STACK_BYTES).spawn(body);
    if let Ok(before) = before {
        // A mask that the kernel gave a moment ago.
        let _set = before.thread_set_mask();
    }
    let thread = spawned.map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(0);
        let advice = thread_advice(Errno::from_raw(errno));
        Unavailable {
            errno,
            sentence: format!("the system makes no thread to copy with ({error}); {advice}"),
        }
    })?;
    match told.recv() {
        Ok(Err(errno)) => Err(cannot_bind(cpu.unwrap_or_default(), errno)),
        _ => Ok(thread),
    }
}

fn bind(cpu: usize) -> Result<(), Errno> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &cpus)
}

fn cannot_bind(cpu: usize, errno: Errno) -> Unavailable {
    Unavailable {
        errno: errno as i32,
        sentence: format!(
            "the copying thread cannot be bound to CPU {cpu} ({errno}); name one that this process may use"
        ),
    }
}

/// Whether this process gets a thread, bound to `cpu` if one is given, by
/// making one that does nothing: the caller's own stays where it is. (A thread
/// may leave the CPUs that its maker is bound to, as long as they are in the
/// cpuset; only trying tells.)
///
/// # Errors
/// [`Unavailable`] when it does not.
pub(super) fn try_one(cpu: Option<usize>) -> Result<(), Unavailable> {
    let thread = spawn(cpu, || ())?;
    // There is nothing in it that could panic.
    let _ended = thread.join();
    Ok(())
}
