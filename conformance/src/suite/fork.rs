//! Forked children of either side: an endpoint answers them with an error, and
//! nothing that they do or leave undone disturbs their parent.
#![allow(unsafe_code)] // fork(2) and _exit(2).

use std::ffi::CStr;
use std::time::Duration;

use lmt::Endpoint;
use lmt_core::endpoint::{OperationError, PeerId, SendMode, Source, TagMatch};
use lmt_core::mechanism::Lmt;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, execv};

use super::data::Scattered;
use super::death::{dead_word, told_in_time};
use super::link::{Link, unless_dead};
use super::wrapper::Wrapper;
use super::{Under, rendezvous};
use crate::group::Test;

const BYTES: usize = 3 << 20;

/// Ends this process at once, as a forked child should.
fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) is async-signal-safe and has no precondition.
    unsafe { nix::libc::_exit(code) }
}

/// Starts a child that runs `body` and exits with 0 if that says true.
fn child(body: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child may call only what is safe in a signal handler, since
    // other threads (the test harness's) may hold locks. `body` is written so:
    // an endpoint that answers Forked neither allocates nor locks, sleeping and
    // exec are system calls, and glibc keeps its allocator usable after fork.
    match unsafe { nix::unistd::fork() }.expect("a child can be forked") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => exit_now(i32::from(!body())),
    }
}

fn ends_well(child: Pid) {
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)), "the child has found a fault");
}

/// Whether every operation of an endpoint answers that this is a child.
fn answers_forked(endpoint: &Endpoint, peer: PeerId) -> bool {
    let forked = |result: Result<(), OperationError>| result == Err(OperationError::Forked);
    let mut byte = [0];
    forked(endpoint.send(peer, 1, &[1]).map(drop))
        && forked(endpoint.send(peer, 1, &[]).map(drop))
        && forked(endpoint.receive(Source::Any, TagMatch::any(), &mut byte).map(drop))
        && forked(endpoint.probe(Source::Any, TagMatch::any()).map(drop))
        && forked(endpoint.matched_probe(Source::Any, TagMatch::any()).map(drop))
        && forked(endpoint.progress().map(drop))
        && forked(endpoint.wait_for_progress(Some(Duration::from_secs(1))).map(drop))
}

/// Both sides fork while a message is on its way, and while nothing is.
pub fn forked_children<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        for round in 0..4 {
            let lingering = in_the_middle(link, round % 2);
            ends_well(child(|| answers_forked(&link.endpoint, link.other())));
            ends_well(child(|| execv::<&CStr>(c"/bin/true", &[c"true"]).is_ok()));
            // Its copies of pages and descriptors are there meanwhile.
            link.deliver(round % 2, || Scattered::contiguous(BYTES), || Scattered::contiguous(BYTES));
            for one in lingering {
                ends_well(one);
            }
        }
    });
    under.each_model(&rendezvous(), |link| {
        link.deliver(0, || Scattered::contiguous(BYTES), || Scattered::contiguous(BYTES));
        // A whole endpoint is dropped in the child: it must not say goodbye.
        ends_well(child(|| {
            // SAFETY: this child's copy of the endpoint is read once and never
            // used again by it, since `child` ends in `_exit` right after.
            drop(unsafe { std::ptr::read(&raw const link.endpoint) });
            true
        }));
        link.meet();
        link.deliver(1, || Scattered::contiguous(BYTES), || Scattered::contiguous(BYTES));
    });
}

/// A message from rank `from`; each side forks once it has begun. Its children
/// are still there at the end.
fn in_the_middle(link: &Link<'_>, from: u32) -> Vec<Pid> {
    let seed = link.next_seed();
    let out = Scattered::contiguous(BYTES).fill(seed);
    let mut into = Scattered::contiguous(BYTES);
    let linger = || {
        child(|| {
            let forked = answers_forked(&link.endpoint, link.other());
            std::thread::sleep(Duration::from_millis(30));
            forked
        })
    };
    let (children, result) = link.endpoint.scope(|scope| {
        let begun = if link.rank() == from {
            scope.send_segments(link.other(), seed, &out.slices(), SendMode::Standard)
        } else {
            scope.receive_segments(Source::Any, TagMatch::exactly(seed), &mut into.slices_mut())
        };
        let request = begun.expect("the other is there");
        let mut children = vec![linger()];
        // Some steps on, if there are any left.
        for _ in 0..3 {
            link.endpoint.progress().expect("this is the parent");
        }
        children.push(linger());
        (children, request.wait())
    });
    result.expect("arrives");
    if link.rank() != from {
        into.check(seed, BYTES);
    }
    link.carries(1);
    children
}

/// A peer dies while its forked child lives on, with copies of all descriptors:
/// the death is noticed all the same.
pub fn child_outlives_its_parent<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    for &model in under.models() {
        let drive = |parent: &mut crate::group::Parent| {
            if parent.next_report(1).as_deref() == Some("ready") && parent.wait_rank(1).is_some() {
                told_in_time(parent, 1);
            }
        };
        under.in_group(Test::new(under.test, 2).may_die(1), drive, |group| {
            let only = Wrapper::only((under.make)(), model);
            under.with_link(group, &rendezvous(), only, model, |link| {
                link.deliver(0, || Scattered::contiguous(BYTES), || Scattered::contiguous(BYTES));
                if link.rank() == 1 {
                    // Ended with the group if the test ends earlier.
                    child(|| {
                        std::thread::sleep(Duration::from_secs(3));
                        true
                    });
                    link.group.report("ready");
                    kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
                }
                let mut into = Scattered::contiguous(BYTES);
                let source = Source::Peer(link.other());
                let result = link.endpoint.receive_segments(source, TagMatch::any(), &mut into.slices_mut());
                assert_eq!(unless_dead(group, 1, result), None);
                group.report(dead_word(1));
            });
        });
    }
}
