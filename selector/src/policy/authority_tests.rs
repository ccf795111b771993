//! Who outranks whom: calls, the environment, two files of the user's, a
//! calibration and the defaults.

use std::path::PathBuf;

use lmt_core::mechanism::Model;
use lmt_core::selection::{Explanation, Message, Source, Taken, Why};

use super::test_support::*;
use crate::configuration::Configuration;
use crate::rules::{Authority, Bound, Layer, Rule};
use crate::topology::Place;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const FIRST: &str = "/home/user/first.toml";
const SECOND: &str = "/home/user/second.toml";
const CALIBRATION: &str = "/home/user/calibration.toml";

/// Two files of the user's, a calibration and the defaults, which name `copy`.
fn layers() -> Vec<Layer> {
    let user = |path: &str| Layer { path: PathBuf::from(path), ..layer(Authority::User, Vec::new()) };
    let default = layer(Authority::Default, vec![rule(90, None, None, &["copy"])]);
    vec![user(FIRST), user(SECOND), layer(Authority::Calibration, Vec::new()), default]
}

fn with_rules(rules: [Vec<Rule>; 3]) -> Configuration {
    let mut layers = layers();
    layers.iter_mut().zip(rules).for_each(|(layer, rules)| layer.rules = rules);
    configuration(layers)
}

fn file(path: &str, line: u32) -> Source {
    Source::File { path: path.to_owned(), line }
}

/// Everything that can set a key, the highest first; the last is nobody.
fn all_sources() -> [Source; 6] {
    [
        Source::Call,
        Source::Environment { variable: "LMT_KEY".into() },
        file(FIRST, 50),
        file(SECOND, 50),
        Source::Calibration { path: CALIBRATION.into(), line: 50 },
        Source::Default { line: None },
    ]
}

fn has_note(explanation: &Explanation, note: &str) {
    assert!(explanation.notes.iter().any(|other| other == note), "{note:?} in {explanation}");
}

fn note_of(explanation: &Explanation, part: &str) {
    assert!(explanation.notes.iter().any(|note| note.contains(part)), "{part:?} in {explanation}");
}

fn eager_of(configuration: Configuration) -> u64 {
    World::new(configuration).decide().eager_max_bytes()
}

/// An eager rule in each file in turn, and the key in each source.
#[test]
fn eager_rules_stand_before_keys_of_their_file_and_lower_ones() {
    for at in 0..3 {
        for (rank, source) in all_sources().into_iter().enumerate() {
            let mut rules = [const { Vec::new() }; 3];
            rules[at] = vec![eager_rule(1, 64 * KIB)];
            let mut configuration = with_rules(rules);
            configuration.config.eager_max_bytes = 100;
            configuration.sources.insert("eager_max_bytes", source);
            // The sources of the files begin at 2.
            let expected = if rank < at + 2 { 100 } else { 64 * KIB };
            assert_eq!(eager_of(configuration), expected, "rule of file {at}, key of source {rank}");
        }
    }
}

#[test]
fn an_earlier_rule_for_ways_ends_cells_where_it_holds() {
    let near = Rule { places: vec![Place::SharedL2], ..rule(3, Some(KIB), None, &["copy"]) };
    let world = |there, rules| World { there: cpu(there), ..World::new(with_rules(rules)) };
    let one_file = || [vec![near.clone(), eager_rule(9, 64 * KIB)], vec![], vec![]];
    assert_eq!(world(1, one_file()).decide().eager_max_bytes(), KIB);
    assert_eq!(world(4, one_file()).decide().eager_max_bytes(), 64 * KIB);
    let note = "cells end at 1 KiB and not at 64 KiB (/home/user/first.toml:9), since an earlier rule \
                (/home/user/first.toml:3) has longer messages go by rendezvous";
    for bytes in [KIB, KIB + 1] {
        let explanation = world(1, one_file()).explain(&Message::of_bytes(bytes));
        assert_eq!(explanation.taken == Taken::Eager, bytes == KIB);
        has_note(&explanation, note);
    }
    // In the other order the cells come first, and so they do in a higher file.
    let later = [vec![eager_rule(1, 64 * KIB), near.clone()], vec![], vec![]];
    assert_eq!(world(1, later).decide().eager_max_bytes(), 64 * KIB);
    let lower = [vec![eager_rule(1, 64 * KIB)], vec![near.clone()], vec![]];
    assert_eq!(world(1, lower).decide().eager_max_bytes(), 64 * KIB);
    for eager_in in [1, 2] {
        let mut rules = [vec![near.clone()], vec![], vec![]];
        rules[eager_in] = vec![eager_rule(1, 64 * KIB)];
        assert_eq!(world(1, rules.clone()).decide().eager_max_bytes(), KIB);
        assert_eq!(world(4, rules).decide().eager_max_bytes(), 64 * KIB);
    }
    // The lowest of several bounds counts.
    let two = [vec![rule(1, Some(8 * KIB), None, &["ring"]), near, eager_rule(2, 64 * KIB)], vec![], vec![]];
    assert_eq!(world(4, two.clone()).decide().eager_max_bytes(), 8 * KIB);
    assert_eq!(world(1, two).decide().eager_max_bytes(), KIB);
}

#[test]
fn rules_that_ask_for_more_or_hold_nowhere_do_not_end_cells() {
    let plain = rule(3, Some(KIB), None, &["copy"]);
    let eager =
        |cutting: Rule| eager_of(with_rules([vec![cutting, eager_rule(9, 64 * KIB)], vec![], vec![]]));
    assert_eq!(eager(plain.clone()), KIB);
    assert_eq!(eager(Rule { contiguous: Some(false), ..plain.clone() }), 64 * KIB);
    assert_eq!(eager(Rule { warmth: Some(lmt_core::selection::Warmth::Cold), ..plain.clone() }), 64 * KIB);
    assert_eq!(eager(Rule { reuse: Some(lmt_core::selection::Reuse::Once), ..plain.clone() }), 64 * KIB);
    assert_eq!(eager(Rule { min_processes: Some(3), ..plain.clone() }), 64 * KIB);
    assert_eq!(eager(Rule { min_processes: Some(2), ..plain.clone() }), KIB);
    // DMAmin is 1 MiB here: no length is in the range of this one.
    let empty = Rule { above: Some(Bound::DmaMin), ..rule(3, None, Some(KIB), &["copy"]) };
    assert_eq!(eager(empty), 64 * KIB);
    // In its own file a rule that begins at 0 leaves nothing, in others all.
    assert_eq!(eager(rule(3, None, None, &["copy"])), 0);
    let higher = [vec![rule(3, None, None, &["copy"])], vec![eager_rule(9, 64 * KIB)], vec![]];
    assert_eq!(eager_of(with_rules(higher)), 64 * KIB);
}

/// Whoever says how much goes in cells: an inbox carries less than a fast box.
#[test]
fn without_a_fast_box_cells_end_earlier() {
    let without_fast_box = |rules, key_bytes, boxless_bytes| {
        let mut world = World::new(with_rules([rules, vec![], vec![]]));
        world.config.eager_max_bytes = key_bytes;
        world.config.inbox_eager_max_bytes = boxless_bytes;
        World { has_fast_box: false, ..world }
    };
    assert_eq!(without_fast_box(vec![], 64 * KIB, 32 * KIB).decide().eager_max_bytes(), 32 * KIB);
    assert_eq!(without_fast_box(vec![], 8 * KIB, 32 * KIB).decide().eager_max_bytes(), 8 * KIB);
    assert_eq!(
        without_fast_box(vec![eager_rule(9, 64 * KIB)], 0, 32 * KIB).decide().eager_max_bytes(),
        32 * KIB
    );
    let cut = vec![rule(3, Some(16 * KIB), None, &["copy"]), eager_rule(9, 64 * KIB)];
    assert_eq!(without_fast_box(cut, 0, 32 * KIB).decide().eager_max_bytes(), 16 * KIB);

    let world = without_fast_box(vec![], 64 * KIB, 32 * KIB);
    let short = world.explain(&Message::of_bytes(32 * KIB));
    assert_eq!(short.taken, Taken::Eager);
    assert!(short.rule.contains("32 KiB") && short.rule.contains("inbox_eager_max_bytes"), "{short}");
    let long = world.explain(&Message::of_bytes(48 * KIB));
    assert_ne!(long.taken, Taken::Eager);
    let is_said = |note: &String| note.contains("no fast box") && note.contains("32 KiB");
    assert!(long.notes.iter().any(is_said), "{long}");
    let fast_box_present = World { has_fast_box: true, ..world }.explain(&Message::of_bytes(48 * KIB));
    assert_eq!(fast_box_present.taken, Taken::Eager);
    assert!(!fast_box_present.notes.iter().any(is_said), "{fast_box_present}");
}

/// The key, where no rule takes cells.
#[test]
fn rules_end_the_cells_of_a_lower_key_and_not_those_of_calls() {
    for (rank, source) in all_sources().into_iter().enumerate() {
        for (above, in_cells) in [(Some(KIB), KIB), (None, 8 * KIB)] {
            let mut configuration = with_rules([vec![], vec![rule(3, above, None, &["copy"])], vec![]]);
            configuration.config.eager_max_bytes = 8 * KIB;
            configuration.sources.insert("eager_max_bytes", source.clone());
            let expected = if rank < 3 { 8 * KIB } else { in_cells };
            assert_eq!(eager_of(configuration), expected, "{source} and {above:?}");
        }
    }
}

/// Each of these names `ring` and then `copy:put`; the second file has a rule.
#[test]
fn mechanisms_of_a_file_stand_at_its_place() {
    for (rank, source) in all_sources().into_iter().enumerate().take(5) {
        let rules = [vec![], vec![rule(3, Some(MIB), None, &["copy", "ring-wide"])], vec![]];
        let mut configuration = with_rules(rules);
        configuration.config.mechanisms = Some(vec!["ring".into(), "copy:put".into()]);
        configuration.sources.insert("mechanisms", source.clone());
        let world = World::new(configuration);
        let by_key = ["ring:cooperative", "ring-wide:cooperative", "copy:put"];
        // What is left out stays left out, whoever sets the order.
        let by_rule = ["copy:put", "ring-wide:cooperative", "ring:cooperative"];
        assert_eq!(world.ways_of_bytes(MIB), by_key);
        let is_lower = rank == 4;
        assert_eq!(world.ways_of_bytes(MIB + 1), if is_lower { by_rule } else { by_key }, "{source}");
        let explanation = world.explain(&Message::of_bytes(MIB + 1));
        if is_lower {
            assert_eq!(explanation.source, file(SECOND, 3));
            note_of(&explanation, "only what `mechanisms` names is used (the calibration");
            has_note(&world.explain(&Message::of_bytes(MIB)), "no rule of /home/user/second.toml fits it");
        } else {
            assert_eq!(explanation.source, source);
            let by = if rank < 2 { "whatever the rules say" } else { "before the rules of the same file" };
            assert!(explanation.rule.contains(by), "{explanation}");
        }
    }
}

/// A rule of the second file names `copy`, for which each file in turn sets a
/// range, as it does for `ring`, which is not named.
#[test]
fn lower_ranges_say_nothing_of_what_a_rule_names() {
    for (at, has_say) in [(0, true), (1, true), (2, false), (3, false)] {
        let mut configuration = with_rules([vec![], vec![rule(3, None, None, &["copy"])], vec![]]);
        configuration.layers[at].ranges =
            ["copy", "ring"].map(|name| range(7, name, None, Some(MIB))).to_vec();
        configuration.layers[at].ranges.push(range(9, "ring-wide", None, None));
        let ways = World::new(configuration).ways_of_bytes(MIB + 1);
        let expected = match has_say {
            true => ["ring-wide:cooperative", "copy:get", "copy:put", "ring:cooperative"],
            false => ["copy:get", "copy:put", "ring-wide:cooperative", "ring:cooperative"],
        };
        assert_eq!(ways, expected, "ranges of file {at}");
    }
}

/// `mechanisms` of the second file, a range in each.
#[test]
fn ranges_of_its_own_file_and_higher_ones_hold_for_mechanisms_of_a_file() {
    for (at, has_say) in [(0, true), (1, true), (2, false), (3, false)] {
        let ways = |source: Source| {
            let mut configuration = with_rules([vec![], vec![], vec![]]);
            configuration.layers[at].ranges = vec![range(7, "copy", None, Some(MIB))];
            configuration.config.mechanisms = Some(vec!["copy:get".into(), "ring".into()]);
            configuration.sources.insert("mechanisms", source);
            World::new(configuration).ways_of_bytes(MIB + 1)
        };
        assert_eq!(ways(file(SECOND, 2))[0] == "ring:cooperative", has_say, "range of file {at}");
        assert_eq!(ways(Source::Call)[0], "copy:get");
    }
}

/// A rule with a cap in each file, and the key in each source.
#[test]
fn the_cap_is_of_the_highest_that_sets_it() {
    for at in 0..3 {
        for (rank, source) in all_sources().into_iter().enumerate() {
            let mut rules = [const { Vec::new() }; 3];
            rules[at] = vec![Rule { max_readers: Some(2), ..rule(4, None, None, &["copy:get", "ring"]) }];
            let mut configuration = with_rules(rules);
            configuration.selection.max_readers = 5;
            configuration.sources.insert("max_readers", source.clone());
            let world = World::new(configuration);
            let first = |readers| world.ways(&Message { readers, ..Message::of_bytes(MIB) })[0].clone();
            let cap = if rank < at + 2 { 5 } else { 2 };
            assert_eq!(first(cap - 1), "copy:get", "rule of file {at}, key of {source}");
            assert_eq!(first(cap), "ring:cooperative", "rule of file {at}, key of {source}");
            let explanation = world.explain(&Message::of_bytes(MIB));
            let by = if cap == 5 { source } else { explanation.source.clone() };
            has_note(
                &explanation,
                &format!("at most {cap} other processes read this one at once ({by}); 0 now"),
            );
        }
    }
}

#[test]
fn notes_say_why_what_was_asked_for_comes_later() {
    let capped = Rule { max_readers: Some(1), ..rule(4, None, None, &["copy:get"]) };
    let mut configuration = with_rules([vec![capped], vec![], vec![]]);
    let crowded = Message { readers: 1, ..Message::of_bytes(2 * MIB) };
    let explanation = World::new(configuration.clone()).explain(&crowded);
    let later = "the paths of the rule that work here come later: copy:get for the cap on readers";
    has_note(&explanation, later);

    configuration.layers[0].ranges = vec![range(7, "copy", None, Some(MIB))];
    let explanation = World::new(configuration.clone()).explain(&crowded);
    let later = "the paths of the rule that work here come later: copy:get for the length, \
                 which is out of its range";
    has_note(&explanation, later);

    // Nothing that is within its range is without readers.
    configuration.layers[0].ranges = vec![range(7, "ring", None, Some(MIB))];
    let mut world = World::new(configuration);
    world.mechanisms = vec![known("copy", &[Model::Get]), known("ring", &[Model::Cooperative])];
    let explanation = world.explain(&crowded);
    assert_eq!(explanation.taken, Taken::By { mechanism: "ring".into(), model: Model::Cooperative });
    note_of(
        &explanation,
        "ring is set for messages up to 1 MiB only (/home/user/first.toml:7), but the cap on readers",
    );
    assert_eq!(explanation.not_taken[0].why, Why::Crowded, "{explanation}");

    let mut configuration = with_rules([vec![], vec![], vec![]]);
    configuration.layers[0].ranges =
        vec![range(7, "copy", None, Some(MIB)), range(8, "ring", None, Some(MIB))];
    let explanation = World::new(configuration).explain(&Message::of_bytes(MIB + 1));
    note_of(&explanation, "but nothing that works here is within its own range");
}

#[test]
fn files_whose_rules_do_not_fit_are_told() {
    let rules =
        [vec![rule(3, Some(MIB), None, &["ring"])], vec![], vec![rule(4, Some(2 * MIB), None, &["ring"])]];
    let world = World::new(with_rules(rules));
    let explanation = world.explain(&Message::of_bytes(MIB));
    has_note(&explanation, "no rule of /home/user/first.toml, nor of /home/user/calibration.toml fits it");
    let explanation = world.explain(&Message::of_bytes(MIB + 1));
    assert!(!explanation.notes.iter().any(|note| note.starts_with("no rule of")), "{explanation}");
}
