//! Announced messages that come one behind the other, which one call copies together: each goes
//! where it belongs, whatever its receive is like, and whoever dies meanwhile.

mod common;

use std::time::Duration;

use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::{require, test_name};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const BYTES: usize = 48 << 10;
const WINDOW: u64 = 40;
/// This one of each window has too short a buffer, and the next one a buffer of two pieces.
const CUT: u64 = 17;
/// Where others want the cores, too, messages often come one by one.
const MOST_WINDOWS: u64 = 400;

fn test(name: &str) -> Test {
    let test = Test::new(name, 2).time_limit(common::LIMIT).env("LMT_EAGER_MAX", "0");
    common::configured_by(&common::folder(name), test.env("LMT_MECHANISM", "cma:get"))
}

/// Connected; nothing where the mechanism does not work here.
fn open(group: &Group) -> Option<(Endpoint, PeerId)> {
    let (endpoint, peers) = common::join_plain(group);
    let peer = peers[1 - group.rank() as usize];
    endpoint.send(peer, 0, &[]).expect("the other is there");
    endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("the other is there");
    let reason = |(name, standing): (&str, lmt::mechanisms::Standing)| {
        (name == "cma").then_some(standing.reason).flatten()
    };
    if let Some(why) = endpoint.standings(peer).into_iter().find_map(reason) {
        group.report(format!("skip: {why}"));
        return None;
    }
    Some((endpoint, peer))
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

fn skip_if_told(reports: &[Vec<String>]) {
    if let Some(why) = reports.iter().flatten().find_map(|line| line.strip_prefix("skip: ")) {
        require::skipped("cma", why);
    }
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
    skip_if_told(&results.reports);
}

/// Of the messages of who dies in the middle each arrives as it was sent or ends in an error.
#[test]
fn whoever_dies_meanwhile_garbles_nothing() {
    fn kill_it(parent: &mut Parent) {
        if parent.next_report(1).as_deref() == Some("begins") {
            std::thread::sleep(Duration::from_millis(30));
            parent.kill(1, Signal::SIGKILL as i32);
        }
    }
    let results = test(test_name!()).may_die(1).run_with(kill_it, |group| {
        let Some((endpoint, peer)) = open(group) else { return };
        if group.rank() == 1 {
            group.report("begins");
        }
        let died = (0..u64::MAX).any(|number| !window(&endpoint, group, peer, number));
        assert!(died);
        if group.rank() == 1 {
            kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
        }
    });
    skip_if_told(&results.reports);
}
