//! In a forked child an endpoint answers with an error and harms nothing.
#![allow(unsafe_code)] // fork(2) and _exit(2).

mod common;

use common::{LIMIT, check, join, pattern};
use std::sync::atomic::{AtomicBool, Ordering};

use lmt::{Endpoint, OperationError, PeerId, SharedEndpoint, Source, TagMatch};
use lmt_conformance::test_name;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// Runs `body` in a forked child, which ends with 0 if it does not panic.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the harness's thread holds no lock while the test runs, and other
    // threads hold none but an endpoint's and the allocator's, which forks
    // well; the child allocates and ends.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            // SAFETY: a child that hangs is killed, and its parent says so.
            unsafe { libc::alarm(10) };
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the process at once, which is always allowed.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
}

fn refuses_everything(endpoint: &Endpoint, peer: PeerId) {
    let (source, tags) = (Source::Peer(peer), TagMatch::any());
    let forked = Err(OperationError::Forked);
    assert_eq!(endpoint.send(peer, 1, b"x"), forked);
    assert_eq!(endpoint.send(peer, 1, &[0; 100_000]), forked);
    assert_eq!(endpoint.send_synchronous(peer, 1, b"x"), forked);
    assert_eq!(endpoint.receive(source, tags, &mut [0; 9]), forked);
    assert_eq!(endpoint.receive(Source::Any, tags, &mut [0; 9]), forked);
    assert_eq!(endpoint.probe(source, tags), Err(OperationError::Forked));
    assert!(matches!(endpoint.matched_probe(source, tags), Err(OperationError::Forked)));
    assert_eq!(endpoint.progress(), Err(OperationError::Forked));
    assert_eq!(endpoint.wait_for_progress(None), Err(OperationError::Forked));
    assert_eq!(endpoint.prepare_to_sleep(), Err(OperationError::Forked));
    assert_eq!(endpoint.insert_peer(&endpoint.address()), Err(OperationError::Forked));
    endpoint.scope(|scope| {
        assert!(matches!(scope.send(peer, 1, b"x"), Err(OperationError::Forked)));
    });
}

/// Both ranks exchange every kind of message.
fn exchange(endpoint: &Endpoint, other: PeerId, turn: u64) {
    for bytes in [8, 4096, 60_000, 1 << 20] {
        let data = pattern(turn, bytes);
        let mut into = vec![0; bytes];
        endpoint.scope(|scope| {
            let receive =
                scope.receive(Source::Peer(other), TagMatch::exactly(turn), &mut into).expect("posted");
            let send = scope.send(other, turn, &data).expect("begun");
            receive.wait().expect("received");
            send.wait().expect("sent");
        });
        check(turn, &into);
    }
}

fn children_harm_nothing(name: &str, mechanism: &str) {
    let test = lmt_conformance::group::Test::new(name, 2).time_limit(LIMIT).env("LMT_MECHANISM", mechanism);
    test.run(|group| {
        let (endpoint, peers) = join(group, |_| {});
        let me = group.rank() as usize;
        let (other, child_address) = (peers[1 - me], |turn: u32| group.id().member(50 + turn));
        exchange(&endpoint, other, 0);
        if me == 1 {
            for turn in 1..=5 {
                exchange(&endpoint, other, turn);
            }
            for turn in 0..2 {
                let address = lmt::Address::abstract_socket(child_address(turn));
                let child = endpoint.insert_peer(&address).expect("a peer");
                common::receive_and_check(&endpoint, child, 9, 9, 400_000);
                common::receive_and_check(&endpoint, child, 9, 9, 10);
            }
            exchange(&endpoint, other, 6);
            group.barrier();
            return;
        }
        // A child that asks for everything and ends.
        in_child(|| refuses_everything(&endpoint, other));
        exchange(&endpoint, other, 1);
        // A child in the middle of a transfer leaves the scope.
        let (data, mut into) = (pattern(2, 300_000), vec![0; 8]);
        endpoint.scope(|scope| {
            let _begun = scope.send(other, 77, &data).expect("begun");
            let _posted =
                scope.receive(Source::Peer(other), TagMatch::exactly(78), &mut into).expect("posted");
            let _moved = endpoint.progress().expect("no fork yet");
            in_child(|| {
                let into = &mut [0; 8];
                endpoint.scope(|scope| {
                    let posted = scope.receive(Source::Any, TagMatch::any(), into);
                    assert!(matches!(posted, Err(OperationError::Forked)));
                });
                assert_eq!(endpoint.progress(), Err(OperationError::Forked));
            });
        });
        exchange(&endpoint, other, 2);
        // A child that executes another program.
        in_child(|| {
            let status = std::process::Command::new("true").status();
            assert!(status.expect("true is there").success());
        });
        exchange(&endpoint, other, 3);
        // A child that drops what it inherited: this copy of the process's
        // memory holds an endpoint of its own.
        let mut kept = Some(endpoint);
        in_child(|| drop(kept.take()));
        let endpoint = kept.take().expect("the child took its own copy");
        exchange(&endpoint, other, 4);
        // A child that goes the way of exec itself.
        let (_keep, _alive) = std::io::pipe().expect("a pipe");
        in_child(|| {
            let program = c"/bin/true";
            let _never = nix::unistd::execv(program, &[program]);
        });
        exchange(&endpoint, other, 5);
        // An endpoint that a child makes works, also beside the inherited one.
        for turn in 0..2 {
            in_child(|| {
                let own = Endpoint::builder().id(child_address(turn)).build().expect("made in the child");
                let to = own.insert_peer(&group.address(1)).expect("a peer");
                own.send(to, 9, &pattern(9, 400_000)).expect("sent by the child");
                own.send(to, 9, &pattern(9, 10)).expect("sent by the child");
                assert_eq!(endpoint.progress(), Err(OperationError::Forked));
            });
        }
        exchange(&endpoint, other, 6);
        group.barrier();
    });
}

#[test]
fn children_harm_nothing_with_cma() {
    children_harm_nothing(test_name!(), "cma");
}

#[test]
fn children_harm_nothing_with_shm() {
    children_harm_nothing(test_name!(), "shm");
}

fn shared_refuses_everything(shared: &SharedEndpoint, peer: PeerId) {
    let (source, tags) = (Source::Peer(peer), TagMatch::any());
    assert_eq!(shared.send(peer, 1, b"x"), Err(OperationError::Forked));
    assert_eq!(shared.receive(source, tags, &mut [0; 9]), Err(OperationError::Forked));
    assert_eq!(shared.probe(source, tags), Err(OperationError::Forked));
    assert_eq!(shared.progress(), Err(OperationError::Forked));
    assert_eq!(shared.insert_peer(&shared.address()), Err(OperationError::Forked));
    assert_eq!(shared.peer_id(peer), None);
}

/// The lock is taken by a thread that the child does not have.
#[test]
fn children_of_a_process_whose_threads_hold_the_lock() {
    lmt_conformance::group::Test::new(test_name!(), 1).time_limit(LIMIT).run(|_| {
        let shared = SharedEndpoint::new(Endpoint::new().expect("made"));
        let me = shared.insert_peer(&shared.address()).expect("a peer");
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                // Relaxed: the flag carries no data.
                while !stop.load(Ordering::Relaxed) {
                    let _moved = shared.progress().expect("no fork here");
                }
            });
            // A child that hangs fails the test, and the other thread ends first.
            let forks = || {
                (0..40).for_each(|turn| {
                    // At another moment of the other thread each time.
                    std::thread::sleep(std::time::Duration::from_micros(100 + 37 * turn));
                    let mut kept = Some(shared.clone());
                    in_child(|| {
                        shared_refuses_everything(&shared, me);
                        shared.scope(|scope| assert!(scope.send(me, 1, b"x").is_err()));
                        drop(kept.take());
                    });
                })
            };
            let forked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(forks));
            stop.store(true, Ordering::Relaxed);
            forked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        shared.send(me, 1, b"abc").expect("the parent goes on");
        shared.receive(Source::Any, TagMatch::any(), &mut [0; 3]).expect("received");
    });
}

#[test]
fn a_child_drops_the_progress_thread_that_it_does_not_have() {
    lmt_conformance::group::Test::new(test_name!(), 1).time_limit(LIMIT).run(|_| {
        let shared = SharedEndpoint::new(Endpoint::new().expect("made"));
        let me = shared.insert_peer(&shared.address()).expect("a peer");
        let mut kept = Some((shared.start_progress_thread().expect("a thread"), shared.clone()));
        for _ in 0..10 {
            in_child(|| {
                drop(kept.take());
                shared_refuses_everything(&shared, me);
            });
        }
        shared.send(me, 1, b"abc").expect("the parent goes on");
        shared.receive(Source::Any, TagMatch::any(), &mut [0; 3]).expect("received");
    });
}

/// Who asks for any until none is left comes to an end in a child as well.
macro_rules! wait_for_any_in_a_child {
    ($name:ident, $make:expr) => {
        #[test]
        fn $name() {
            lmt_conformance::group::Test::new(test_name!(), 1).time_limit(LIMIT).run(|_| {
                let endpoint = $make(Endpoint::new().expect("made"));
                let (mut a, mut b) = ([0; 1], [0; 1]);
                endpoint.scope(|scope| {
                    let receive = |into| scope.receive(Source::Any, TagMatch::any(), into).expect("posted");
                    let mut requests = vec![receive(&mut a), receive(&mut b)];
                    in_child(|| {
                        for left in [1, 0] {
                            let answer = scope.wait_any(&mut requests);
                            assert_eq!(answer, Some((0, Err(OperationError::Forked))));
                            assert_eq!(requests.len(), left);
                        }
                        assert_eq!(scope.wait_any(&mut requests), None);
                    });
                });
            });
        }
    };
}

wait_for_any_in_a_child!(a_child_waits_for_any, |endpoint| endpoint);
wait_for_any_in_a_child!(a_child_waits_for_any_of_a_shared_endpoint, SharedEndpoint::new);
