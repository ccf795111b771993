#![allow(unsafe_code)] // Forks, and lends memory to operations.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::*;
use crate::base::process::PeerProcess;
use crate::base::test_alone;
use crate::memory::buffer::{Access, Buffer, Segment};
use crate::memory::shared_memory::SharedMemory;
use crate::vocabulary::transfer::Interval;
use proptest::prelude::*;

fn lent(slice: &[u8]) -> Buffer {
    // SAFETY: the tests keep their slices for as long as the buffers.
    unsafe { Buffer::new(&[Segment::of(slice)], Access::Read) }.unwrap()
}

fn are_shared(data: &[u8]) -> bool {
    crate::memory::buffer::lend(data, is_shared)
}

/// Seems to live for ever: nothing says otherwise.
fn living() -> Arc<PeerProcess> {
    Arc::new(PeerProcess::new(1, None))
}

fn offer(buffer: &SharedBuffer) -> Offer {
    let whole = Interval { start: 0, end: buffer.len() as u64 };
    Offer::new(&lent(buffer), whole, &living(), |_| {}).unwrap()
}

/// The arena as a peer sees it.
fn mapped(arena: &Arena) -> SharedMemory {
    let descriptor: OwnedFd = arena.descriptor().unwrap();
    SharedMemory::attach(descriptor, HEAD_BYTES, usize::MAX).unwrap()
}

#[test]
fn what_is_written_here_is_read_there() {
    let mut buffer = alloc(100_000).unwrap();
    buffer.fill(7);
    let theirs = mapped(buffer.arena());
    let start = theirs.base().as_ptr().wrapping_add(buffer.offset());
    // SAFETY: the buffer's bytes, mapped a second time and unchanged meanwhile.
    assert!(unsafe { std::slice::from_raw_parts(start, 100_000) }.iter().all(|byte| *byte == 7));
}

#[test]
fn small_ones_share_pages_and_large_ones_begin_at_one() {
    let small: Vec<SharedBuffer> = (1..=64).map(|bytes| alloc(bytes).unwrap()).collect();
    for buffer in &small {
        assert!(buffer.as_ptr().addr().is_multiple_of(LINE_BYTES));
        assert_eq!(buffer.arena().id(), small[0].arena().id());
    }
    let span = small.iter().map(|b| b.as_ptr().addr()).max().unwrap()
        - small.iter().map(|b| b.as_ptr().addr()).min().unwrap();
    assert!(span < 1 << 20, "64 buffers of a line each span {span} bytes");
    assert!(alloc(4096).unwrap().as_ptr().addr().is_multiple_of(PAGE_BYTES));
}

#[test]
fn one_without_bytes_is_empty() {
    let buffer = alloc(0).unwrap();
    assert!(buffer.is_empty());
    assert!(!is_shared(&lent(&buffer)), "there is nothing to map");
}

#[test]
fn only_memory_within_one_buffer_is_shared() {
    let (buffer, private) = (alloc(8192).unwrap(), vec![0; 8192]);
    assert!(is_shared(&lent(&buffer)));
    assert!(is_shared(&lent(&buffer[17..4099])));
    assert!(!is_shared(&lent(&private)));
    let mixed = [Segment::of(&buffer), Segment::of(&private)];
    // SAFETY: both slices live as long as it does.
    assert!(!is_shared(&unsafe { Buffer::new(&mixed, Access::Read) }.unwrap()));
    let past = Segment { address: buffer.as_ptr().expose_provenance(), bytes: 8193 };
    // SAFETY: it is not accessed.
    assert!(!is_shared(&unsafe { Buffer::new(&[past], Access::Read) }.unwrap()));
}

#[test]
fn impossible_lengths_are_refused_in_words() {
    for bytes in [usize::MAX, usize::MAX / 2, 1 << 60] {
        let error = alloc(bytes).unwrap_err().to_string();
        assert!(error.starts_with("a shared buffer needs"), "{error}");
    }
    alloc(1).unwrap();
}

#[test]
fn memory_that_a_peer_copies_is_not_given_to_somebody_else() {
    let buffer = alloc(40 << 20).unwrap(); // In an arena of its own.
    let theirs = mapped(buffer.arena());
    let id = buffer.arena().id();
    let offer = offer(&buffer);
    let (line, generation) = (offer.line(), offer.generation());
    let lease = lease_in(&theirs, line).unwrap();
    assert!(lease.take(generation));
    drop(offer); // The transfer is over here, and not there.
    drop(buffer);
    drop(alloc(64).unwrap());
    assert!(crate::region::shared_buffer::arena(id).is_some(), "the peer still copies");
    lease.done(generation);
    drop(alloc(64).unwrap());
    assert!(crate::region::shared_buffer::arena(id).is_none(), "the peer is done");
}

#[test]
fn a_dead_peer_holds_nothing() {
    // SAFETY: the child ends at once.
    let ForkResult::Parent { child } = (unsafe { fork() }).unwrap() else {
        // SAFETY: ends the child without running anything of its parent's.
        unsafe { libc::_exit(0) };
    };
    // SAFETY: pidfd_open takes numbers only.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0) };
    // SAFETY: a new descriptor that nobody else owns.
    let pidfd = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(raw as i32) };
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
    let dead = Arc::new(PeerProcess::new(child.as_raw(), Some(pidfd)));
    let buffer = alloc(40 << 20).unwrap();
    let theirs = mapped(buffer.arena());
    let id = buffer.arena().id();
    let whole = Interval { start: 0, end: 100 };
    let offer = Offer::new(&lent(&buffer), whole, &dead, |_| {}).unwrap();
    assert!(lease_in(&theirs, offer.line()).unwrap().take(offer.generation()));
    drop(offer);
    drop(buffer);
    drop(alloc(64).unwrap());
    assert!(crate::region::shared_buffer::arena(id).is_none());
}

#[test]
fn a_late_peer_cannot_begin() {
    let buffer = alloc(4096).unwrap();
    let theirs = mapped(buffer.arena());
    let offer = offer(&buffer);
    let (line, generation) = (offer.line(), offer.generation());
    drop(offer);
    assert!(!lease_in(&theirs, line).unwrap().take(generation));
}

#[test]
fn leases_run_out_in_words_and_come_back() {
    let buffer = alloc(40 << 20).unwrap();
    let offers: Vec<Offer> = (0..LEASES).map(|_| offer(&buffer)).collect();
    let whole = Interval { start: 0, end: 1 };
    let one_more = || Offer::new(&lent(&buffer), whole, &living(), |_| {});
    assert_eq!(one_more().unwrap_err(), OfferError::TooMany);
    drop(offers);
    one_more().unwrap();
}

#[test]
fn pieces_of_several_arenas_are_not_offered_as_one() {
    let (a, b) = (alloc(40 << 20).unwrap(), alloc(40 << 20).unwrap());
    // SAFETY: both live as long as it does.
    let both = unsafe { Buffer::new(&[Segment::of(&a[..9]), Segment::of(&b[..9])], Access::Read) }.unwrap();
    assert!(is_shared(&both));
    let whole = Interval { start: 0, end: 18 };
    assert_eq!(Offer::new(&both, whole, &living(), |_| {}).unwrap_err(), OfferError::Apart);
    // The part of one of them is.
    Offer::new(&both, Interval { start: 0, end: 9 }, &living(), |_| {}).unwrap();
}

#[test]
fn a_forked_child_has_none_of_it_and_makes_its_own() {
    // The child panics, and a panic takes locks.
    if !test_alone::passes("region::shared_buffer::tests::a_forked_child_has_none_of_it_and_makes_its_own") {
        return;
    }
    let mut buffer = alloc(1 << 20).unwrap();
    buffer.fill(7);
    let lease = offer(&buffer);
    // SAFETY: no other test runs in this process, the harness's own thread waits
    // for the end of this one and holds no lock that the child takes (the
    // allocator of glibc is made for forks), and the child ends in `_exit`.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let is_well = || {
                let shared = is_shared(&lent(&[0; 64]));
                let touched = std::panic::catch_unwind(|| buffer[0]).is_err();
                let Ok(mut own) = alloc(1 << 20) else { return false };
                own.fill(9);
                drop(lease);
                drop(buffer);
                !shared && touched && own.iter().all(|byte| *byte == 9) && is_shared(&lent(&own))
            };
            std::panic::set_hook(Box::new(|_| {}));
            let code = i32::from(!is_well());
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(code) };
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert!(buffer.iter().all(|byte| *byte == 7));
    drop(lease);
    let again = offer(&buffer);
    let theirs = mapped(buffer.arena());
    assert!(
        lease_in(&theirs, again.line()).unwrap().take(again.generation()),
        "the child left the lease alone"
    );
}

#[test]
fn several_threads_allocate_at_once() {
    std::thread::scope(|scope| {
        for number in 0..4u8 {
            scope.spawn(move || {
                for bytes in (1..200).map(|step| step * 997) {
                    let mut buffer = alloc(bytes).unwrap();
                    assert!(buffer.iter().all(|byte| *byte == 0));
                    buffer.fill(number + 1);
                    std::thread::yield_now();
                    assert!(buffer.iter().all(|byte| *byte == number + 1));
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    /// Buffers are zeroed, aligned, and nobody else's, whatever was there before.
    #[test]
    fn random_lives(steps in prop::collection::vec((0u32..20, 0usize..64, any::<prop::sample::Index>()), 1..60)) {
        let mut live: Vec<(SharedBuffer, u8)> = Vec::new();
        for (number, (shift, more, which)) in (1u8..).zip(steps) {
            if live.len() > 8 {
                let (buffer, name) = live.swap_remove(which.index(live.len()));
                prop_assert!(buffer.iter().all(|byte| *byte == name));
            }
            let mut buffer = alloc((1 << shift) + more).unwrap();
            prop_assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(number);
            live.push((buffer, number));
        }
        for (buffer, name) in live {
            prop_assert!(buffer.iter().all(|byte| *byte == name));
        }
    }
}

/// What was looked up before is not taken for what is there now.
#[test]
fn memory_of_a_dropped_buffer_is_not_shared() {
    // Others would be given it.
    if !test_alone::passes("region::shared_buffer::tests::memory_of_a_dropped_buffer_is_not_shared") {
        return;
    }
    let kept = alloc(10_000).unwrap();
    for _ in 0..4 {
        let first = alloc(10_000).unwrap();
        let (start, bytes) = (first.as_ptr(), first.len());
        assert!(are_shared(&first[1..]) && are_shared(&kept) && are_shared(&first));
        let past = std::ptr::slice_from_raw_parts(start, bytes);
        drop(first);
        let registry = crate::region::shared_buffer::registry::existing().expect("there is one");
        assert!(!registry.has(past.addr(), past.len()));
        assert!(are_shared(&kept), "what is kept still is");
    }
    // A part of it is, and nothing that reaches beyond it.
    assert!(are_shared(&kept[9_999..]));
    let registry = crate::region::shared_buffer::registry::existing().expect("there is one");
    assert!(!registry.has(kept.as_ptr().addr() + 1, kept.len().next_multiple_of(4096)));
    assert!(!registry.has(kept.as_ptr().addr(), usize::MAX));
}
