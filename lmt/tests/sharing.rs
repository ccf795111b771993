//! Processes that share one core, each polling in a loop of its own until the other has
//! answered: by every call that looks for messages.

mod common;

use std::time::{Duration, Instant};

use common::{LIMIT, join_plain};
use lmt::{Endpoint, PeerId, SharedEndpoint, Source, TagMatch};
use lmt_conformance::group::{self, allowed_cpus};
use lmt_conformance::quiet::Load;
use lmt_conformance::test_name;

const ROUNDS: u32 = 40;
/// The fastest of so many: others may have the core during some.
const TRIES: usize = 5;
/// A round trip that waits for the scheduler takes some ticks of it, 16 ms and more; one in
/// which both give the core away takes some microseconds.
const MOST: Duration = Duration::from_millis(1);

/// Rounds of ping-pong between two ranks on one CPU, of which each looks by `look` until
/// what it waits for is there and then receives it.
fn take_turns(
    send: impl Fn(u64),
    receive: impl Fn(TagMatch),
    look: impl Fn(TagMatch) -> bool,
    is_first: bool,
) -> Duration {
    let wait_for = |round| {
        while !look(TagMatch::exactly(round)) {}
        receive(TagMatch::exactly(round));
    };
    let once = |of| {
        let begin = Instant::now();
        for round in (of * ROUNDS..(of + 1) * ROUNDS).map(u64::from) {
            if is_first {
                send(round);
                wait_for(round);
            } else {
                wait_for(round);
                send(round);
            }
        }
        begin.elapsed() / ROUNDS
    };
    (0..TRIES as u32).map(once).min().unwrap_or_default()
}

/// Both ranks on one CPU; each has the other for its peer, and tells what a round trip takes.
fn on_one_core(name: &str, body: impl Fn(Endpoint, PeerId, bool) -> Duration) {
    let cpu = allowed_cpus().into_iter().next().expect("a CPU to run on");
    let (load, mut took) = (Load::begin(), Duration::ZERO);
    group::Test::new(name, 2).time_limit(LIMIT).pin(&[cpu, cpu]).run_with(
        |parent| {
            let ns = parent.next_report(0).expect("it tells how long it took");
            took = Duration::from_nanos(ns.parse().expect("a number"));
        },
        |group| {
            let (endpoint, peers) = join_plain(group);
            let is_first = group.rank() == 0;
            let round_trip = body(endpoint, peers[usize::from(is_first)], is_first);
            if is_first {
                group.report(round_trip.as_nanos());
            }
            group.barrier();
        },
    );
    load.took_less("a round trip of two processes on one core", took, MOST);
}

const TURN: &[u8] = b"turn";

#[test]
fn who_probes_in_a_loop_lets_the_other_run() {
    on_one_core(test_name!(), |endpoint, peer, is_first| {
        let from = Source::Peer(peer);
        let send = |round| assert!(endpoint.send(peer, round, TURN).is_ok());
        let receive = |tags| assert!(endpoint.receive(from, tags, &mut [0; TURN.len()]).is_ok());
        take_turns(send, receive, |tags| endpoint.probe(from, tags).expect("no fork").is_some(), is_first)
    });
}

#[test]
fn who_probes_through_a_lock_lets_the_other_run() {
    on_one_core(test_name!(), |endpoint, peer, is_first| {
        let (endpoint, from) = (SharedEndpoint::new(endpoint), Source::Peer(peer));
        let send = |round| assert!(endpoint.send(peer, round, TURN).is_ok());
        let receive = |tags| assert!(endpoint.receive(from, tags, &mut [0; TURN.len()]).is_ok());
        take_turns(send, receive, |tags| endpoint.probe(from, tags).expect("no fork").is_some(), is_first)
    });
}
