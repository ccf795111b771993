//! Messages between buffers that the applications leave alone, one after the other: the
//! sender opens what both claim their parts in before it announces them, and its receiver
//! meets it there. Whoever is stopped or killed meanwhile, what arrives is whole.

mod common;

use std::time::Duration;

use lmt::{Endpoint, PeerId, SharedBuffer, Source, TagMatch};
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::{require, test_name};
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
}

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

    /// Sends and receives, in turns with the peer; whether all went well.
    fn rounds(&mut self, peer: PeerId, begins: bool, rounds: usize) -> bool {
        for _ in 0..rounds {
            let sent = |end: &mut Self| end.endpoint.send(peer, TAG.tag, end.out.bytes()).is_ok();
            if begins && !sent(self) {
                return false;
            }
            if self.endpoint.receive(Source::Peer(peer), TAG, self.into.bytes()).is_err() {
                return false;
            }
            if !begins && !sent(self) {
                return false;
            }
        }
        true
    }
}

fn test(name: &str, ranks: u32) -> Test {
    common::configured_by(&common::folder(name), Test::new(name, ranks).time_limit(common::LIMIT))
}

fn in_each_kind(name: &str, ranks: u32, may_die: bool, drive: fn(&mut Parent), body: impl Fn(Kind, &Group)) {
    for kind in [Kind::Shared, Kind::Private] {
        let mut test = test(name, ranks).env(ENV_KIND, &format!("{kind:?}"));
        for rank in 1..ranks * u32::from(may_die) {
            test = test.may_die(rank);
        }
        // A rank comes here by the first of these, whichever was meant.
        let results = test.run_with(drive, |group| {
            let is_private =
                std::env::var(ENV_KIND).is_ok_and(|asked| asked == format!("{:?}", Kind::Private));
            body(if is_private { Kind::Private } else { Kind::Shared }, group);
        });
        if let Some(why) = results.reports.iter().flatten().find_map(|line| line.strip_prefix("skip: ")) {
            require::skipped("cma", why);
        }
    }
}

#[test]
fn all_arrives_whole() {
    in_each_kind(
        test_name!(),
        2,
        false,
        |_| {},
        |kind, group| {
            let Some(mut end) = End::open(kind, group) else { return };
            let (rank, other) = (u64::from(group.rank()), end.peers[1 - group.rank() as usize]);
            for burst in 0..20 {
                end.out.bytes().copy_from_slice(&common::pattern(2 * burst + rank, BYTES));
                end.into.bytes().fill(0);
                assert!(end.rounds(other, rank == 0, 40));
                assert!(
                    *end.into.bytes() == common::pattern(2 * burst + 1 - rank, BYTES)[..],
                    "burst {burst}"
                );
            }
            end.greet(other);
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
    in_each_kind(test_name!(), 2, false, stop, |kind, group| {
        let Some(mut end) = End::open(kind, group) else { return };
        let (rank, other) = (u64::from(group.rank()), end.peers[1 - group.rank() as usize]);
        group.report("begins");
        for burst in 0..60 {
            end.out.bytes().copy_from_slice(&common::pattern(2 * burst + rank, BYTES));
            end.into.bytes().fill(0);
            assert!(end.rounds(other, rank == 0, 40));
            assert!(*end.into.bytes() == common::pattern(2 * burst + 1 - rank, BYTES)[..], "burst {burst}");
        }
        end.greet(other);
    });
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
    in_each_kind(test_name!(), 1 + VICTIMS, true, kill_all, |kind, group| {
        let Some(mut end) = End::open(kind, group) else { return };
        if group.rank() > 0 {
            end.out.bytes().fill(group.rank() as u8);
            end.endpoint
                .receive(Source::Peer(end.peers[0]), TagMatch::exactly(1), &mut [])
                .expect("it is there");
            group.report("begins");
            while end.rounds(end.peers[0], false, 1) {}
            kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
        }
        for victim in 1..=VICTIMS {
            let peer = end.peers[victim as usize];
            end.endpoint.send(peer, 1, &[]).expect("it is alive");
            end.into.bytes().fill(victim as u8);
            while end.rounds(peer, true, 1) {}
            // What it had before it died it has sent again and again, or it had sent nothing.
            assert!(end.into.bytes().iter().all(|byte| *byte == victim as u8), "victim {victim}");
            end.endpoint.remove_peer(peer).expect("it was there");
        }
    });
}
