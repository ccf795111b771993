//! Messages between buffers that the applications leave alone, one after the other: the
//! sender opens what both claim their parts in before it announces them, and its receiver
//! meets it there. Whoever is stopped or killed meanwhile, what arrives is whole.

mod common;

use std::time::{Duration, Instant};

use lmt::{Endpoint, PeerId, SharedBuffer, Source, TagMatch};
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::test_name;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The longest that is met; to use so many bytes would take 8 us.
const BYTES: usize = 1 << 20;
const ENV_KIND: &str = "LMT_TEST_KIND";
const TAG: TagMatch = TagMatch::exactly(7);

/// The memory of both ends, and so who copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Shared,
    Private,
}

enum Memory {
    Shared(SharedBuffer),
    Private(Vec<u8>),
}

impl Memory {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Shared => Self::Shared(lmt::alloc(BYTES).expect("there is memory")),
            Kind::Private => Self::Private(vec![0; BYTES]),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Shared(memory) => memory,
            Self::Private(memory) => memory,
        }
    }

    /// Writes a number into every page: in less time than it takes to use all of it.
    fn stamp(&mut self, number: u64) {
        self.bytes()
            .chunks_exact_mut(PAGE_BYTES)
            .for_each(|page| page[..8].copy_from_slice(&number.to_ne_bytes()));
    }

    fn assert_stamped(&mut self, number: u64) {
        let is_stamped = |page: &[u8]| page[..8] == number.to_ne_bytes();
        let wrong = self.bytes().chunks_exact(PAGE_BYTES).position(|page| !is_stamped(page));
        assert_eq!(wrong, None, "a page of message {number} is of another");
    }
}

const PAGE_BYTES: usize = 4096;

/// One end: what it sends, and where it receives.
struct End {
    endpoint: Endpoint,
    peers: Vec<PeerId>,
    out: Memory,
    into: Memory,
}

impl End {
    /// Connected; nothing where the mechanism does not work here.
    fn open(kind: Kind, group: &Group) -> Option<Self> {
        let builder = Endpoint::builder().id(group.id().member(group.rank()));
        let builder = match kind {
            Kind::Shared => builder,
            Kind::Private => builder.mechanisms(&["cma:both"]),
        };
        let endpoint = builder.configure(|config| config.eager_max_bytes = 0).build().expect("an endpoint");
        let peers: Vec<PeerId> = (0..group.size())
            .map(|rank| endpoint.insert_peer(&group.address(rank)).expect("a peer"))
            .collect();
        let end = Self { endpoint, peers, out: Memory::new(kind), into: Memory::new(kind) };
        let first = end.peers[usize::from(group.rank() == 0)];
        if group.rank() < 2 {
            end.greet(first);
            let standings = end.endpoint.standings(first);
            let missing = |(name, standing): &(&str, lmt::mechanisms::Standing)| {
                (*name == "cma").then(|| standing.reason.clone()).flatten()
            };
            if let (Kind::Private, Some(why)) = (kind, standings.iter().find_map(missing)) {
                group.report(format!("skip: {why}"));
                return None;
            }
        }
        Some(end)
    }

    fn greet(&self, peer: PeerId) {
        self.endpoint.send(peer, 0, &[]).expect("the other is there");
        self.endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("the other is there");
    }

    /// Sends and receives, in turns with the peer; whether all went well. Each message has its
    /// number in every page.
    fn rounds(&mut self, peer: PeerId, begins: bool, rounds: u64) -> bool {
        for round in 0..rounds {
            let received = |end: &mut Self| {
                let status = end.endpoint.receive(Source::Peer(peer), TAG, end.into.bytes());
                status.is_ok_and(|_| {
                    end.into.assert_stamped(round);
                    true
                })
            };
            if !begins && !received(self) {
                return false;
            }
            self.out.stamp(round);
            if self.endpoint.send(peer, TAG.tag, self.out.bytes()).is_err() {
                return false;
            }
            if begins && !received(self) {
                return false;
            }
        }
        true
    }

    /// How many messages of a peer this end has met.
    fn met(&self, peer: PeerId) -> u64 {
        self.endpoint.counters(peer).into_iter().map(|(_, counters)| counters.met).sum()
    }
}

fn test(name: &str, ranks: u32) -> Test {
    common::configured_by(&common::folder(name), Test::new(name, ranks).time_limit(common::LIMIT))
}

fn in_each_kind(name: &str, ranks: u32, may_die: bool, drive: fn(&mut Parent), body: impl Fn(End, &Group)) {
    for kind in [Kind::Shared, Kind::Private] {
        let mut test = test(name, ranks).env(ENV_KIND, &format!("{kind:?}"));
        for rank in 1..ranks * u32::from(may_die) {
            test = test.may_die(rank);
        }
        // A rank comes here by the first of these, whichever was meant.
        let results = test.run_with(drive, |group| {
            let is_private =
                std::env::var(ENV_KIND).is_ok_and(|asked| asked == format!("{:?}", Kind::Private));
            let kind = if is_private { Kind::Private } else { Kind::Shared };
            if let Some(end) = End::open(kind, group) {
                body(end, group);
            }
        });
        common::skip_if_told("cma", &results.reports);
    }
}

/// Bursts of messages of a content of their own, checked in all bytes; whether any were met.
fn bursts(end: &mut End, group: &Group, count: u64) -> bool {
    let (rank, other) = (u64::from(group.rank()), end.peers[1 - group.rank() as usize]);
    for burst in 0..count {
        const ROUNDS: u64 = 40;
        end.out.bytes().copy_from_slice(&common::pattern(2 * burst + rank, BYTES));
        end.into.bytes().fill(0);
        assert!(end.rounds(other, rank == 0, ROUNDS));
        let mut expected = Memory::Private(common::pattern(2 * burst + 1 - rank, BYTES));
        expected.stamp(ROUNDS - 1);
        assert!(*end.into.bytes() == *expected.bytes(), "burst {burst}");
    }
    end.greet(other);
    end.met(other) > 0
}

/// Where others want the cores, too, pauses are often long; so one series counts in which
/// messages were met.
#[test]
fn all_arrives_whole() {
    const MOST_SERIES: u64 = 12;
    in_each_kind(
        test_name!(),
        2,
        false,
        |_| {},
        |mut end, group| {
            let other = end.peers[1 - group.rank() as usize];
            let met = (0..MOST_SERIES).any(|_| {
                let met = bursts(&mut end, group, 10);
                common::verdict(&end.endpoint, other, (group.rank() == 1).then_some(met))
            });
            assert!(met, "nobody was met");
        },
    );
}

/// Each in turn is stopped at some instant, perhaps in the middle of a part, and goes on.
#[test]
fn an_end_that_is_stopped_and_goes_on_spoils_nothing() {
    fn stop(parent: &mut Parent) {
        for rank in [0, 1] {
            if parent.next_report(rank).as_deref() != Some("begins") {
                return;
            }
        }
        for stop in 0..100_u32 {
            std::thread::sleep(Duration::from_micros(u64::from(stop * 7919 % 3000)));
            let rank = stop % 2;
            parent.kill(rank, Signal::SIGSTOP as i32);
            std::thread::sleep(Duration::from_millis(1));
            parent.kill(rank, Signal::SIGCONT as i32);
        }
    }
    in_each_kind(test_name!(), 2, false, stop, |mut end, group| {
        group.report("begins");
        bursts(&mut end, group, 25);
    });
}

/// Rank 1 is stopped for long, perhaps in the middle of its part of a message: rank 0, which
/// receives, does not wait in a call for that, but hears of others and of its deadline.
#[test]
fn an_end_that_is_stopped_for_long_keeps_nobody_from_others() {
    const STOPS: u64 = 30;
    const MORE: u64 = 8;
    const ENOUGH: u64 = 9;
    fn stop(parent: &mut Parent) {
        for stop in 0..STOPS {
            if parent.next_report(0).as_deref() != Some("begins") {
                return;
            }
            std::thread::sleep(Duration::from_micros(2000 + stop * 7919 % 1000));
            parent.kill(1, Signal::SIGSTOP as i32);
            let heard = parent.next_report(0);
            parent.kill(1, Signal::SIGCONT as i32);
            if heard.as_deref() != Some("stopped") {
                return;
            }
        }
    }
    in_each_kind(test_name!(), 3, false, stop, |mut end, group| {
        let peers = end.peers.clone();
        if group.rank() == 2 {
            // Answers as long as it is asked.
            while end
                .endpoint
                .receive(Source::Peer(peers[0]), TagMatch::any(), &mut [])
                .is_ok_and(|s| s.tag == 1)
            {
                end.endpoint.send(peers[0], 1, &[]).expect("it is there");
            }
            return;
        }
        let ask = |endpoint: &Endpoint| {
            endpoint.send(peers[2], 1, &[]).expect("it is there");
            endpoint.receive(Source::Peer(peers[2]), TagMatch::exactly(1), &mut []).expect("it is there");
        };
        for _ in 0..STOPS {
            if group.rank() == 1 {
                // Until rank 0 has had enough.
                loop {
                    end.endpoint.send(peers[0], TAG.tag, end.out.bytes()).expect("it is there");
                    let answer = TagMatch { tag: MORE, ignore: MORE ^ ENOUGH };
                    let status = end.endpoint.receive(Source::Peer(peers[0]), answer, &mut []);
                    if status.expect("it is there").tag == ENOUGH {
                        break;
                    }
                }
                continue;
            }
            group.report("begins");
            let mut is_stopped = false;
            while !is_stopped {
                let End { endpoint, into, .. } = &mut end;
                endpoint.scope(|scope| {
                    let receive = scope.receive(Source::Peer(peers[1]), TAG, into.bytes());
                    let (mut receive, begun) = (receive.expect("begins"), Instant::now());
                    loop {
                        match receive.test() {
                            Ok(result) => {
                                result.expect("it arrives");
                                break;
                            }
                            Err(later) => receive = later,
                        }
                        if !is_stopped && begun.elapsed() > Duration::from_millis(50) {
                            is_stopped = true;
                            ask(endpoint);
                            group.report("stopped");
                        }
                    }
                });
                // Without bytes, so that it does not wait for who is stopped.
                let answer = if is_stopped { ENOUGH } else { MORE };
                end.endpoint.send(peers[1], answer, &[]).expect("it is there");
            }
        }
        if group.rank() == 0 {
            end.endpoint.send(peers[2], 2, &[]).expect("it is there");
        }
        end.greet(peers[1 - group.rank() as usize]);
    });
}

/// Messages one way, the first of which come before the receiver knows the sender's lines,
/// and receives that are late.
#[test]
fn one_way_and_late() {
    in_each_kind(
        test_name!(),
        2,
        false,
        |_| {},
        |mut end, group| {
            let other = end.peers[1 - group.rank() as usize];
            for round in 0..800_u64 {
                if group.rank() == 0 {
                    end.out.stamp(round);
                    end.endpoint.send(other, TAG.tag, end.out.bytes()).expect("it is there");
                    continue;
                }
                if round % 100 > 90 {
                    std::thread::sleep(Duration::from_micros(300));
                }
                end.endpoint.receive(Source::Peer(other), TAG, end.into.bytes()).expect("it is there");
                end.into.assert_stamped(round);
            }
            end.greet(other);
        },
    );
}

const VICTIMS: u32 = 8;

/// Rank 0 goes to and fro with each of the others, which are killed one after the other:
/// what it receives is whole, and it hears of each death.
#[test]
fn an_end_that_is_killed_is_heard_of() {
    fn kill_all(parent: &mut Parent) {
        for victim in 1..=VICTIMS {
            if parent.next_report(victim).as_deref() != Some("begins") {
                return;
            }
            std::thread::sleep(Duration::from_micros(3_000 + u64::from(victim * 7919 % 1000)));
            parent.kill(victim, Signal::SIGKILL as i32);
        }
    }
    in_each_kind(test_name!(), 1 + VICTIMS, true, kill_all, |mut end, group| {
        const MANY: u64 = 1 << 40;
        if group.rank() > 0 {
            end.endpoint
                .receive(Source::Peer(end.peers[0]), TagMatch::exactly(1), &mut [])
                .expect("it is there");
            group.report("begins");
            end.rounds(end.peers[0], false, MANY);
            kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
        }
        for victim in 1..=VICTIMS {
            let peer = end.peers[victim as usize];
            end.endpoint.send(peer, 1, &[]).expect("it is alive");
            assert!(!end.rounds(peer, true, MANY), "victim {victim}");
            end.endpoint.remove_peer(peer).expect("it was there");
        }
    });
}
