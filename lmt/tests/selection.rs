//! Which way messages take between real processes, by whose word, and what is
//! said of it. The counters prove it.

mod common;

#[allow(dead_code)] // Its `main` and what only that uses.
#[path = "../examples/device_layer.rs"]
mod device_layer;

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Instant;

use common::{folder, write};
use device_layer::{Device, content};
use lmt::buffer::{Access, Buffer, Segment};
use lmt::device::DeviceLayer;
use lmt::selection::{Message, Source as Origin, Taken, Why};
use lmt::{
    CreateError, Endpoint, Explanation, Hints, OperationError, PeerId, SendMode, SendOptions, SharedEndpoint,
    Source, TagMatch, Warmth,
};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::{require, test_name};
use lmt_selector::config::fingerprint_of_this_machine;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A test of so many ranks that sees no configuration but its own.
fn test_of(ranks: u32, name: &str, folder: &Path) -> Test {
    common::configured_by(folder, Test::new(name, ranks).time_limit(common::LIMIT))
}

fn test(name: &str, folder: &Path) -> Test {
    test_of(2, name, folder)
}

fn join(group: &Group) -> (Endpoint, PeerId) {
    let (endpoint, peers) = common::join_plain(group);
    let other = peers[1 - group.rank() as usize];
    (endpoint, other)
}

/// Messages sent, by path.
fn sent(endpoint: &Endpoint, peer: PeerId) -> BTreeMap<&'static str, u64> {
    let eager = ("eager", endpoint.eager_counters(peer).sent.messages);
    let mechanisms = endpoint.counters(peer).into_iter().map(|(name, c)| (name, c.sent.messages));
    mechanisms.chain([eager]).filter(|(_, messages)| *messages > 0).collect()
}

/// Rank 0 sends messages of these lengths, each of which rank 1 has received
/// before the next; returns by which path each went, on rank 0.
fn paths(endpoint: &Endpoint, group: &Group, peer: PeerId, lengths: &[usize]) -> Vec<&'static str> {
    let mut paths = Vec::new();
    for (seed, bytes) in lengths.iter().enumerate() {
        if group.rank() == 0 {
            let before = sent(endpoint, peer);
            endpoint.send(peer, 1, &common::pattern(seed as u64, *bytes)).expect("sent");
            let after = sent(endpoint, peer);
            let more = |(path, messages): (&&'static str, &u64)| {
                (before.get(path).copied().unwrap_or_default() < *messages).then_some(*path)
            };
            paths.extend(after.iter().find_map(more));
        } else {
            common::receive_and_check(endpoint, peer, 1, seed as u64, *bytes);
        }
    }
    paths
}

/// Connects the two, so that what works between them is known.
fn connect(endpoint: &Endpoint, group: &Group, peer: PeerId) {
    if group.rank() == 0 {
        endpoint.send(peer, 9, &[]).expect("sent");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(9), &mut []).expect("received");
    } else {
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(9), &mut []).expect("received");
        endpoint.send(peer, 9, &[]).expect("sent");
    }
}

/// Connects rank 0 with all others; whether all these work with each. All ranks
/// find the same.
fn all_work(endpoint: &Endpoint, group: &Group, peers: &[PeerId], names: &[&str]) -> bool {
    let others = if group.rank() == 0 { &peers[1..] } else { &peers[..1] };
    others.iter().for_each(|peer| connect(endpoint, group, *peer));
    others.iter().all(|peer| work(endpoint, *peer, names))
}

/// Neither leaves before the other has asked all that it wants to know.
fn stay(group: &Group) {
    group.barrier();
}

/// Whether all these work between the two. Both ranks find the same.
fn work(endpoint: &Endpoint, peer: PeerId, names: &[&str]) -> bool {
    let mechanism_status: BTreeMap<_, _> = endpoint.mechanism_status(peer).into_iter().collect();
    let works = |name: &&str| {
        let standing = mechanism_status.get(*name).expect("it is in the list");
        lmt::mechanism::Model::ALL.iter().any(|model| {
            standing.ours.allow_sending(standing.theirs, *model)
                && standing.theirs.allow_sending(standing.ours, *model)
        })
    };
    let missing = names.iter().find(|name| !works(name));
    missing.inspect(|name| require::skipped(name, "it does not work between two plain processes")).is_none()
}

fn not<'e>(explanation: &'e Explanation, mechanism: &str) -> &'e lmt::selection::NotTaken {
    explanation.not_taken.iter().find(|other| other.mechanism == mechanism).expect("it is told of")
}

fn taken(explanation: &Explanation) -> &str {
    match &explanation.taken {
        Taken::By { mechanism, .. } => mechanism,
        Taken::Eager => "eager",
        other => panic!("nothing is taken: {other:?}"),
    }
}

/// Each of the five sources says something else; the highest that speaks is
/// heard.
#[test]
fn who_is_heard() {
    const NEEDED: [&str; 4] = ["ring", "shm", "vmsplice", "writev"];
    for level in 0..5 {
        let folder = folder(test_name!()).join(level.to_string());
        let calibration = format!("lmt/calibration/{}.toml", fingerprint_of_this_machine());
        if level >= 1 {
            let text = "[calibration]\ncomplete = true\n\n[[rule]]\ntake = [\"shm\"]\n";
            write(&folder.join(&calibration), text);
        }
        if level >= 2 {
            write(&folder.join("lmt/lmt.toml"), "# Mine.\n[[rule]]\ntake = [\"vmsplice\"]\n");
        }
        let mut test = test(test_name!(), &folder);
        if level >= 3 {
            test = test.env("LMT_MECHANISM", "writev");
        }
        test.run(|group| {
            let mut builder = Endpoint::builder().id(group.id().member(group.rank()));
            if level >= 4 {
                builder = builder.mechanisms(&["shm"]);
            }
            let endpoint = builder.build().expect("made");
            let peer = endpoint.insert_peer(&group.address(1 - group.rank())).expect("a peer");
            connect(&endpoint, group, peer);
            let needed = if level < 3 { &NEEDED[..] } else { &NEEDED[..0] };
            if !work(&endpoint, peer, needed) {
                return;
            }
            let paths = paths(&endpoint, group, peer, &[512 * KIB]);
            let explanation = endpoint.explain(peer, 512 << 10).expect("known");
            let wanted = ["ring", "shm", "vmsplice", "writev", "shm"][level];
            assert_eq!(taken(&explanation), wanted, "{explanation}");
            if group.rank() == 0 {
                assert_eq!(paths, [wanted]);
            }
            let path = |file: &str| folder.join(file).display().to_string();
            match (level, &explanation.source) {
                (0, Origin::Default { line: Some(_) }) | (4, Origin::Call) => {}
                (1, Origin::Calibration { path: from, line: 4 }) => assert_eq!(*from, path(&calibration)),
                (2, Origin::File { path: from, line: 2 }) => assert_eq!(*from, path("lmt/lmt.toml")),
                (3, Origin::Environment { variable }) => assert_eq!(variable, "LMT_MECHANISM"),
                other => panic!("{other:?}: {explanation}"),
            }
            if level >= 3 {
                assert_eq!(not(&explanation, "cma").why, Why::LeftOut, "{explanation}");
            }
            stay(group);
        });
    }
}

/// Two calibrations, one of which is a lie, change where messages go.
#[test]
fn a_calibration_changes_the_path() {
    for (first, second) in [("shm:cooperative", "cma:get"), ("cma:get", "shm:cooperative")] {
        let file = folder(test_name!()).join(format!("{}.toml", first.replace(':', "-")));
        let here = lmt::cpu_set::CpuSet::of_this_thread();
        let place = lmt::configuration::machine().expect("hwloc works here").place(&here, &here);
        let figure = |way, median_ns| {
            format!(
                "[[figure]]\nplace = \"{}\"\npairs = 1\noff_cache = false\nbytes = \"256 KiB\"\n\
                 way = \"{way}\"\nmedian_ns = {median_ns}\n",
                place.name()
            )
        };
        let text = format!(
            "[calibration]\ncomplete = true\n[[rule]]\nabove = \"4 KiB\"\ntake = [\"{first}\"]\n{}{}",
            figure(first, 15_000),
            figure(second, 31_000)
        );
        write(&file, &text);
        let test = test(test_name!(), file.parent().expect("a folder"));
        test.env("LMT_CONFIG", file.to_str().expect("plain")).run(|group| {
            let (endpoint, peer) = join(group);
            connect(&endpoint, group, peer);
            if !work(&endpoint, peer, &["cma", "shm"]) {
                return;
            }
            let paths = paths(&endpoint, group, peer, &[300 * KIB, 4 * MIB]);
            let name = |way: &'static str| way.split(':').next().expect("a name");
            if group.rank() == 0 {
                assert_eq!(paths, [name(first), name(first)]);
            }
            let explanation = endpoint.explain(peer, 300 << 10).expect("known");
            assert_eq!(taken(&explanation), name(first), "{explanation}");
            let path = file.display().to_string();
            assert_eq!(explanation.source, Origin::Calibration { path, line: 3 });
            let slower = not(&explanation, name(second));
            assert_eq!(slower.why, Why::Slower, "{explanation}");
            assert_eq!(slower.sentence, "slower: 31 us against 15 us at 256 KiB");
            stay(group);
        });
    }
}

#[test]
fn messages_are_eager_as_far_as_a_rule_says() {
    let folder = folder(test_name!());
    write(&folder.join("lmt/lmt.toml"), "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n");
    test(test_name!(), &folder).run(|group| {
        let (endpoint, peer) = join(group);
        connect(&endpoint, group, peer);
        let paths = paths(&endpoint, group, peer, &[0, 4 * KIB + 1, 64 * KIB, 64 * KIB + 1]);
        let explain = |bytes| endpoint.explain(peer, bytes).expect("known");
        let (eager, long) = (explain(64 << 10), explain((64 << 10) + 1));
        assert_eq!(eager.taken, Taken::Eager);
        let path = folder.join("lmt/lmt.toml").display().to_string();
        assert_eq!(eager.source, Origin::File { path, line: 1 });
        let counters = endpoint.eager_counters(peer);
        if group.rank() == 0 {
            assert_eq!(paths, ["eager", "eager", "eager", taken(&long)]);
            let bytes = 4 * KIB + 1 + 64 * KIB;
            assert_eq!((counters.sent.messages, counters.sent.bytes), (4, bytes as u64));
        } else {
            assert_eq!(counters.received.messages, 4);
        }
        stay(group);
    });
}

/// While one process may read rank 0, a message to another goes by a way without
/// readers, and one to the same does not; what is explained meanwhile is done.
#[test]
fn the_cap_on_readers_moves_messages_to_other_ways() {
    let folder = folder(test_name!());
    let text = "[[rule]]\nabove = \"4 KiB\"\ntake = [\"cma:get\", \"shm\"]\nmax_readers = 1\n";
    write(&folder.join("lmt/lmt.toml"), text);
    test_of(3, test_name!(), &folder).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        if !all_work(&endpoint, group, &peers, &["cma", "shm"]) {
            return;
        }
        if group.rank() > 0 {
            // All are announced before the first is received.
            group.barrier();
            common::receive_and_check(&endpoint, peers[0], 1, 1, MIB);
            if group.rank() == 1 {
                common::receive_and_check(&endpoint, peers[0], 1, 1, MIB);
            }
            return stay(group);
        }
        let data = common::pattern(1, MIB);
        let explain = |peer: PeerId| endpoint.explain(peer, MIB as u64).expect("known");
        endpoint.scope(|scope| {
            assert_eq!(taken(&explain(peers[2])), "cma", "nobody reads yet");
            let mut sends = vec![scope.send(peers[1], 1, &data)];
            let (same, other) = (explain(peers[1]), explain(peers[2]));
            assert_eq!(taken(&same), "cma", "{same}");
            assert_eq!(taken(&other), "shm", "{other}");
            assert_eq!(not(&other, "cma").why, Why::Crowded, "{other}");
            sends.push(scope.send(peers[1], 1, &data));
            sends.push(scope.send(peers[2], 1, &data));
            group.barrier();
            sends.into_iter().for_each(|send| {
                send.expect("begun").wait().expect("sent");
            });
        });
        assert_eq!(sent(&endpoint, peers[1]).get("cma"), Some(&2), "{:?}", sent(&endpoint, peers[1]));
        let to_other = sent(&endpoint, peers[2]);
        assert_eq!((to_other.get("cma"), to_other.get("shm")), (None, Some(&1)), "{to_other:?}");
        assert_eq!(taken(&explain(peers[2])), "cma", "nobody reads any more");
        let asked = Message { readers: 1, ..Message::of_bytes(MIB as u64) };
        assert_eq!(taken(&endpoint.explain_message(peers[2], &asked).expect("known")), "shm");
        stay(group);
    });
}

/// Up to eight read at once where nobody says otherwise: a window of messages
/// to one peer is one reader, and the ninth peer is one too many.
#[test]
fn the_usual_cap_counts_processes_and_not_messages() {
    const WINDOW: usize = 16;
    let folder = folder(test_name!());
    write(&folder.join("lmt/lmt.toml"), "[[rule]]\nabove = \"4 KiB\"\ntake = [\"cma:get\", \"shm\"]\n");
    test_of(10, test_name!(), &folder).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        if !all_work(&endpoint, group, &peers, &["cma", "shm"]) {
            return;
        }
        if group.rank() > 0 {
            group.barrier();
            let count = if group.rank() == 1 { WINDOW } else { 1 };
            (0..count).for_each(|_| common::receive_and_check(&endpoint, peers[0], 1, 1, MIB));
            return stay(group);
        }
        let data = common::pattern(1, MIB);
        endpoint.scope(|scope| {
            let window = (0..WINDOW).map(|_| scope.send(peers[1], 1, &data));
            let mut sends: Vec<_> = window.collect();
            sends.extend(peers[2..].iter().map(|peer| scope.send(*peer, 1, &data)));
            group.barrier();
            sends.into_iter().for_each(|send| {
                send.expect("begun").wait().expect("sent");
            });
        });
        let large = |rank: usize| {
            let mut sent = sent(&endpoint, peers[rank]);
            sent.remove("eager");
            sent.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(large(1), [("cma", WINDOW as u64)]);
        for rank in 2..9 {
            assert_eq!(large(rank), [("cma", 1)], "rank {rank}");
        }
        assert_eq!(large(9), [("shm", 1)], "eight others may be reading");
        stay(group);
    });
}

/// A rule that asks for three processes holds from when the third has come, also
/// between the two that were there before, and no longer when it has gone.
#[test]
fn a_rule_for_several_processes_holds_while_they_are_there() {
    let folder = folder(test_name!());
    let text = "[[rule]]\nup_to = \"64 KiB\"\nmin_processes = 3\ntake = \"eager\"\n\
                [[rule]]\nabove = \"64 KiB\"\nmin_processes = 3\ntake = [\"shm\"]\n\
                [[rule]]\nabove = \"4 KiB\"\ntake = [\"vmsplice\"]\n";
    write(&folder.join("lmt/lmt.toml"), text);
    test_of(3, test_name!(), &folder).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        if group.rank() == 2 {
            group.barrier(); // The others have met.
            endpoint.send(peers[0], 5, &[]).expect("sent");
            group.barrier(); // All have met.
            group.barrier(); // The others have sent.
            endpoint.close().expect("closed");
            group.barrier();
            return stay(group);
        }
        let peer = peers[1 - group.rank() as usize];
        connect(&endpoint, group, peer);
        let can = work(&endpoint, peer, &["shm", "vmsplice"]);
        let lengths = [32 * KIB, MIB];
        let check = |wanted: [&str; 2]| {
            if !can {
                return;
            }
            let found = paths(&endpoint, group, peer, &lengths);
            if group.rank() == 0 {
                assert_eq!(found, wanted);
                let explain = |bytes| endpoint.explain(peer, bytes as u64).expect("known");
                assert_eq!(lengths.map(|bytes| taken(&explain(bytes)).to_owned()), wanted);
            }
        };
        check(["vmsplice", "vmsplice"]);
        group.barrier();
        if group.rank() == 0 {
            common::receive_and_check(&endpoint, peers[2], 5, 5, 0);
        }
        group.barrier();
        check(["eager", "shm"]);
        group.barrier();
        group.barrier();
        if group.rank() == 0 {
            let gone = endpoint.receive(Source::Peer(peers[2]), TagMatch::any(), &mut []);
            assert!(matches!(gone, Err(OperationError::Peer(_))), "{gone:?}");
        }
        check(["vmsplice", "vmsplice"]);
        stay(group);
    });
}

#[test]
fn hints_say_who_copies() {
    let folder = folder(test_name!());
    test(test_name!(), &folder).env("LMT_MECHANISM", "cma").run(|group| {
        let (endpoint, peer) = join(group);
        connect(&endpoint, group, peer);
        if !work(&endpoint, peer, &["cma"]) {
            return;
        }
        let data = common::pattern(3, MIB);
        for (warmth, by_sender) in [(Warmth::Warm, true), (Warmth::Cold, false)] {
            if group.rank() == 1 {
                common::receive_and_check(&endpoint, peer, 1, 3, MIB);
                common::receive_and_check(&endpoint, peer, 1, 3, MIB);
                continue;
            }
            let hints = Hints { warmth, ..Hints::default() };
            let before = endpoint.counters(peer)[0].1.bytes;
            endpoint.send_with(peer, 1, &data, hints).expect("sent");
            endpoint.scope(|scope| {
                let options = SendOptions { mode: SendMode::Synchronous, hints };
                scope.send_with(peer, 1, &data, options).and_then(lmt::Request::wait).expect("sent");
            });
            // What this process's own steps have moved.
            let moved = endpoint.counters(peer)[0].1.bytes - before;
            assert_eq!(moved, if by_sender { 2 * MIB as u64 } else { 0 }, "{warmth:?}");
            let message = Message { hints, ..Message::of_bytes(1 << 20) };
            let text = endpoint.explain_message(peer, &message).expect("known").to_string();
            let wanted = if by_sender { "cma (put:" } else { "cma (get:" };
            assert!(text.contains(wanted), "{text}");
        }
        stay(group);
    });
}

#[test]
fn explanations_before_and_without_a_connection() {
    let folder = folder(test_name!());
    test(test_name!(), &folder).run(|group| {
        let (endpoint, peer) = join(group);
        group.barrier();
        let before = endpoint.explain(peer, 1 << 20).expect("known");
        assert_eq!(before.taken, Taken::Unknown);
        assert!(before.not_taken.iter().all(|other| other.why == Why::Unknown), "{before}");
        assert_eq!(endpoint.explain(peer, 8).expect("known").taken, Taken::Eager);

        let myself = endpoint.insert_peer(&endpoint.address()).expect("a peer");
        let within = endpoint.explain(myself, 1 << 20).expect("known");
        assert_eq!(within.taken, Taken::Within);
        assert!(within.not_taken.iter().all(|other| other.why == Why::NotNeeded), "{within}");

        connect(&endpoint, group, peer);
        assert!(matches!(endpoint.explain(peer, 1 << 20).expect("known").taken, Taken::By { .. }));
        stay(group);
        if group.rank() == 1 {
            drop(endpoint);
            group.barrier();
            return;
        }
        group.barrier();
        let gone = endpoint.receive(Source::Peer(peer), TagMatch::any(), &mut []).expect_err("it has gone");
        assert!(matches!(gone, OperationError::Peer(_)), "{gone}");
        assert_eq!(endpoint.explain(peer, 1 << 20).expect("known").taken, Taken::Unknown);
        endpoint.remove_peer(peer).expect("removed");
        assert_eq!(endpoint.explain(peer, 1 << 20).expect_err("removed"), OperationError::UnknownPeer);
        let shared = SharedEndpoint::new(endpoint);
        assert_eq!(shared.explain(myself, 8).expect("known").taken, Taken::Within);
        assert_eq!(shared.explain(peer, 8).expect_err("removed"), OperationError::UnknownPeer);
        assert_eq!(shared.eager_counters(peer).sent.messages, 0);
    });
}

/// A device layer has no cells: its embedder carries what is short. All else goes by
/// rules and hints as with an endpoint.
#[test]
fn a_layer_follows_rules_and_hints() {
    let folder = folder(test_name!());
    let text = "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n\
                [[rule]]\nabove = \"256 KiB\"\nsender = \"warm\"\ntake = [\"cma:put\"]\n\
                [[rule]]\nabove = \"256 KiB\"\ntake = [\"cma:get\"]\n\
                [[rule]]\nabove = \"64 KiB\"\nup_to = \"256 KiB\"\ntake = [\"shm\"]\n";
    write(&folder.join("lmt/lmt.toml"), text);
    test(test_name!(), &folder).run(|group| {
        let mut device = device(group);
        let mechanism_status = device.layer.mechanism_status(device.peer);
        let (_, cma) = mechanism_status.iter().find(|(name, _)| *name == "cma").expect("it is in the list");
        if cma.ours.write && cma.theirs.write {
            by_rules(&mut device, group);
        } else {
            require::skipped("cma", "it does not work between two plain processes");
        }
        device.send(9, Vec::new()).expect("the other lives");
        let last = device.receive(9, 0).expect("the other lives");
        device.wait(last).expect("the other lives");
        stay(group);
    });
}

/// This rank's device, connected with the other's.
fn device(group: &Group) -> Device {
    let name = |rank| {
        let name = format!("selection-{}-{rank}", group.id());
        SocketAddr::from_abstract_name(name).expect("a name")
    };
    let socket = UnixDatagram::bind_addr(&name(group.rank())).expect("a socket");
    group.barrier();
    socket.connect_addr(&name(1 - group.rank())).expect("the other rank's socket");
    let layer =
        Endpoint::builder().id(group.id().member(group.rank())).build_device_layer().expect("a layer");
    let mut device = Device::new(layer, socket, &group.address(1 - group.rank())).expect("a device");
    let before = device.layer.explain(device.peer, &Message::of_bytes(MIB as u64)).expect("known");
    assert_eq!(before.taken, Taken::Unknown, "{before}");
    while !device.layer.is_connected(device.peer) {
        device.progress().expect("no fork here");
    }
    device
}

/// What a device layer has sent by a mechanism, and the bytes that it copied itself.
fn moved(layer: &DeviceLayer, mechanism: &str) -> (u64, u64) {
    let totals = layer.totals();
    let (_, counters) = totals.iter().find(|(name, _)| *name == mechanism).expect("it is in the list");
    (counters.sent.messages, counters.bytes)
}

/// Rank 0 sends; each message takes the way that was explained.
fn by_rules(device: &mut Device, group: &Group) {
    const CASES: [(usize, Warmth, &str); 4] = [
        (64 * KIB + 1, Warmth::Unknown, "shm (cooperative"),
        (256 * KIB, Warmth::Warm, "shm (cooperative"),
        (MIB, Warmth::Unknown, "cma (get"),
        (MIB, Warmth::Warm, "cma (put"),
    ];
    let short = device.layer.explain(device.peer, &Message::of_bytes(64)).expect("known");
    assert!(matches!(short.taken, Taken::By { .. }), "a layer has no cells: {short}");
    for (tag, (bytes, warmth, way)) in (0..).zip(CASES) {
        if group.rank() == 1 {
            let receive = device.receive(tag, bytes).expect("the other lives");
            assert!(device.wait(receive).expect("it arrives") == content(tag, bytes), "{way}");
            continue;
        }
        let hints = Hints { warmth, ..Hints::default() };
        let message = Message { hints, ..Message::of_bytes(bytes as u64) };
        let text = device.layer.explain(device.peer, &message).expect("known").to_string();
        assert!(text.lines().next().is_some_and(|line| line.contains(way)), "{way}: {text}");
        assert!(text.contains("lmt.toml"), "a rule of the user's has spoken: {text}");
        let before = ["cma", "shm"].map(|name| moved(&device.layer, name));
        send_with(device, tag, content(tag, bytes), hints);
        let after = ["cma", "shm"].map(|name| moved(&device.layer, name));
        let by_cma = u64::from(way.starts_with("cma"));
        assert_eq!((after[0].0, after[1].0), (before[0].0 + by_cma, before[1].0 + 1 - by_cma), "{way}");
        let by_put = if way == "cma (put" { bytes as u64 } else { 0 };
        assert_eq!(after[0].1, before[0].1 + by_put, "{way}");
    }
}

/// Sends and waits, with hints, what the device would announce without.
fn send_with(device: &mut Device, tag: u64, mut data: Vec<u8>, hints: Hints) {
    #[allow(unsafe_code)]
    // SAFETY: `data` is not touched before the request is finished.
    let buffer = unsafe { Buffer::new(&[Segment::of_mut(&mut data)], Access::Read) }.expect("plain memory");
    let envelope = tag.to_le_bytes();
    let request = device.layer.send_with(device.peer, &envelope, buffer, hints).expect("the other lives");
    let end = Instant::now() + common::LIMIT;
    let result = loop {
        device.progress().expect("no fork here");
        if let Some(result) = device.layer.test(request) {
            break result;
        }
        assert!(Instant::now() < end, "the message does not arrive");
        std::thread::yield_now();
    };
    result.expect("it arrives");
}

/// A mechanism in a model that it has not is refused before anything is sent.
#[test]
fn a_way_that_cannot_be_is_refused_at_creation() {
    for (way, there_is) in [("cma:cooperative", "cma:get"), ("shm:get", "shm:cooperative")] {
        let refused = |result: Result<(), CreateError>| {
            let error = result.expect_err(way);
            assert!(matches!(error, CreateError::UnknownModel { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(way) && text.contains(there_is) && !text.contains('\n'), "{text}");
        };
        refused(Endpoint::builder().mechanisms(&[way]).build().map(drop));
        refused(Endpoint::builder().mechanisms(&["writev", way]).build_device_layer().map(drop));
    }
    Endpoint::builder().mechanisms(&["cma:put", "shm:cooperative"]).build().expect("there are these");
}

/// Buffers of several segments are another kind of message.
#[test]
fn segments_take_their_own_rule() {
    let folder = folder(test_name!());
    let text = "[[rule]]\nabove = \"4 KiB\"\nsegments = \"many\"\ntake = [\"shm\"]\n\
                [[rule]]\nabove = \"4 KiB\"\ntake = [\"cma\"]\n";
    write(&folder.join("lmt/lmt.toml"), text);
    test(test_name!(), &folder).run(|group| {
        let (endpoint, peer) = join(group);
        connect(&endpoint, group, peer);
        if !work(&endpoint, peer, &["cma", "shm"]) {
            return;
        }
        let data = common::pattern(0, 64 * KIB);
        if group.rank() == 0 {
            let (head, tail) = data.split_at(100);
            let segments = [std::io::IoSlice::new(head), std::io::IoSlice::new(tail)];
            endpoint.send_segments(peer, 1, &segments).expect("sent");
            assert_eq!(sent(&endpoint, peer).get("shm"), Some(&1));
            endpoint.send(peer, 1, &data).expect("sent");
            assert_eq!(sent(&endpoint, peer).get("cma"), Some(&1));
        } else {
            common::receive_and_check(&endpoint, peer, 1, 0, 64 * KIB);
            common::receive_and_check(&endpoint, peer, 1, 0, 64 * KIB);
        }
        stay(group);
    });
}
