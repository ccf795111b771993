//! Which way messages take between real processes, by whose word, and what is
//! said of it. The counters prove it.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lmt::selection::{Message, Source as Origin, Taken, Why};
use lmt::{
    Endpoint, Explanation, Hints, OperationError, PeerId, SendMode, SendOptions, SharedEndpoint, Source,
    TagMatch, Warmth,
};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::{require, test_name};
use lmt_selector::config::fingerprint_of_this_machine;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A folder of this test's own, as the user's configuration.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("selection").join(test.replace("::", "-"));
    std::fs::create_dir_all(&folder).expect("the folder of the tests can be written");
    folder
}

/// Writes a file. Every rank does, so it is put in its place in one step.
fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    let part = path.with_extension(format!("part-{}", std::process::id()));
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).expect("it can be written");
}

/// A test of two ranks that sees no configuration but its own.
fn test(name: &str, folder: &Path) -> Test {
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    Test::new(name, 2).time_limit(common::LIMIT).env("XDG_CONFIG_HOME", &text(folder))
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

/// Neither leaves before the other has asked all that it wants to know.
fn stay(group: &Group) {
    group.barrier();
}

/// Whether all these work between the two. Both ranks find the same.
fn work(endpoint: &Endpoint, peer: PeerId, names: &[&str]) -> bool {
    let standings: BTreeMap<_, _> = endpoint.standings(peer).into_iter().collect();
    let works = |name: &&str| {
        let standing = standings.get(*name).expect("it is in the list");
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
    const NEEDED: [&str; 4] = ["cma", "shm", "vmsplice", "writev"];
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
            let paths = paths(&endpoint, group, peer, &[256 * KIB]);
            let explanation = endpoint.explain(peer, 256 << 10).expect("known");
            let wanted = ["cma", "shm", "vmsplice", "writev", "shm"][level];
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

/// A second message, while the first may be read, goes by a way without readers.
#[test]
fn the_cap_on_readers_moves_messages_to_other_ways() {
    let folder = folder(test_name!());
    let text = "[[rule]]\nabove = \"4 KiB\"\ntake = [\"cma:get\", \"shm\"]\nmax_readers = 1\n";
    write(&folder.join("lmt/lmt.toml"), text);
    test(test_name!(), &folder).run(|group| {
        let (endpoint, peer) = join(group);
        connect(&endpoint, group, peer);
        if !work(&endpoint, peer, &["cma", "shm"]) {
            return;
        }
        if group.rank() == 0 {
            let data = [common::pattern(1, MIB), common::pattern(2, MIB)];
            endpoint.scope(|scope| {
                let sends = [scope.send(peer, 1, &data[0]), scope.send(peer, 2, &data[1])];
                group.barrier();
                sends.into_iter().for_each(|send| {
                    send.expect("begun").wait().expect("sent");
                });
            });
            let sent = sent(&endpoint, peer);
            assert_eq!((sent.get("cma"), sent.get("shm")), (Some(&1), Some(&1)), "{sent:?}");
            let crowded =
                endpoint.explain_message(peer, &Message { readers: 1, ..Message::of_bytes(1 << 20) });
            let crowded = crowded.expect("known");
            assert_eq!(taken(&crowded), "shm");
            assert_eq!(not(&crowded, "cma").why, Why::Crowded, "{crowded}");
        } else {
            // Both are announced before the first is received.
            group.barrier();
            common::receive_and_check(&endpoint, peer, 2, 2, MIB);
            common::receive_and_check(&endpoint, peer, 1, 1, MIB);
        }
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

/// A door has no cells: its embedder carries what is short.
#[test]
fn a_door_takes_rules_and_no_cells() {
    let mut door = Endpoint::builder().build_door().expect("a door");
    let id = lmt::EndpointId::from_bytes([8; 16]);
    let peer = door.insert_peer(&lmt::Address::abstract_socket(id)).expect("a peer");
    assert_eq!(door.explain(peer, &Message::of_bytes(1)).expect("known").taken, Taken::Unknown);
}

/// With `LMT_STATS=1` each endpoint tells at its end what it has moved.
#[test]
fn statistics_at_the_end() {
    const ROLE: &str = "LMT_TEST_OF_STATISTICS";
    if std::env::var_os(ROLE).is_some() {
        tell_statistics();
        return;
    }
    let run = |wanted: &str| {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child
            .args(["--exact", "statistics_at_the_end", "--nocapture"])
            .env(ROLE, "1")
            .env("LMT_STATS", wanted);
        let output = child.output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let lines = errors.lines().filter_map(|line| line.strip_prefix("lmt stats "));
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    assert!(run("0").is_empty());
    let lines = run("1");
    let tables: Vec<&[Vec<String>]> = lines.chunks(4).collect();
    assert_eq!(tables.len(), 2, "one of each endpoint: {lines:?}");
    for table in tables {
        assert!(table[0][0].starts_with("pid=") && table[0][2].starts_with("endpoint="), "{table:?}");
        assert_eq!(table[1][1..], ["path", "sent", "sent_bytes", "received", "received_bytes", "demotions"]);
        assert_eq!(table[2][1], "eager");
        assert_eq!(table[3][1], "shm");
    }
    let of_sender = lines.chunks(4).find(|table| table[3][2] == "1").expect("one has sent");
    assert_eq!(of_sender[2][2..], ["1", "5", "0", "0", "0"]);
    assert_eq!(of_sender[3][2..], ["1", "1048576", "0", "0", "0"]);
}

/// Two endpoints of one process.
fn tell_statistics() {
    let build = || Endpoint::builder().mechanisms(&["shm"]).build().expect("made");
    let (one, other) = (build(), build());
    let peer = one.insert_peer(&other.address()).expect("a peer");
    other.insert_peer(&one.address()).expect("a peer");
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut into = vec![0; MIB];
            other.receive(Source::Any, TagMatch::exactly(1), &mut into).expect("received");
            other.receive(Source::Any, TagMatch::exactly(2), &mut into).expect("received");
            other.close().expect("closed");
        });
        one.send(peer, 1, b"short").expect("sent");
        one.send(peer, 2, &vec![1; MIB]).expect("sent");
    });
    drop(one);
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
