//! What leaving a scope does, and what the types promise.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use common::{LIMIT, check, join_plain, pattern, until};
use lmt::{Endpoint, OperationError, SharedEndpoint, Source, TagMatch};
use lmt_conformance::{group, test_name};

const LONG: usize = 8 << 20;

#[test]
fn the_types_can_be_moved_or_shared() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Endpoint>();
    is_send::<lmt::Engine>();
    is_send::<SharedEndpoint>();
    is_sync::<SharedEndpoint>();
    is_send::<lmt::ProgressThread>();
}

/// Rank 0 begins operations and leaves the scope by `leave`; what was matched
/// is whole then, what was not is taken back.
fn leave_while_under_way(name: &str, leave: impl Fn(&Endpoint, lmt::PeerId, &mut [u8], &mut [u8], &[u8])) {
    group::run(name, 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let data = pattern(1, LONG);
        if group.rank() == 1 {
            endpoint.send(peers[0], 1, &data).expect("it is matched, so it arrives");
            endpoint.receive(Source::Any, TagMatch::exactly(4), &mut []).expect("told to go on");
            assert_eq!(
                endpoint.probe(Source::Any, TagMatch::exactly(3)),
                Ok(None),
                "the send was taken back"
            );
            endpoint.send(peers[0], 2, b"second").expect("sent");
            return;
        }
        let source = Source::Peer(peers[1]);
        until(&endpoint, "the announcement", || {
            endpoint.probe(source, TagMatch::exactly(1)).expect("no fork here").is_some()
        });
        let (mut matched, mut unmatched) = (vec![0; LONG], [7; 6]);
        leave(&endpoint, peers[1], &mut matched, &mut unmatched, &data);
        check(1, &matched);
        endpoint.send(peers[1], 4, &[]).expect("sent");
        let mut second = [0; 6];
        endpoint.receive(source, TagMatch::exactly(2), &mut second).expect("received");
        assert_eq!((&second, unmatched), (b"second", [7; 6]), "the receive was taken back");
    });
}

#[test]
fn leaving_takes_back_or_waits() {
    leave_while_under_way(test_name!(), |endpoint, peer, matched, unmatched, data| {
        endpoint.scope(|scope| {
            let _dropped = scope.receive(Source::Any, TagMatch::exactly(1), matched).expect("begun");
            let _dropped = scope.receive(Source::Any, TagMatch::exactly(2), unmatched).expect("begun");
            let _dropped = scope.send(peer, 3, data).expect("begun");
        });
    });
}

#[test]
fn a_panic_takes_back_or_waits() {
    leave_while_under_way(test_name!(), |endpoint, peer, matched, unmatched, data| {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            endpoint.scope(|scope| {
                let _dropped = scope.receive(Source::Any, TagMatch::exactly(1), matched).expect("begun");
                let _dropped = scope.receive(Source::Any, TagMatch::exactly(2), unmatched).expect("begun");
                let _dropped = scope.send_synchronous(peer, 3, data).expect("begun");
                std::panic::panic_any(5);
            })
        }));
        assert_eq!(panic.expect_err("it panicked").downcast_ref(), Some(&5));
    });
}

#[test]
#[allow(clippy::forget_non_drop)] // A request has no destructor today; it stays sound if it gets one.
fn forgotten_requests_are_taken_back_or_waited_for() {
    leave_while_under_way(test_name!(), |endpoint, peer, matched, unmatched, data| {
        endpoint.scope(|scope| {
            std::mem::forget(scope.receive(Source::Any, TagMatch::exactly(1), matched).expect("begun"));
            std::mem::forget(scope.receive(Source::Any, TagMatch::exactly(2), unmatched).expect("begun"));
            std::mem::forget(scope.send(peer, 3, &data[..LONG / 4]).expect("begun"));
        });
    });
}

#[test]
fn a_shared_endpoint_leaves_scopes_alike() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let shared = SharedEndpoint::new(endpoint);
        let _thread = shared.start_progress_thread().expect("a thread");
        let data = pattern(1, LONG);
        if group.rank() == 1 {
            shared.send(peers[0], 1, &data).expect("it is matched, so it arrives");
            group.barrier();
            shared.send(peers[0], 2, b"second").expect("sent");
            group.barrier();
            return;
        }
        let source = Source::Peer(peers[1]);
        while shared.probe(source, TagMatch::exactly(1)) == Ok(None) {
            std::thread::yield_now();
        }
        let (mut matched, mut unmatched) = (vec![0; LONG], [7; 6]);
        shared.scope(|scope| {
            let _dropped = scope.receive(Source::Any, TagMatch::exactly(1), &mut matched).expect("begun");
            let _dropped = scope.receive(Source::Any, TagMatch::exactly(2), &mut unmatched).expect("begun");
        });
        check(1, &matched);
        group.barrier();
        let mut second = [0; 6];
        shared.receive(source, TagMatch::exactly(2), &mut second).expect("received");
        assert_eq!((&second, unmatched), (b"second", [7; 6]));
        group.barrier();
    });
}

#[test]
fn scopes_nest() {
    let endpoint = Endpoint::new().expect("made");
    let me = endpoint.insert_peer(&endpoint.address()).expect("a peer");
    let (mut outer, mut inner) = ([0; 3], [0; 3]);
    endpoint.scope(|scope| {
        let receive = scope.receive(Source::Peer(me), TagMatch::exactly(1), &mut outer).expect("posted");
        endpoint.scope(|scope| {
            let _left = scope.receive(Source::Peer(me), TagMatch::any(), &mut inner).expect("posted");
        });
        endpoint.send(me, 1, b"abc").expect("sent");
        assert_eq!(receive.wait().map(|s| s.bytes), Ok(3));
        let never = scope.send_synchronous(me, 9, b"x").expect("begun");
        assert_eq!(never.cancel(), Err(OperationError::Cancelled));
    });
    assert_eq!((&outer, inner), (b"abc", [0; 3]));
}

#[test]
fn a_wait_without_measure_ends_when_something_moves() {
    for limit in [Some(Duration::MAX), Some(Duration::from_secs(u64::MAX)), None] {
        let (endpoint, other) = (Endpoint::new().expect("made"), Endpoint::new().expect("made"));
        let here = endpoint.address();
        let source = Source::Peer(endpoint.insert_peer(&other.address()).expect("a peer"));
        let sender = std::thread::spawn(move || {
            let to = other.insert_peer(&here).expect("a peer");
            other.send(to, 1, b"abc").map(|s| s.bytes)
        });
        while endpoint.probe(source, TagMatch::any()) == Ok(None) {
            assert_eq!(endpoint.wait_for_progress(limit), Ok(true));
        }
        assert_eq!(sender.join().expect("no panic"), Ok(3));
    }
}
