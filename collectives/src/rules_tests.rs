use lmt_core::selection::Source;

use super::*;
use crate::algorithms::program;
use crate::call::{Block, Blocks};
use crate::choice::Chooser;
use crate::explain::{Question, call};

fn at(line: u32) -> Source {
    Source::File { path: "lmt.toml".into(), line }
}

fn rule(line: u32, operation: &str, algorithm: &str) -> CollectiveRule {
    CollectiveRule::new(operation, algorithm, at(line))
}

fn question(kind: Kind, ranks: u32, bytes: u64) -> Call {
    call(Question { kind, ranks, bytes, single_copy: true })
}

/// The algorithm, why, and what is passed over.
fn told(chooser: &mut Chooser, call: &Call) -> (Algorithm, String) {
    let (choice, passed_over) = chooser.explain(call, false);
    let told: Vec<String> = [choice.reason.into_owned()].into_iter().chain(passed_over).collect();
    (choice.algorithm, told.join("; "))
}

fn situation(call: &Call, is_listed: bool) -> Situation {
    chooser(&[]).situation(call, is_listed)
}

fn chooser(rules: &[CollectiveRule]) -> Chooser {
    let rules = Rules::read(rules).expect("names that there are");
    let mut chooser = Chooser::default().with_rules(rules);
    chooser.single_copy = true;
    chooser
}

#[test]
fn the_first_that_fits_is_taken_with_its_place() {
    let mut chooser = chooser(&[
        CollectiveRule { above: Some(1 << 20), ..rule(1, "bcast", "scatter-allgather") },
        CollectiveRule { max_ranks: Some(4), ..rule(5, "bcast", "knomial:2") },
        rule(9, "*", "bruck"),
        rule(12, "allgather", "ring-source-write"),
    ]);
    let mut of = |kind, ranks, bytes| told(&mut chooser, &question(kind, ranks, bytes));
    let by = |algorithm, reason: &str| (algorithm, reason.to_owned());
    let long = by(Algorithm::ScatterAllgather, "bcast by scatter-allgather at lmt.toml:1");
    assert_eq!(of(Kind::Broadcast, 8, (1 << 20) + 1), long);
    let few = by(Algorithm::Knomial(2), "bcast by knomial:2 at lmt.toml:5");
    assert_eq!(of(Kind::Broadcast, 4, 1 << 20), few);
    assert_eq!(of(Kind::Broadcast, 5, 1 << 20).0, Algorithm::Pipelined(64), "no rule fits");
    // Any operation is any that it does.
    assert_eq!(of(Kind::Allgather, 5, 1 << 20), by(Algorithm::Bruck, "* by bruck at lmt.toml:9"));
    assert_eq!(of(Kind::Scatter, 9, 1 << 20).0, Algorithm::ThrottledRead(4));
    // What fits into slots goes through them, whatever rules say.
    assert_eq!(of(Kind::Allgather, 5, 64).0, Algorithm::Slots);
}

#[test]
fn what_fits_into_slots_is_for_rules_with_bounds() {
    let bounded = CollectiveRule { above: Some(1024), ..rule(1, "bcast", "knomial:2") };
    let mut chooser = chooser(&[bounded, rule(4, "bcast", "messages")]);
    for (bytes, algorithm) in
        [(1024, Algorithm::Slots), (1025, Algorithm::Knomial(2)), (1 << 20, Algorithm::Knomial(2))]
    {
        assert_eq!(told(&mut chooser, &question(Kind::Broadcast, 4, bytes)).0, algorithm, "{bytes}");
    }
    assert_eq!(told(&mut chooser, &question(Kind::Barrier, 4, 0)).0, Algorithm::Slots);
}

#[test]
fn bounds_are_of_a_rank_s_block() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Barrier) {
        let bounds =
            CollectiveRule { above: Some(65535), up_to: Some(65536), ..rule(1, kind.name(), "messages") };
        let rules = Rules::read(&[bounds]).expect("messages do all");
        for (bytes, fits) in [(65535, false), (65536, true), (65537, false)] {
            let call = question(kind, 4, bytes);
            assert_eq!(rules.ruled(&call, situation(&call, false)).is_some(), fits, "{kind} {bytes}");
        }
    }
}

#[test]
fn what_cannot_do_the_call_is_passed_over_with_a_reason() {
    let rules =
        [rule(1, "allgather", "slots"), rule(2, "allgather", "ring-neighbor:2"), rule(3, "*", "messages")];
    let mut chooser = chooser(&rules);
    let (algorithm, reason) = told(&mut chooser, &question(Kind::Allgather, 4, 2 << 20));
    assert_eq!(algorithm, Algorithm::Messages);
    assert!(
        reason.starts_with("* by messages at lmt.toml:3; allgather by slots at lmt.toml:1 is passed over: ")
    );
    let ring =
        "ring-neighbor:2 at lmt.toml:2 is passed over: its number and the 4 ranks have a common divisor";
    assert!(reason.contains(ring), "{reason}");
    let (algorithm, reason) = told(&mut chooser, &question(Kind::Allgather, 5, 2 << 20));
    assert_eq!(algorithm, Algorithm::RingNeighbor(2), "{reason}");
    chooser.single_copy = false;
    let (algorithm, reason) = told(&mut chooser, &question(Kind::Allgather, 5, 2 << 20));
    assert_eq!(algorithm, Algorithm::Messages);
    assert!(reason.contains("passed over: some ranks may not reach into others' memory"), "{reason}");
    let mut only = self::chooser(&rules[1..2]);
    only.single_copy = false;
    let (algorithm, reason) = told(&mut only, &question(Kind::Allgather, 5, 1 << 20));
    assert_eq!(algorithm, Algorithm::Slots);
    assert!(reason.contains("lmt.toml:2 is passed over"), "{reason}");
}

/// The same call with a list of blocks.
fn listed(call: Call, bytes: u64) -> Call {
    let block = |rank: u32| Block { offset: u64::from(rank) * bytes, bytes };
    let blocks = Blocks::Listed((0..call.size).map(block).collect());
    Call { input_blocks: blocks.clone(), blocks, ..call }
}

#[test]
fn what_is_not_passed_over_can_do_the_call() {
    let mut count = [0, 0];
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Barrier) {
        for algorithm in Algorithm::of(kind).flat_map(|one| [one, one.with_number(2), one.with_number(3)]) {
            for (size, bytes, is_listed) in
                (1..=9).flat_map(|size| [(size, 8192, false), (size, 65536, false), (size, 65536, true)])
            {
                if is_listed
                    && !matches!(kind, Kind::Scatter | Kind::Gather | Kind::Allgather | Kind::Alltoall)
                {
                    continue;
                }
                let plain = question(kind, size, bytes);
                let call = if is_listed { listed(plain, bytes) } else { plain };
                let can = program(&call, algorithm);
                let unfit = unfit(algorithm, &call, situation(&call, is_listed));
                count[usize::from(unfit.is_some())] += 1;
                // A single rank posts nothing.
                if algorithm != Algorithm::Slots {
                    assert_eq!(
                        unfit.is_none(),
                        can.is_ok(),
                        "{kind} {algorithm} {size} {bytes} {is_listed}: {can:?}"
                    );
                } else if unfit.is_none() {
                    assert!(can.is_ok(), "{kind} {size} {bytes} {is_listed}");
                }
            }
        }
    }
    assert!(count.iter().all(|count| *count > 20), "{count:?}");
}

#[test]
fn of_calls_with_lists_only_rules_without_bounds_speak() {
    let rules = [
        CollectiveRule { above: Some(1), ..rule(1, "scatter", "parallel-read") },
        rule(2, "scatter", "messages"),
    ];
    let rules = Rules::read(&rules).expect("names");
    let call = listed(question(Kind::Scatter, 3, 65536), 65536);
    assert_eq!(
        rules.ruled(&call, situation(&call, true)).map(|rule| rule.algorithm),
        Some(Algorithm::Messages)
    );
    assert_eq!(
        rules.ruled(&call, situation(&call, false)).map(|rule| rule.algorithm),
        Some(Algorithm::ParallelRead)
    );
}

#[test]
fn a_name_that_means_nothing_is_told_with_its_place_and_what_there_is() {
    for (operation, algorithm, words) in [
        ("bcst", "messages", "lmt.toml:7: there is no operation bcst; there are barrier, bcast, "),
        (
            "bcast",
            "pairwise",
            "lmt.toml:7: pairwise does not do bcast; it is done by slots, messages, pipelined:64, direct-read",
        ),
        ("bcast", "knomal", "there is no algorithm knomal of bcast; it is done by slots, "),
        ("bcast", "knomial:0", "there is no algorithm knomial:0 of bcast"),
        ("*", "knomal", "\"knomal\" is no algorithm; there are slots, "),
    ] {
        let error = Rules::read(&[rule(7, operation, algorithm)]).expect_err("misnamed");
        assert!(error.to_string().contains(words), "{error}");
    }
    let rule =
        CollectiveRule::new("bcst", "slots", Source::Environment { variable: "LMT_COLLECTIVES".into() });
    let error = Rules::read(&[rule]).expect_err("misnamed").to_string();
    assert!(error.starts_with("LMT_COLLECTIVES in the environment: there is no operation bcst"), "{error}");
}
