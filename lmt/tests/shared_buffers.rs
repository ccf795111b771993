//! Shared buffers (`lmt::alloc`) between real processes.

mod common;

use lmt::mechanism::Counters;
use lmt::{Endpoint, PeerId, SharedBuffer, Source, TagMatch};
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::test_name;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const BYTES: usize = 300_000;
const MAPPED: &str = "mapped";
/// So often at most a buffer is proposed to a peer that cannot map it: mostly once.
const MAX_PROPOSALS: u64 = 2;

fn test(name: &str, ranks: u32) -> Test {
    common::configured_by(&common::folder(name), Test::new(name, ranks).time_limit(common::LIMIT))
}

fn counters(endpoint: &Endpoint, peer: PeerId, name: &str) -> Counters {
    let all = endpoint.counters(peer);
    all.into_iter().find(|(of, _)| *of == name).map(|(_, counters)| counters).unwrap_or_default()
}

/// Memory of either kind, with a message in it.
enum Memory {
    Private(Vec<u8>),
    Shared(SharedBuffer),
}

impl Memory {
    fn new(shared: bool, bytes: usize) -> Self {
        match shared {
            true => Self::Shared(lmt::alloc(bytes).expect("there is memory")),
            false => Self::Private(vec![0; bytes]),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Private(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

/// Rank 0 sends a message, rank 1 receives and checks it.
fn message(endpoint: &Endpoint, group: &Group, peer: PeerId, seed: u64, memory: &mut Memory) {
    let memory = memory.bytes();
    let expected = common::pattern(seed, memory.len());
    if group.rank() == 0 {
        memory.copy_from_slice(&expected);
        endpoint.send(peer, seed, memory).expect("the peer is there");
        // The memory is this end's again: what is in it now must not arrive.
        memory.fill(0xee);
    } else {
        memory.fill(0);
        let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(seed), memory);
        assert_eq!(status.expect("the peer is there").bytes, memory.len() as u64);
        assert!(*memory == expected[..], "message {seed} is garbled");
    }
}

/// By which mechanism messages go between memory of each kind, and that none is
/// proposed in vain.
#[test]
fn the_memory_of_the_two_ends_decides() {
    test(test_name!(), 2).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        for (shared, expected) in [
            ([false, false], 0),
            ([true, false], 8),
            ([true, true], 8),
            ([false, true], 7),
            ([false, false], 0),
        ] {
            let mut memory = Memory::new(shared[group.rank() as usize], BYTES);
            let before = counters(&endpoint, peer, MAPPED).messages;
            // The first may go in vain where the peer had a shared buffer before.
            message(&endpoint, group, peer, 1, &mut memory);
            for seed in 2..10 {
                message(&endpoint, group, peer, seed, &mut memory);
            }
            let by_mapped = counters(&endpoint, peer, MAPPED).messages - before;
            assert!(by_mapped >= expected && by_mapped <= expected + 2, "{shared:?}: {by_mapped}");
        }
        let mistakes = counters(&endpoint, peer, MAPPED).demotions;
        assert!(mistakes <= 1, "{mistakes} proposals were in vain");
        group.barrier();
    });
}

/// Both ends copy where both are shared. Where others want the cores, too, the sender
/// is often not there; so one series counts in which it was.
#[test]
fn both_ends_copy() {
    const MESSAGES: u64 = 60;
    const MAX_SERIES: u64 = 12;
    test(test_name!(), 2).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        let mut memory = Memory::new(true, 4 << 20);
        let helped = (1..=MAX_SERIES).any(|series| {
            for seed in 0..MESSAGES {
                message(&endpoint, group, peer, seed, &mut memory);
            }
            let counters = counters(&endpoint, peer, MAPPED);
            assert_eq!(counters.messages, series * MESSAGES);
            let verdict = (group.rank() == 1).then_some(counters.peer_bytes > 0);
            common::verdict(&endpoint, peer, verdict)
        });
        assert!(helped, "the sender has never helped: {:?}", counters(&endpoint, peer, MAPPED));
        group.barrier();
    });
}

/// A bound of no mapping at all: each message asks for its arena again.
#[test]
fn mappings_that_were_let_go_come_back() {
    let test = test(test_name!(), 2).env("LMT_MAPPED_KEPT_ARENAS", "0");
    test.run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        let mut memory = Memory::new(true, BYTES);
        for seed in 0..20 {
            message(&endpoint, group, peer, seed, &mut memory);
            group.barrier();
            assert_eq!(peers_arenas(group.rank()), 0, "no mapping is kept");
        }
        assert_eq!(counters(&endpoint, peer, MAPPED).messages, 20);
        assert_eq!(counters(&endpoint, peer, MAPPED).demotions, 0);
        group.barrier();
    });
}

/// Mappings of arenas in this process, but for its own one.
fn peers_arenas(_rank: u32) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs is there");
    let length = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(usize::from_str_radix(end, 16).ok()? - usize::from_str_radix(start, 16).ok()?)
    };
    let arenas = maps.lines().filter(|line| line.contains("memfd:lmt")).filter_map(length);
    arenas.filter(|bytes| *bytes == 64 << 20).count() - 1
}

/// Without descriptors the receiver cannot map what is sent: the next mechanism
/// takes over, and the message is whole.
#[test]
fn no_descriptor_left() {
    starved(test(test_name!(), 2), || {
        setrlimit(Resource::RLIMIT_NOFILE, 256, 256).expect("lowering is allowed");
        // Numbers that are free between others are to be had, too.
        while let Ok(file) = std::fs::File::open("/dev/null") {
            std::mem::forget(file);
        }
    });
}

/// As without descriptors, without address space.
#[test]
fn no_address_space_left() {
    starved(test(test_name!(), 2), || {
        let status = std::fs::read_to_string("/proc/self/status").expect("procfs is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("it has a size");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        let limit = (kib << 10) + (16 << 20);
        setrlimit(Resource::RLIMIT_AS, limit, limit).expect("lowering is allowed");
    });
}

/// Rank 1 can map nothing more, by what `starve` does.
fn starved(test: Test, starve: impl Fn()) {
    test.run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        message(&endpoint, group, peer, 0, &mut Memory::new(false, BYTES));
        let mut memory = Memory::new(group.rank() == 0, BYTES);
        if group.rank() == 1 {
            starve();
        }
        // Rank 0 may be done with the first message before rank 1 is, who would map the memory of the
        // next one as long as it can.
        group.barrier();
        let demotions = || counters(&endpoint, peer, MAPPED).demotions;
        // That it cannot map the buffer is told beside the messages, and may come later.
        let is_known = (1..=MAX_PROPOSALS + 1).any(|seed| {
            let before = demotions();
            message(&endpoint, group, peer, seed, &mut memory);
            common::idle(&endpoint, std::time::Duration::from_millis(20));
            common::verdict(&endpoint, peer, (group.rank() == 1).then(|| demotions() == before))
        });
        assert!(is_known, "it is proposed again and again: {:?}", counters(&endpoint, peer, MAPPED));
        let known = demotions();
        for seed in 11..20 {
            message(&endpoint, group, peer, seed, &mut memory);
        }
        let counters = counters(&endpoint, peer, MAPPED);
        assert_eq!(counters.messages, 0, "nothing can be mapped");
        // The sender counts each message for which it does not propose it.
        if group.rank() == 1 {
            assert!(known > 0, "it was never proposed");
            assert_eq!(counters.demotions, known, "it is proposed again");
        }
        group.barrier();
    });
}

/// The owner of a buffer is killed while its peer copies: the peer hears of it, nothing
/// faults, what was copied is what the owner has written, and the memory is given back.
#[test]
fn the_owner_dies_while_it_is_copied() {
    const LENGTH: usize = 8 << 20;
    let drive = |parent: &mut Parent| {
        for victim in 1..6 {
            if parent.next_report(victim).as_deref() != Some("sending") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_micros(500 * u64::from(victim)));
            parent.kill(victim, Signal::SIGKILL as i32);
        }
    };
    let mut test = test(test_name!(), 6);
    for victim in 1..6 {
        test = test.may_die(victim);
    }
    test.run_with(drive, |group| {
        let (endpoint, peers) = common::join_plain(group);
        let mut memory = Memory::new(true, LENGTH);
        let (ready, go) = (TagMatch::exactly(2), TagMatch::exactly(3));
        if group.rank() > 0 {
            memory.bytes().copy_from_slice(&common::pattern(group.rank().into(), LENGTH));
            // Who died before anybody had reached it could still be on its way:
            // that is not what is tried here, and takes a connection's timeout.
            endpoint.send(peers[0], ready.tag, memory.bytes()).expect("rank 0 is there");
            endpoint.receive(Source::Peer(peers[0]), go, &mut []).expect("rank 0 is there");
            group.report("sending");
            loop {
                if endpoint.send(peers[0], 1, memory.bytes()).is_err() {
                    kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
                }
            }
        }
        for victim in 1..6_u32 {
            let (peer, written) = (peers[victim as usize], common::pattern(victim.into(), LENGTH));
            memory.bytes().fill(UNWRITTEN);
            endpoint.receive(Source::Peer(peer), ready, memory.bytes()).expect("it is alive");
            assert!(*memory.bytes() == written[..], "the first message of victim {victim} is garbled");
            assert_eq!(counters(&endpoint, peer, MAPPED).messages, 1, "its memory is mapped");
            memory.bytes().fill(UNWRITTEN);
            endpoint.send(peer, go.tag, &[]).expect("it is alive");
            let mut whole = 0;
            while endpoint.receive(Source::Peer(peer), TagMatch::any(), memory.bytes()).is_ok() {
                whole += 1;
            }
            // All messages say the same. Of the one at which it died a part may have come.
            let mut pairs = memory.bytes().iter().zip(&written);
            let is_right = pairs.all(|(byte, sent)| byte == sent || (whole == 0 && *byte == UNWRITTEN));
            assert!(is_right, "victim {victim}, of which {whole} came whole");
            endpoint.remove_peer(peer).expect("it was there");
        }
        assert_eq!(peers_arenas(0), 0, "the memory of the dead is given back");
    });
}

/// What stands where nothing has been received.
const UNWRITTEN: u8 = 0xee;

/// Also where a built-in rule has both ends copy what is longer than cells carry.
#[test]
fn short_ones_go_in_cells_where_they_are_used() {
    const ROUNDS: u8 = 200;
    test(test_name!(), 2).env("LMT_SINGLE_COPY", "fast").run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        let (mut out, mut into) = (Memory::new(true, 128 << 10), Memory::new(true, 128 << 10));
        for round in 0..ROUNDS {
            out.bytes().fill(round);
            if group.rank() == 0 {
                endpoint.send(peer, 1, out.bytes()).expect("it is there");
            }
            endpoint.receive(Source::Any, TagMatch::exactly(1), into.bytes()).expect("it is there");
            assert!(into.bytes().iter().all(|byte| *byte == round), "message {round} is garbled");
            if group.rank() == 1 {
                endpoint.send(peer, 1, out.bytes()).expect("it is there");
            }
        }
        let in_cells = endpoint.eager_counters(peer).sent.messages;
        assert!(in_cells >= u64::from(ROUNDS) * 9 / 10, "{in_cells} in cells");
        group.barrier();
    });
}

/// 64 peers with a buffer each.
#[test]
fn many_peers() {
    test(test_name!(), 65).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let mut memory = Memory::new(true, 400_000);
        if group.rank() > 0 {
            for round in 0..3 {
                memory.bytes().fill(round + group.rank() as u8);
                endpoint.send(peers[0], u64::from(round), memory.bytes()).expect("rank 0 is there");
            }
        } else {
            for round in 0..3u8 {
                for _ in 1..group.size() {
                    let tags = TagMatch::exactly(round.into());
                    let status = endpoint.receive(Source::Any, tags, memory.bytes()).expect("all are there");
                    let rank = peers.iter().position(|peer| *peer == status.peer).expect("a rank") as u8;
                    assert!(memory.bytes().iter().all(|byte| *byte == round + rank));
                }
            }
            let messages: u64 = peers.iter().map(|peer| counters(&endpoint, *peer, MAPPED).messages).sum();
            assert_eq!(messages, 3 * 64);
            assert_eq!(peers_arenas(0), 64);
        }
        group.barrier();
    });
}
