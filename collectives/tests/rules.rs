//! Rules of files and of the environment, by real processes.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lmt_collectives::{Algorithm, Group, GroupError, Kind, Operation};
use lmt_conformance::group::{Group as Ranks, Test};
use lmt_conformance::test_name;

use common::{Case, LIMIT, endpoint, group, try_case};

/// A folder of this test's with a file `rules.toml`.
fn folder(name: &str, rules: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rules-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    // Whole at any time: several ranks write the same.
    let part = folder.join(format!("part-{}", std::process::id()));
    std::fs::write(&part, rules).expect("a file can be written");
    std::fs::rename(part, folder.join("rules.toml")).expect("a file can be named");
    folder
}

fn broadcast_is(group: &Group<'_>, algorithm: Algorithm, words: &str) {
    let mut data = vec![0; 300_000];
    let told = group.explain(&Operation::broadcast(0, &mut data[..])).expect("it can be done");
    assert!(told.0 == algorithm && told.1.contains(words), "{told:?}");
    let case =
        Case { kind: Kind::Broadcast, algorithm: None, length: 300_000, root: 1, in_place: false, round: 3 };
    try_case(group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
}

#[test]
fn a_file_s_rules_hold_behind_those_of_the_environment_and_in_parts() {
    let test = Test::new(test_name!(), 3).time_limit(LIMIT).env("LMT_CONFIG", "rules.toml");
    test.env("LMT_COLLECTIVES", "allgather=ring-source-write").run(|ranks| {
        let rules = "[[collective]]\noperation = \"bcast\"\nalgorithm = \"messages\"\n\n\
                     [[collective]]\noperation = \"allgather\"\nalgorithm = \"messages\"\n";
        std::env::set_current_dir(folder("order", rules)).expect("a folder");
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        broadcast_is(&group, Algorithm::Messages, "bcast by messages at rules.toml:1");
        let (own, mut all) = (vec![1; 300_000], vec![0; 900_000]);
        let told = group.explain(&Operation::allgather(&own[..], &mut all[..])).expect("it can be done");
        let by_environment = told.1.contains("ring-source-write at LMT_COLLECTIVES in the environment");
        let denied = told.1.contains("passed over: some ranks may not reach into others' memory");
        assert!(by_environment || denied, "{told:?}");
        group.run(Operation::allgather(&own[..], &mut all[..])).expect("it can be done");
        // Groups that are made of this one have its rules.
        broadcast_is(&group.duplicate().expect("a copy"), Algorithm::Messages, "rules.toml:1");
    });
}

#[test]
fn ranks_whose_rules_differ_all_hear_of_it() {
    Test::new(test_name!(), 3).time_limit(LIMIT).env("LMT_CONFIG", "rules.toml").run(|ranks| {
        // None of them needs to reach into others' memory.
        let algorithm = if ranks.rank() == 1 { "bruck-messages" } else { "messages" };
        let rule = format!("[[collective]]\noperation = \"allgather\"\nalgorithm = \"{algorithm}\"\n");
        std::env::set_current_dir(folder(&format!("differ-{algorithm}"), &rule)).expect("a folder");
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let (own, mut all) = (vec![1; 300_000], vec![0; 900_000]);
        let error = group.run(Operation::allgather(&own[..], &mut all[..])).expect_err("they differ");
        assert!(matches!(error, GroupError::Mismatch { .. }), "{error}");
        assert!(error.to_string().contains("bruck-messages"), "{error}");
        broadcast_is(&group, group_default(&group), "");
    });
}

/// What the group takes for long broadcasts without rules.
fn group_default(group: &Group<'_>) -> Algorithm {
    let mut data = vec![0; 300_000];
    group.explain(&Operation::broadcast(0, &mut data[..])).expect("it can be done").0
}

/// All hear of it at once: nobody waits until a connection is given up.
fn is_told_at_once(ranks: &Ranks, words: &str) {
    let begin = Instant::now();
    let endpoint = endpoint(ranks, |_| {});
    let error =
        Group::from_launch(&endpoint, ranks.launch()).map(drop).expect_err("a rank's rules are wrong");
    assert!(begin.elapsed() < Duration::from_secs(2), "after {:?}", begin.elapsed());
    assert!(matches!(error, GroupError::Configuration(_)), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_rule_that_cannot_be_read_on_one_rank_is_told_to_all() {
    Test::new(test_name!(), 3).time_limit(LIMIT).env("LMT_CONFIG", "rules.toml").run(|ranks| {
        let is_wrong = ranks.rank() == 1;
        let operation = if is_wrong { "3" } else { "\"bcast\"" };
        let rule = format!("\n[[collective]]\noperation = {operation}\nalgorithm = \"messages\"\n");
        std::env::set_current_dir(folder(&format!("unread-{is_wrong}"), &rule)).expect("a folder");
        is_told_at_once(
            ranks,
            match is_wrong {
                true => "rules.toml:3:13: `operation` is a whole number",
                false => "rank 1's configuration is wrong, and its own error says why",
            },
        );
    });
}

#[test]
fn a_variable_that_cannot_be_read_is_told_when_a_group_is_made() {
    Test::new(test_name!(), 2).time_limit(LIMIT).env("LMT_COLLECTIVES", "bcast:messages").run(|ranks| {
        is_told_at_once(ranks, "the variable LMT_COLLECTIVES has `bcast:messages`, which names no operation");
    });
}

#[test]
fn a_rule_that_means_nothing_on_one_rank_is_told_to_all() {
    Test::new(test_name!(), 3).time_limit(LIMIT).env("LMT_CONFIG", "rules.toml").run(|ranks| {
        let operation = if ranks.rank() == 2 { "bcst" } else { "bcast" };
        let rule = format!("\n[[collective]]\noperation = \"{operation}\"\nalgorithm = \"messages\"\n");
        std::env::set_current_dir(folder(&format!("wrong-{operation}"), &rule)).expect("a folder");
        let endpoint = endpoint(ranks, |_| {});
        let made = Group::from_launch(&endpoint, ranks.launch());
        let error = made.map(drop).expect_err("one rank's rules are wrong");
        assert!(matches!(error, GroupError::Configuration(_)), "{error}");
        let words = match ranks.rank() {
            2 => "rules.toml:2: there is no operation bcst; there are barrier, bcast",
            _ => "rank 2's configuration is wrong, and its own error says why",
        };
        assert!(error.to_string().contains(words), "{error}");
    });
}

#[test]
fn copies_go_by_the_mechanism_of_the_rule_for_their_length_and_the_number_of_processes() {
    Test::new(test_name!(), 3).time_limit(LIMIT).env("LMT_CONFIG", "rules.toml").run(|ranks| {
        let rules = "[[rule]]\nabove = \"200 KiB\"\nmin_processes = 3\ntake = [\"ioat-software:put\"]\n\n\
                     [[rule]]\nabove = \"64 KiB\"\ntake = [\"knem-user\"]\n\n\
                     [[collective]]\noperation = \"bcast\"\nalgorithm = \"direct-read\"\n";
        std::env::set_current_dir(folder("copies", rules)).expect("a folder");
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let root = group.peer(1).expect("there are three");
        let bytes_by = |name| {
            let counters = endpoint.counters(root);
            counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, counters)| counters.bytes)
        };
        for (length, name, at) in
            [(300_000, "ioat-software", "rules.toml:1)"), (150_000, "knem-user", "rules.toml:6)")]
        {
            let mut data = vec![0; length as usize];
            let told = group.explain(&Operation::broadcast(1, &mut data[..])).expect("it can be done").1;
            if told.contains("some ranks may not reach into others' memory") {
                eprintln!("skipped: no mechanism reaches another process's memory here");
                return;
            }
            let before = bytes_by(name);
            let case =
                Case { kind: Kind::Broadcast, algorithm: None, length, root: 1, in_place: false, round: 3 };
            try_case(&group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
            if ranks.rank() != 1 {
                assert!(told.contains(&format!("gets of {length} bytes by {name} (")), "{told}");
                assert!(told.ends_with(at), "{told}");
                assert_eq!(bytes_by(name) - before, length, "{name}: {:?}", endpoint.counters(root));
            }
        }
    });
}
