//! Once the tables have grown, no message allocates: neither on its sender's
//! side nor on its receiver's, whichever way it takes, whether its receive was
//! posted before it or comes later, from one source or from any.

mod common;
#[path = "../../lmt-core/tests/counting/mod.rs"]
mod counting;

use std::path::Path;

use common::LIMIT;
use lmt::mechanism::Model;
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::{mechanisms, require, test_name};

/// Lengths in cells (of one and of several), and of each mechanism's doing.
const LENGTHS: [usize; 8] = [0, 8, 4096, 20_000, 65_536, 70_000, 300_000, 3 << 20];
/// Messages of a window.
const WINDOW: usize = 24;
/// Rounds after which all has grown that grows.
const WARM_UP: usize = 8;
const ROUNDS: usize = 5;

const TOKEN: TagMatch = TagMatch::exactly(1);

/// The buffers of a rank, made once.
struct Memory {
    out: Vec<u8>,
    into: Vec<Vec<u8>>,
}

impl Memory {
    fn new() -> Self {
        let longest = *LENGTHS.last().expect("some");
        let of_window = |at: usize| vec![0; if at == 0 { longest } else { 4096 }];
        Self { out: vec![7; longest], into: (0..WINDOW).map(of_window).collect() }
    }
}

fn token(endpoint: &Endpoint, to: PeerId) {
    endpoint.send(to, TOKEN.tag, &[]).expect("sent");
}

fn await_token(endpoint: &Endpoint, from: PeerId) {
    endpoint.receive(Source::Peer(from), TOKEN, &mut []).expect("received");
}

/// One message from rank 0 to rank 1 that finds its receive posted.
fn posted(
    endpoint: &Endpoint,
    sends: bool,
    other: PeerId,
    source: Source,
    bytes: usize,
    memory: &mut Memory,
) {
    if sends {
        await_token(endpoint, other);
        endpoint.send(other, 2, &memory.out[..bytes]).expect("sent");
    } else {
        endpoint.scope(|scope| {
            let receive = scope.receive(source, TagMatch::exactly(2), &mut memory.into[0]).expect("posted");
            token(endpoint, other);
            assert_eq!(receive.wait().expect("received").bytes, bytes as u64);
        });
    }
}

/// One message whose receive comes later.
fn unexpected(
    endpoint: &Endpoint,
    sends: bool,
    other: PeerId,
    source: Source,
    bytes: usize,
    memory: &mut Memory,
) {
    if sends {
        endpoint.scope(|scope| {
            let send = scope.send(other, 2, &memory.out[..bytes]).expect("begun");
            token(endpoint, other);
            send.wait().expect("sent");
        });
    } else {
        await_token(endpoint, other);
        endpoint.receive(source, TagMatch::exactly(2), &mut memory.into[0]).expect("received");
    }
}

/// Many short messages at once, received in reverse.
fn window(
    endpoint: &Endpoint,
    sends: bool,
    other: PeerId,
    source: Source,
    bytes: usize,
    memory: &mut Memory,
) {
    let bytes = bytes.min(4096);
    if sends {
        endpoint.scope(|scope| {
            let mut sends = [const { None }; WINDOW];
            for (tag, send) in (10..).zip(&mut sends) {
                *send = Some(scope.send(other, tag, &memory.out[..bytes]).expect("begun"));
            }
            token(endpoint, other);
            sends.into_iter().flatten().for_each(|send| {
                send.wait().expect("sent");
            });
        });
    } else {
        await_token(endpoint, other);
        for (at, into) in memory.into.iter_mut().enumerate().rev() {
            endpoint.receive(source, TagMatch::exactly(10 + at as u64), into).expect("received");
        }
    }
}

type Pattern = fn(&Endpoint, bool, PeerId, Source, usize, &mut Memory);
const PATTERNS: [(&str, Pattern); 3] = [("posted", posted), ("unexpected", unexpected), ("window", window)];

/// Has all tables grow beyond what comes after: how many messages are in flight
/// at once in a round depends on who runs when.
fn burst(endpoint: &Endpoint, group: &Group, peers: &[PeerId]) {
    const EACH: usize = 32;
    for (tag, bytes) in (100..).zip([8, 4096, 20_000, 300_000]) {
        let out = vec![1; bytes];
        let mut into = vec![vec![0; bytes]; EACH * peers.len()];
        endpoint.scope(|scope| {
            let mut open = Vec::new();
            for peer in peers.iter().cycle().take(EACH * peers.len()) {
                open.push(scope.send(*peer, tag, &out).expect("begun"));
            }
            group.barrier();
            for into in &mut into {
                open.push(scope.receive(Source::Any, TagMatch::exactly(tag), into).expect("posted"));
            }
            scope.wait_all(open).into_iter().for_each(|end| {
                end.expect("done");
            });
        });
    }
}

/// Says of `what` that it allocates, if it does so in each of several times so
/// many rounds, after a warm-up. A table may still grow in one of them, when more
/// is in flight at once than ever before; what allocates for a message does so in
/// each.
fn allocates(what: &str, run: &mut dyn FnMut(usize)) -> Option<String> {
    run(WARM_UP);
    let counts: [u64; 3] = std::array::from_fn(|_| {
        let before = counting::of_process();
        run(ROUNDS);
        counting::of_process() - before
    });
    let always = counts.iter().all(|count| *count > 0);
    always.then(|| format!("{what}: {counts:?} in {ROUNDS} rounds each"))
}

/// All ranks have looked: nothing was found.
fn end(group: &Group, mechanism: &str, found: &[String]) {
    group.barrier();
    assert!(found.is_empty(), "{mechanism} allocates:\n{}", found.join("\n"));
}

/// Both directions of a pattern.
fn round(
    endpoint: &Endpoint,
    pattern: Pattern,
    me: u32,
    other: PeerId,
    any: bool,
    bytes: usize,
    memory: &mut Memory,
) {
    let source = if any { Source::Any } else { Source::Peer(other) };
    pattern(endpoint, me == 0, other, source, bytes, memory);
    pattern(endpoint, me == 1, other, source, bytes, memory);
}

/// A test of so many ranks for each mechanism, which they know alone.
fn with_each_mechanism(ranks: u32, name: &str, rank: fn(&str, &Group)) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for mechanism in mechanisms::of_any_memory() {
        common::configured_by(folder, Test::new(name, ranks).time_limit(2 * LIMIT))
            .env("LMT_MECHANISM", mechanism)
            .run(|group| rank(mechanism, group));
    }
}

/// Whether this process's only mechanism works with the peer.
fn works(endpoint: &Endpoint, peer: PeerId, mechanism: &str) -> bool {
    let mechanism_status = endpoint.mechanism_status(peer);
    let (_, standing) =
        mechanism_status.iter().find(|(name, _)| *name == mechanism).expect("it is in the list");
    let works = Model::ALL.iter().any(|model| standing.ours.allow_sending(standing.theirs, *model));
    if !works {
        let reason = standing.reason.as_ref().map_or("one way only".to_owned(), ToString::to_string);
        // What is required of these two is tried through the stand-in, elsewhere.
        if ["knem-ioctl", "ioat-knem"].contains(&mechanism) {
            println!("skipped: {mechanism}: {reason}");
        } else {
            require::skipped(mechanism, &reason);
        }
    }
    works
}

fn two_ranks(mechanism: &str, group: &Group) {
    let (endpoint, peers) = common::join_plain(group);
    let other = peers[1 - group.rank() as usize];
    let mut memory = Memory::new();
    for both in [true, false] {
        if (group.rank() == 0) == both { token(&endpoint, other) } else { await_token(&endpoint, other) }
    }
    if !works(&endpoint, other, mechanism) {
        return group.barrier();
    }
    burst(&endpoint, group, &[other]);
    let mut found = Vec::new();
    for (name, pattern) in PATTERNS {
        for bytes in LENGTHS {
            let mut run = |rounds| {
                (0..rounds).for_each(|number| {
                    let any = number % 2 == 1;
                    round(&endpoint, pattern, group.rank(), other, any, bytes, &mut memory);
                });
            };
            found.extend(allocates(&format!("{name}, {bytes} B"), &mut run));
        }
    }
    end(group, mechanism, &found);
}

#[test]
fn no_message_between_two_allocates() {
    with_each_mechanism(2, test_name!(), two_ranks);
}

/// Each of three ranks sends to the two others and receives from any.
fn all_to_all(endpoint: &Endpoint, peers: &[PeerId], bytes: usize, memory: &mut Memory) {
    let Memory { out, into } = memory;
    endpoint.scope(|scope| {
        let mut open = [const { None }; 4];
        for (at, peer) in peers.iter().enumerate() {
            open[at] = Some(scope.send(*peer, 3, &out[..bytes]).expect("begun"));
        }
        // One receive is posted early, the other when both messages may be here.
        let (first, second) = into.split_at_mut(1);
        open[2] = Some(scope.receive(Source::Any, TagMatch::exactly(3), &mut first[0]).expect("posted"));
        open.iter_mut().take(2).for_each(|send| {
            if bytes <= 4096 {
                send.take().map(|send| send.wait().expect("sent"));
            }
        });
        let any = TagMatch { tag: 0, ignore: 3 };
        open[3] = Some(scope.receive(Source::Any, any, &mut second[0]).expect("posted"));
        open.into_iter().flatten().for_each(|request| {
            request.wait().expect("done");
        });
    });
}

fn three_ranks(mechanism: &str, group: &Group) {
    let (endpoint, mut peers) = common::join_plain(group);
    peers.remove(group.rank() as usize);
    let mut memory = Memory::new();
    memory.into[1] = memory.into[0].clone();
    all_to_all(&endpoint, &peers, 8, &mut memory);
    let all_work = peers.iter().all(|peer| works(&endpoint, *peer, mechanism));
    if !all_work {
        // Three processes that are alike: the others find the same.
        return group.barrier();
    }
    burst(&endpoint, group, &peers);
    let mut found = Vec::new();
    for bytes in LENGTHS {
        let mut run = |rounds| {
            (0..rounds).for_each(|_| all_to_all(&endpoint, &peers, bytes, &mut memory));
        };
        found.extend(allocates(&format!("all to all, {bytes} B"), &mut run));
    }
    end(group, mechanism, &found);
}

#[test]
fn no_message_among_three_allocates() {
    with_each_mechanism(3, test_name!(), three_ranks);
}
