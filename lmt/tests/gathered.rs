//! Announced messages that come one behind the other, which one call copies together: each goes
//! where it belongs, whatever its receive is like, and whoever dies meanwhile.

mod common;

use std::time::Duration;

use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::test_name;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const BYTES: usize = 48 << 10;
const WINDOW: u64 = 40;
/// This one of each window has too short a buffer, and the next one a buffer of two pieces.
const CUT: u64 = 17;
/// Where others want the cores, too, messages often come one by one.
const MOST_WINDOWS: u64 = 400;

fn test(name: &str) -> Test {
    test_of(name, 2)
}

fn test_of(name: &str, ranks: u32) -> Test {
    let test = Test::new(name, ranks).time_limit(common::LIMIT).env("LMT_EAGER_MAX", "0");
    common::configured_by(&common::folder(name), test.env("LMT_MECHANISM", "cma:get"))
}

/// Connected with this rank; whether the mechanism works with it.
fn greet(endpoint: &Endpoint, group: &Group, peer: PeerId) -> bool {
    endpoint.send(peer, 0, &[]).expect("the other is there");
    endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("the other is there");
    let reason = |(name, standing): (&str, lmt::mechanisms::Standing)| {
        (name == "cma").then_some(standing.reason).flatten()
    };
    let refusal = endpoint.standings(peer).into_iter().find_map(reason);
    if let Some(why) = &refusal {
        group.report(format!("skip: {why}"));
    }
    refusal.is_none()
}

/// One of two, connected; nothing where the mechanism does not work here.
fn open(group: &Group) -> Option<(Endpoint, PeerId)> {
    let (endpoint, peers) = common::join_plain(group);
    let peer = peers[1 - group.rank() as usize];
    greet(&endpoint, group, peer).then_some((endpoint, peer))
}

fn seed(rank: u32, window: u64, number: u64) -> u64 {
    (window * WINDOW + number) * 2 + u64::from(rank)
}

/// A window each way. Every byte of what arrives is checked, also where the peer dies; whether
/// it has not.
fn window(endpoint: &Endpoint, group: &Group, peer: PeerId, window: u64) -> bool {
    let rank = group.rank();
    let message = |rank, number| common::pattern(seed(rank, window, number), BYTES);
    let out: Vec<Vec<u8>> = (0..WINDOW).map(|number| message(rank, number)).collect();
    let length = |number| if number == CUT { BYTES / 3 } else { BYTES };
    let mut into: Vec<Vec<u8>> = (0..WINDOW).map(|number| vec![0; length(number)]).collect();
    let results = endpoint.scope(|scope| {
        let (source, mut requests) = (Source::Peer(peer), Vec::new());
        for (number, into) in (0..).zip(&mut into) {
            let tags = TagMatch::exactly(number);
            if number != CUT + 1 {
                requests.push(scope.receive(source, tags, into).ok()?);
                continue;
            }
            let (head, tail) = into.split_at_mut(100);
            let mut pieces = [std::io::IoSliceMut::new(head), std::io::IoSliceMut::new(tail)];
            requests.push(scope.receive_segments(source, tags, &mut pieces).ok()?);
        }
        for (number, out) in (0..).zip(&out) {
            requests.push(scope.send(peer, number, out).ok()?);
        }
        Some(scope.wait_all(requests))
    });
    let Some(results) = results else { return false };
    let mut all = true;
    for ((number, into), result) in (0..).zip(&into).zip(&results) {
        match result {
            Ok(status) => assert_eq!((status.bytes, number == CUT), (BYTES as u64, false)),
            Err(OperationError::Truncated { message_bytes, received_bytes, .. }) => {
                assert_eq!((number, *message_bytes), (CUT, BYTES as u64));
                assert_eq!(*received_bytes, length(CUT) as u64);
            }
            Err(_) => {
                all = false;
                continue;
            }
        }
        assert!(into[..] == message(1 - rank, number)[..into.len()], "message {number} is garbled");
    }
    all && results[WINDOW as usize..].iter().all(Result::is_ok)
}

fn gathered(endpoint: &Endpoint, peer: PeerId) -> u64 {
    endpoint.counters(peer).into_iter().map(|(_, counters)| counters.gathered).sum()
}

#[test]
fn each_goes_into_its_own_buffer() {
    let results = test(test_name!()).run(|group| {
        let Some((endpoint, peer)) = open(group) else { return };
        let were_gathered = (0..MOST_WINDOWS).any(|number| {
            assert!(window(&endpoint, group, peer, number), "window {number}");
            let verdict = number > 4 && gathered(&endpoint, peer) > WINDOW;
            common::verdict(&endpoint, peer, (group.rank() == 1).then_some(verdict))
        });
        assert!(were_gathered, "none were gathered");
    });
    common::skip_if_told("cma", &results.reports);
}

/// Two senders' windows come mixed: what the one says is never read at the other.
#[test]
fn what_two_send_at_once_is_not_mixed() {
    const SENDERS: u32 = 2;
    let results = test_of(test_name!(), 1 + SENDERS).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let rank = group.rank();
        let others = if rank == 0 { &peers[1..] } else { &peers[..1] };
        // Each is greeted, also where one has refused.
        if others.iter().filter(|peer| !greet(&endpoint, group, **peer)).count() > 0 {
            return;
        }
        if rank == 0 {
            let mut into = vec![vec![0; BYTES]; (u64::from(SENDERS) * WINDOW) as usize];
            let mut number = 0;
            // Where others want the cores, too, both seldom send at once.
            while number < MOST_WINDOWS && (number < 200 || gathered_of_all(&endpoint, &peers) < WINDOW) {
                receive_mixed(&endpoint, &peers, &mut into, number);
                number += 1;
            }
            assert!(gathered_of_all(&endpoint, &peers) >= WINDOW, "none were gathered");
            for peer in &peers[1..] {
                endpoint.send(*peer, 1, &[]).expect("it is there");
            }
            return;
        }
        let mut number = 0;
        loop {
            let mut go = [0];
            let status = endpoint.receive(Source::Peer(peers[0]), TagMatch::any(), &mut go);
            if status.expect("it is there").bytes == 0 {
                return;
            }
            let message = |n| common::pattern(seed(rank, number, n), BYTES);
            let out: Vec<Vec<u8>> = (0..WINDOW).map(message).collect();
            endpoint.scope(|scope| {
                let sends = (0..).zip(&out).map(|(n, out)| scope.send(peers[0], n, out).expect("sends"));
                let sends: Vec<_> = sends.collect();
                for sent in scope.wait_all(sends) {
                    sent.expect("it is received");
                }
            });
            number += 1;
        }
    });
    common::skip_if_told("cma", &results.reports);
}

/// One window of each sender, both begun at once; every byte is checked.
fn receive_mixed(endpoint: &Endpoint, peers: &[PeerId], into: &mut [Vec<u8>], window: u64) {
    endpoint.scope(|scope| {
        let mut requests = Vec::new();
        for (at, into) in (0..).zip(into.iter_mut()) {
            // In turns of both.
            let (rank, number) = (1 + at % 2, at / 2);
            let receive = scope.receive(Source::Peer(peers[rank as usize]), TagMatch::exactly(number), into);
            requests.push(receive.expect("posts"));
        }
        for peer in &peers[1..] {
            endpoint.send(*peer, 1, &[1]).expect("it is there");
        }
        for result in scope.wait_all(requests) {
            result.expect("it arrives");
        }
    });
    for (at, into) in (0..).zip(into.iter()) {
        let expected = common::pattern(seed(1 + (at % 2) as u32, window, at / 2), BYTES);
        assert!(*into == expected, "message {} of rank {} is garbled", at / 2, 1 + at % 2);
    }
}

fn gathered_of_all(endpoint: &Endpoint, peers: &[PeerId]) -> u64 {
    peers[1..].iter().map(|peer| gathered(endpoint, *peer)).sum()
}

/// Of the messages of who dies in the middle each arrives as it was sent or ends in an error.
#[test]
fn whoever_dies_meanwhile_garbles_nothing() {
    fn kill_it(parent: &mut Parent) {
        if parent.next_report(0).as_deref() == Some("gathers") {
            std::thread::sleep(Duration::from_millis(7));
            parent.kill(1, Signal::SIGKILL as i32);
        }
    }
    let results = test(test_name!()).may_die(1).run_with(kill_it, |group| {
        let Some((endpoint, peer)) = open(group) else { return };
        let mut were_gathered = 0;
        let died = (0..u64::MAX).any(|number| {
            let now = gathered(&endpoint, peer);
            if group.rank() == 0 && were_gathered == 0 && (now > 0 || number == MOST_WINDOWS) {
                group.report("gathers");
            }
            were_gathered = now;
            !window(&endpoint, group, peer, number)
        });
        assert!(died);
        if group.rank() == 1 {
            kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
        }
        assert!(were_gathered > 0, "none were gathered");
    });
    common::skip_if_told("cma", &results.reports);
}
