//! What is chosen at run time, between two real processes and mechanisms that
//! take as long as the test says.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::folder;
use lmt::buffer::Buffer;
use lmt::keys::Value;
use lmt::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Step, Unavailable,
};
use lmt::selection::{Source as Origin, Taken};
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test, allowed_cpus};
use lmt_conformance::test_name;

const BYTES: usize = 64 << 10;
const SLOW_US: u64 = 300;
const QUICK_US: u64 = 60;
/// Messages of each rank between two looks, and the most looks.
const ROUND: u32 = 200;
const MOST_ROUNDS: u32 = 50;

/// What one message takes by each of the two, in this process, in us.
static FIRST_US: AtomicU64 = AtomicU64::new(SLOW_US);
static SECOND_US: AtomicU64 = AtomicU64::new(QUICK_US);

/// A mechanism that moves no bytes and takes its time for that.
struct Timed {
    name: &'static str,
    takes_us: &'static AtomicU64,
}

impl Lmt for Timed {
    type Peer = ();
    type Transfer = u64;

    fn name(&self) -> &'static str {
        self.name
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Get]
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, ..Abilities::default() }))
    }

    fn prepare(&mut self, _: &mut (), plan: &Plan, _: &Buffer) -> Result<(u64, Cookie), Fault> {
        Ok((plan.interval.bytes(), Cookie::empty()))
    }

    fn start(&mut self, _: &mut (), _: &mut u64, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }

    fn step(&mut self, _: &mut (), left_bytes: &mut u64, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        // One thread alone looks at it.
        let end = Instant::now() + Duration::from_micros(self.takes_us.load(Ordering::Relaxed));
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        Ok(Step { bytes: std::mem::take(left_bytes), done: true })
    }

    fn finish(&mut self, _: &mut (), _: u64) {}
}

/// An endpoint that has `first` and `second`, in this order, and takes no cells.
/// Without a word for `adapt` that has its default.
fn join(group: &Group, adapt: Option<&str>) -> (Endpoint, PeerId) {
    let builder = Endpoint::builder()
        .id(group.id().member(group.rank()))
        .without_the_list()
        .register(Timed { name: "first", takes_us: &FIRST_US })
        .register(Timed { name: "second", takes_us: &SECOND_US });
    let builder = builder.set("eager_max_bytes", Value::Number(4096)).expect("a key");
    let builder = match adapt {
        Some(word) => builder.set("adapt", Value::Text(word.to_owned())).expect("a key"),
        None => builder,
    };
    let endpoint = builder.build().expect("an endpoint can be made");
    let peer = endpoint.insert_peer(&group.address(1 - group.rank())).expect("a peer");
    (endpoint, peer)
}

/// So many messages to and fro. Returns how many of this rank's went by `first`
/// and by `second`.
fn ping_pong(endpoint: &Endpoint, group: &Group, peer: PeerId, messages: u32) -> [u64; 2] {
    let mut data = vec![0; BYTES];
    let before = sent(endpoint, peer);
    for message in 0..messages * 2 {
        if message % 2 == group.rank() {
            endpoint.send(peer, 1, &data).expect("sent");
        } else {
            endpoint.receive(Source::Peer(peer), TagMatch::exactly(1), &mut data).expect("received");
        }
    }
    let after = sent(endpoint, peer);
    [after[0] - before[0], after[1] - before[1]]
}

fn sent(endpoint: &Endpoint, peer: PeerId) -> [u64; 2] {
    let counters = endpoint.counters(peer);
    ["first", "second"].map(|name| {
        counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, counters)| counters.sent.messages)
    })
}

fn test(name: &str) -> Test {
    common::configured_by(&folder(name), Test::new(name, 2).time_limit(common::LIMIT))
}

/// Sends until nearly all messages of both ranks go by the way of this number.
/// How soon that is depends on what else the machine does: others that take the
/// core away make all periods uncertain.
fn settle_on(wanted: usize, endpoint: &Endpoint, group: &Group, peer: PeerId) {
    for _ in 0..MOST_ROUNDS {
        let by_way = ping_pong(endpoint, group, peer, ROUND);
        let is_settled = by_way[wanted] * 100 >= u64::from(ROUND) * 95;
        // Both ranks have to end at the same message.
        let mut other = [0; 1];
        endpoint.send(peer, 2, &[u8::from(is_settled)]).expect("sent");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(2), &mut other).expect("received");
        if is_settled && other == [1] {
            return;
        }
    }
    panic!("after {MOST_ROUNDS} times {ROUND} messages: {:?}", endpoint.streams());
}

#[test]
fn the_faster_way_is_found_and_left_when_it_becomes_the_slower() {
    if allowed_cpus().len() < 2 {
        println!("SKIPPED: nothing is tried where two processes have one CPU");
        return;
    }
    test(test_name!()).run(|group| {
        let (endpoint, peer) = join(group, Some("on"));
        settle_on(1, &endpoint, group, peer);
        let explanation = endpoint.explain(peer, BYTES as u64).expect("known");
        assert!(matches!(&explanation.taken, Taken::By { mechanism, .. } if mechanism == "second"));
        assert_eq!(explanation.source, Origin::RunTime);
        assert!(explanation.notes.iter().any(|note| note.contains("first:get")), "{explanation}");
        // The rounds of both have to be over before their lengths change.
        FIRST_US.store(QUICK_US, Ordering::Relaxed);
        SECOND_US.store(SLOW_US, Ordering::Relaxed);
        settle_on(0, &endpoint, group, peer);
        let streams = endpoint.streams();
        assert_eq!(streams.len(), 1);
        assert!(streams[0].1.switches >= 2 && streams[0].1.changes >= 1, "{streams:?}");
        assert_eq!(streams[0].1.chosen, "first:get");
    });
}

/// All messages go by the first way.
fn nothing_is_tried(group: &Group, adapt: Option<&str>) {
    let (endpoint, peer) = join(group, adapt);
    assert_eq!(ping_pong(&endpoint, group, peer, 100), [100, 0]);
    assert!(endpoint.streams().is_empty());
    let explanation = endpoint.explain(peer, BYTES as u64).expect("known");
    assert!(matches!(&explanation.taken, Taken::By { mechanism, .. } if mechanism == "first"));
    // Of one that has ended nothing is known.
    group.barrier();
}

#[test]
fn nothing_is_tried_where_that_is_switched_off() {
    test(test_name!()).run(|group| nothing_is_tried(group, Some("off")));
}

#[test]
fn nothing_is_tried_by_default() {
    test(test_name!()).run(|group| nothing_is_tried(group, None));
}
