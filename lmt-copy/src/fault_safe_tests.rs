use std::num::NonZeroUsize;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, ftruncate};

use super::*;

const PAGE_BYTES: usize = 4096;
const PAGES: usize = 64;

/// Pages of a file of which only the first `there` are there.
fn cut_file(there: usize) -> Range<usize> {
    let file = memfd_create(c"lmt-test", MFdFlags::MFD_CLOEXEC).expect("a memory file");
    ftruncate(&file, (there * PAGE_BYTES) as i64).expect("there is memory");
    let bytes = NonZeroUsize::new(PAGES * PAGE_BYTES).expect("not empty");
    let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: at an address of the kernel's choice, so nothing is replaced.
    let start = unsafe { mmap(None, bytes, both, MapFlags::MAP_SHARED, &file, 0) }.expect("addresses");
    let start = start.as_ptr().expose_provenance();
    start..start + bytes.get()
}

fn at(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Copies out of (or, for a put, into) attached memory from `offset` on.
fn copy(copier: &mut FaultSafeCopy, all: &Range<usize>, offset: usize, near: &mut [u8], puts: bool) -> bool {
    let (here, there, bytes) = (near.as_mut_ptr(), at(all.start + offset), near.len());
    let (target, source) = if puts { (there, here) } else { (here, there) };
    // SAFETY: one end is the slice, the other lies in `all`.
    unsafe { copier.copy(all.clone(), target, source, bytes, Distance::Near) }
}

#[test]
fn a_copy_fails_exactly_where_memory_is_missing_and_the_thread_goes_on() {
    const THERE: usize = 3 * PAGE_BYTES;
    let all = cut_file(3);
    let mut copier = FaultSafeCopy::new().expect("handlers");
    for bytes in [1, 8, 33, 64, 65, 255, 256, 257, 2049, 4096, 8191, 3 * PAGE_BYTES, 40 * PAGE_BYTES] {
        for offset in [0, 1, THERE - bytes.min(THERE), (THERE + 1).saturating_sub(bytes), THERE - 1, THERE] {
            for puts in [false, true] {
                let mut near = vec![7; bytes];
                let is_there = offset + bytes <= THERE;
                let is_copied = copy(&mut copier, &all, offset, &mut near, puts);
                assert_eq!(is_copied, is_there, "{bytes} bytes at {offset}, puts: {puts}");
            }
        }
    }
    for turn in 0..2000 {
        assert!(!copy(&mut copier, &all, THERE, &mut [0; 100], turn % 2 == 0));
        assert!(copy(&mut copier, &all, 0, &mut [0; 100], turn % 2 == 0));
    }
}

#[test]
fn memory_that_is_refused_is_a_fault_too() {
    let all = cut_file(PAGES);
    let start = std::ptr::NonNull::new(at(all.start).cast()).expect("mapped");
    // SAFETY: the test's own mapping.
    unsafe { nix::sys::mman::mprotect(start, PAGE_BYTES, ProtFlags::PROT_NONE) }.expect("it is mapped");
    let mut copier = FaultSafeCopy::new().expect("handlers");
    assert!(!copy(&mut copier, &all, 10, &mut [0; 1000], false));
    assert!(copy(&mut copier, &all, PAGE_BYTES, &mut [0; 1000], true));
}

#[test]
fn threads_fault_each_for_itself() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let all = cut_file(1);
                let mut copier = FaultSafeCopy::new().expect("handlers");
                for turn in 0..500 {
                    let (mut near, there) = ([0; 300], turn % 3 > 0);
                    assert_eq!(
                        copy(&mut copier, &all, if there { 0 } else { PAGE_BYTES }, &mut near, false),
                        there
                    );
                }
            });
        }
    });
}

#[test]
fn records_are_used_again() {
    let first = FaultSafeCopy::new().expect("handlers");
    let place = std::ptr::from_ref(first.0);
    drop(first);
    let again: Vec<_> = (0..3).map(|_| FaultSafeCopy::new().expect("handlers")).collect();
    let places: Vec<_> = again.iter().map(|one| std::ptr::from_ref(one.0)).collect();
    assert!(places.contains(&place) || records().count() > 3, "{places:?}");
    assert_ne!(places[0], places[1]);
}

/// How a child ends that runs `body`.
fn child(body: impl FnOnce() -> i32) -> WaitStatus {
    // SAFETY: the child calls what does not allocate or lock, and ends by _exit(2).
    match unsafe { fork() }.expect("a child") {
        ForkResult::Parent { child } => waitpid(child, None).expect("it ends"),
        // SAFETY: it has no precondition.
        ForkResult::Child => unsafe { libc::_exit(body()) },
    }
}

/// Whether a child has ended by a signal; a sanitizer, which handles it before, reports it and
/// exits with 1.
fn ended_by(status: WaitStatus, signal: Signal) -> bool {
    matches!(status, WaitStatus::Signaled(_, of, _) if of == signal)
        || matches!(status, WaitStatus::Exited(_, 1))
}

#[test]
fn other_faults_are_what_they_were() {
    let _copier = FaultSafeCopy::new().expect("handlers");
    let all = cut_file(0);
    let touch = |address: usize| {
        // SAFETY: no memory, which is the point: the process ends.
        i32::from(unsafe { at(address).read_volatile() })
    };
    assert!(ended_by(child(|| touch(all.start)), Signal::SIGBUS));
    assert!(ended_by(child(|| touch(8)), Signal::SIGSEGV));
    // The runtime's own handler takes itself away at the first, and the second counts.
    let sent = || (0..2).map(|_| nix::sys::signal::raise(Signal::SIGBUS)).map(|_| 0).sum();
    assert!(ended_by(child(sent), Signal::SIGBUS));
}

extern "C" fn leave(signal: c_int) {
    // SAFETY: it has no precondition.
    unsafe { libc::_exit(signal + 100) }
}

/// In a child that has no handlers of this yet.
#[test]
fn who_handled_them_before_is_called() {
    let all = cut_file(0);
    let ended = child(|| {
        let mut theirs = zeroed_action();
        theirs.sa_sigaction = leave as *const () as usize;
        // SAFETY: a handler of the right type.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const theirs, std::ptr::null_mut()) };
        let result = install();
        if result.is_err()
            || action(libc::SIGBUS).map_or(0, |now| now.sa_sigaction) == leave as *const () as usize
        {
            return 1;
        }
        // SAFETY: no memory, which is the point.
        i32::from(unsafe { at(all.start).read_volatile() })
    });
    // Where another test of this process was first, what it found counts.
    let is_first = INSTALLED.get().is_none();
    let expected = matches!(ended, WaitStatus::Exited(_, code) if code == libc::SIGBUS + 100);
    assert!(expected || !is_first, "{ended:?}");
}

#[test]
fn who_would_not_learn_of_a_fault_is_told_before() {
    let copier = FaultSafeCopy::new();
    assert!(copier.is_ok());
    let verdict = std::thread::spawn(|| {
        let mut set = SigSet::empty();
        set.add(Signal::SIGBUS);
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&set), None).expect("a mask");
        FaultSafeCopy::check()
    });
    assert_eq!(verdict.join().expect("no panic"), Err(FaultsUnhandled::Blocked));
    let replaced = child(|| {
        let mut theirs = zeroed_action();
        theirs.sa_sigaction = leave as *const () as usize;
        // SAFETY: a handler of the right type.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const theirs, std::ptr::null_mut()) };
        i32::from(FaultSafeCopy::check() != Err(FaultsUnhandled::Replaced))
    });
    assert!(matches!(replaced, WaitStatus::Exited(_, 0)), "{replaced:?}");
}
