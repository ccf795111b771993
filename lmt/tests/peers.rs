//! Peers come, go, come again, and are removed.

use std::time::{Duration, Instant};

use lmt::buffer::{Access, Buffer, Segment};
use lmt::{Endpoint, EndpointId, OperationError, PeerError, PeerId, SendMode, Source, TagMatch};

const LIMIT: Duration = Duration::from_secs(20);

fn endpoint(id: EndpointId) -> Endpoint {
    let change = |config: &mut lmt::Config| {
        config.max_peers = 4;
        config.unexpected_max_bytes = 64 << 10;
        config.close_timeout_ms = 20;
    };
    Endpoint::builder().id(id).configure(change).build().expect("an endpoint")
}

/// Lends memory that the caller keeps until the engine is gone.
fn lend(data: &[u8]) -> Buffer {
    // SAFETY: the one caller keeps `data` unchanged until it has dropped the
    // engine that it sends with, and the other end never asks for the bytes.
    unsafe { Buffer::new(&[Segment::of(data)], Access::Read) }.expect("possible memory")
}

/// Drives two endpoints of this process until `done`.
fn drive(one: &Endpoint, other: &Endpoint, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "nothing comes of it");
        one.progress().expect("progress");
        other.progress().expect("progress");
    }
}

/// One message each way, of `bytes` bytes.
fn exchange(one: &Endpoint, to_other: PeerId, other: &Endpoint, to_one: PeerId, bytes: usize) {
    for (from, to, at, source) in [(one, to_other, other, to_one), (other, to_one, one, to_other)] {
        let (data, mut into) = (vec![7; bytes], vec![0; bytes]);
        let (mut sent, mut received) = (None, None);
        from.scope(|sending| {
            at.scope(|receiving| {
                let into = &mut into;
                let mut receive = Some(
                    receiving.receive(Source::Peer(source), TagMatch::exactly(5), into).expect("receive"),
                );
                let mut send = Some(sending.send(to, 5, &data).expect("send"));
                drive(from, at, || {
                    if let Some(request) = receive.take() {
                        request.test().map_or_else(|again| receive = Some(again), |r| received = Some(r));
                    }
                    if let Some(request) = send.take() {
                        request.test().map_or_else(|again| send = Some(again), |r| sent = Some(r));
                    }
                    send.is_none() && receive.is_none()
                });
            });
        });
        assert_eq!(sent.expect("ended").map(|s| s.bytes), Ok(bytes as u64));
        assert_eq!(received.expect("ended").map(|s| s.bytes), Ok(bytes as u64));
        assert_eq!(data, into);
    }
}

fn meet(one: &Endpoint, other: &Endpoint) -> (PeerId, PeerId) {
    let to_other = one.insert_peer(&other.address()).expect("insert_peer");
    (to_other, other.insert_peer(&one.address()).expect("insert_peer"))
}

#[test]
fn a_removed_peer_is_nobody_and_can_be_met_again() {
    let group = lmt::random_id().expect("random bytes");
    let (one, other) = (endpoint(group), endpoint(group.member(1)));
    let (mut to_other, mut to_one) = meet(&one, &other);
    for _ in 0..10 {
        exchange(&one, to_other, &other, to_one, 100_000);
        let old = to_other;
        let mut into = [0; 8];
        one.scope(|scope| {
            let waiting = scope.receive(Source::Peer(old), TagMatch::exactly(9), &mut into).expect("receive");
            one.remove_peer(old).expect("it is known");
            let removed = PeerError::Removed { id: other.id() };
            assert_eq!(waiting.wait(), Err(OperationError::Peer(removed)));
        });
        assert_eq!(one.send(old, 5, b"x"), Err(OperationError::UnknownPeer));
        assert_eq!(
            one.receive(Source::Peer(old), TagMatch::any(), &mut []),
            Err(OperationError::UnknownPeer)
        );
        assert_eq!(one.remove_peer(old), Err(OperationError::UnknownPeer));
        assert_eq!((one.peer_id(old), one.mechanism_status(old).len()), (None, 0));
        // The other side hears of it, and removes its name for this one too.
        drive(&one, &other, || {
            matches!(other.send(to_one, 9, b""), Err(OperationError::Peer(PeerError::Dead { .. })))
        });
        other.remove_peer(to_one).expect("it is known");
        (to_other, to_one) = meet(&one, &other);
        assert_ne!(old, to_other);
    }
}

#[test]
fn peers_that_nobody_named_make_room_for_others() {
    let group = lmt::random_id().expect("random bytes");
    let host = endpoint(group);
    for number in 1..30 {
        let mut guest = endpoint(group.member(number)).into_engine();
        let to_host = guest.insert_peer(&host.address()).expect("insert_peer");
        // Announced only, and never received: nothing of it stays.
        let data = vec![1; 100_000];
        guest.send(to_host, 1, lend(&data), SendMode::Standard).expect("send");
        for _ in 0..100_000 {
            host.progress().expect("progress");
            guest.progress().expect("progress");
            if !guest.mechanism_status(to_host).is_empty() {
                break;
            }
        }
        for _ in 0..1000 {
            host.progress().expect("progress");
            guest.progress().expect("progress");
        }
        drop(guest);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            host.progress().expect("progress");
        }
    }
}

#[test]
fn the_same_id_comes_again_and_what_it_left_stays_its_own() {
    let group = lmt::random_id().expect("random bytes");
    let host = endpoint(group);
    let mut to_guest = None;
    for life in 0..20_u8 {
        let guest = endpoint(group.member(1));
        let to_host = guest.insert_peer(&host.address()).expect("insert_peer");
        let to_guest =
            *to_guest.get_or_insert_with(|| host.insert_peer(&guest.address()).expect("insert_peer"));
        // Left unexpected, and received when another lives under the id.
        let farewell = [life; 3000];
        guest.scope(|scope| {
            let mut send = Some(scope.send(to_host, 77, &farewell).expect("send"));
            drive(&host, &guest, || {
                if let Some(request) = send.take() {
                    send = request.test().map_or_else(Some, |result| {
                        assert_eq!(result.map(|s| s.bytes), Ok(3000));
                        None
                    });
                }
                send.is_none()
            });
        });
        drive(&host, &guest, || {
            host.probe(Source::Peer(to_guest), TagMatch::exactly(77)).is_ok_and(|p| p.is_some())
        });
        if life > 0 {
            let mut into = [0; 3000];
            host.receive(Source::Peer(to_guest), TagMatch::exactly(77), &mut into).expect("it is here");
            assert_eq!(into, [life - 1; 3000]);
        }
        // More than the other side keeps for one sender: the account is right.
        (0..20).for_each(|_| exchange(&host, to_guest, &guest, to_host, 4000));
        exchange(&host, to_guest, &guest, to_host, 400_000);
    }
}

#[test]
fn a_peer_is_named_by_a_number_too() {
    let (one, other) = (Endpoint::new().expect("an endpoint"), Endpoint::new().expect("an endpoint"));
    let peer = one.insert_peer(&other.address()).expect("room for a peer");
    let number = peer.to_raw();
    assert_eq!(PeerId::from_raw(number), peer);
    one.remove_peer(peer).expect("it is known");
    let again = one.insert_peer(&other.address()).expect("room for a peer");
    assert_ne!(again.to_raw(), number, "an old number names nobody");
    for strange in [number, u64::MAX, again.to_raw() + 1] {
        assert_eq!(one.send(PeerId::from_raw(strange), 1, b""), Err(OperationError::UnknownPeer));
    }
}
