use std::collections::BTreeMap;

use lmt_core::config::Config;
use lmt_core::cpu_set::CpuSet;
use lmt_core::mechanism::{Direction, Model};
use lmt_core::selection::{Hints, Message, Reuse, Source, Taken, Warmth, Why};

use super::test_support::*;
use super::*;
use crate::configuration::SelectionSettings;
use crate::rules::{Authority, Figure, Layer, Take};
use crate::topology::Place;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn environment(variable: &str) -> Source {
    Source::Environment { variable: variable.to_owned() }
}

fn not(explanation: &Explanation, mechanism: &str) -> (Why, String) {
    let found = explanation.not_taken.iter().find(|other| other.mechanism == mechanism);
    found.map(|other| (other.why, other.sentence.clone())).expect("it is told of")
}

#[test]
fn without_rules_the_mechanisms_stand_in_their_order() {
    let world = World::new(Configuration::default());
    let eager = world.config.eager_max_bytes;
    assert_eq!(world.ways_of_bytes(eager)[0], "eager");
    let all = ["copy:get", "copy:put", "ring:cooperative", "ring-wide:cooperative"];
    assert_eq!(world.ways_of_bytes(eager + 1), all);
    let explanation = world.explain(&Message::of_bytes(MIB));
    assert_eq!(explanation.source, Source::Default { line: None });
    assert_eq!(explanation.place, "shared L2");
    assert_eq!(not(&explanation, "gone"), (Why::Unavailable, "gone was refused".into()));
    let denied = explanation.not_taken.iter().find(|other| other.mechanism == "gone");
    assert_eq!(denied.and_then(|other| other.errno), Some(1));
    let dma_min = "DMAmin 1 MiB = 4 MiB of L2 / (2 x 2 cores that share it)";
    assert!(explanation.notes.iter().any(|note| note == dma_min), "{explanation}");
}

#[test]
fn the_first_layer_with_a_rule_that_fits_speaks() {
    let world = World::new(configuration(vec![
        layer(Authority::User, vec![rule(3, Some(MIB), None, &["ring-wide"])]),
        layer(Authority::Calibration, vec![rule(9, Some(64 * KIB), None, &["copy:put"])]),
        layer(Authority::Default, vec![rule(20, None, None, &["ring", "copy"])]),
    ]));
    // A family's name means all of it.
    let ring = ["ring:cooperative", "ring-wide:cooperative", "copy:get", "copy:put"];
    assert_eq!(world.ways_of_bytes(64 * KIB), ring);
    assert_eq!(world.ways_of_bytes(64 * KIB + 1)[..2], ["copy:put", "copy:get"]);
    assert_eq!(world.ways_of_bytes(MIB)[0], "copy:put");
    assert_eq!(world.ways_of_bytes(MIB + 1)[..2], ["ring-wide:cooperative", "copy:get"]);
    let source = |bytes| world.explain(&Message::of_bytes(bytes)).source;
    assert_eq!(source(64 * KIB), Source::Default { line: Some(20) });
    let calibration = Source::Calibration { path: "/home/user/calibration.toml".into(), line: 9 };
    assert_eq!(source(MIB), calibration);
    assert_eq!(source(MIB + 1), Source::File { path: "/home/user/lmt.toml".into(), line: 3 });
}

#[test]
fn names_outrank_rules_and_leave_the_others_out() {
    let mut configuration =
        configuration(vec![layer(Authority::User, vec![rule(3, None, None, &["copy:get"])])]);
    configuration.config.mechanisms = Some(vec!["ring".into(), "copy:put".into()]);
    configuration.sources = BTreeMap::from([("mechanisms", environment("LMT_MECHANISM"))]);
    let mut world = World::new(configuration);
    world.policy = world.policy.with_existing_mechanisms(["copy", "ring", "ring-wide", "gone", "other"]);
    assert_eq!(world.ways_of_bytes(MIB), ["ring:cooperative", "ring-wide:cooperative", "copy:put"]);
    // As the engine restricts them.
    world.mechanisms = vec![known("copy", &[Model::Get]), known("ring", &[Model::Cooperative])];
    let explanation = world.explain(&Message::of_bytes(MIB));
    assert_eq!(explanation.source, environment("LMT_MECHANISM"));
    let sentence = "LMT_MECHANISM in the environment does not name what of it works";
    assert_eq!(not(&explanation, "copy"), (Why::LeftOut, sentence.into()));
    let sentence = "LMT_MECHANISM in the environment does not name it";
    assert_eq!(not(&explanation, "other"), (Why::LeftOut, sentence.into()));
    assert_eq!(explanation.rule, "mechanisms by name, whatever the rules say: ring, copy:put in this order");
}

#[test]
fn a_mechanism_without_a_place_in_the_built_in_rules_stands_before_the_next_of_the_list() {
    let ways = |authority| {
        let take = ["ring-wide", "last:get", "ring"];
        let mut world = World::new(configuration(vec![layer(authority, vec![rule(1, None, None, &take)])]));
        world.mechanisms.insert(1, known("new", &[Model::Get]));
        world.mechanisms.push(known("last", &[Model::Put, Model::Get]));
        world.mechanisms.push(known("newest", &[Model::Get]));
        world.ways_of_bytes(MIB)
    };
    let wide = "ring-wide:cooperative";
    let new = ["copy:get", "copy:put", "new:get"];
    let expected = [&[wide, "last:get"][..], &new, &["ring:cooperative", "newest:get", "last:put"]].concat();
    assert_eq!(ways(Authority::Default), expected);
    let expected = [&[wide, "last:get", "ring:cooperative"][..], &new, &["last:put", "newest:get"]].concat();
    assert_eq!(ways(Authority::User), expected);
}

#[test]
fn own_mechanisms_go_before_built_in_rules_only() {
    for (authority, first) in [(Authority::Default, "ring-wide:cooperative"), (Authority::User, "copy:get")] {
        let mut world =
            World::new(configuration(vec![layer(authority, vec![rule(1, None, None, &["copy"])])]));
        world.policy = world.policy.with_own_mechanisms(["ring-wide"]);
        assert_eq!(world.ways_of_bytes(MIB)[0], first);
        let explanation = world.explain(&Message::of_bytes(MIB));
        assert_eq!(explanation.source == Source::Call, authority == Authority::Default, "{explanation}");
    }
}

#[test]
fn places_and_dma_min_are_those_of_the_pair() {
    let near = Rule { places: vec![Place::SharedL2], ..rule(1, None, None, &["copy"]) };
    let far = Rule { above: Some(Bound::DmaMin), ..rule(2, None, None, &["ring-wide"]) };
    let world = |there| World {
        there: cpu(there),
        ..World::new(configuration(vec![layer(Authority::User, vec![near.clone(), far.clone()])]))
    };
    assert_eq!(world(1).ways_of_bytes(8 * MIB)[0], "copy:get");
    assert_eq!(world(4).ways_of_bytes(8 * MIB)[0], "ring-wide:cooperative");
    assert_eq!(world(4).ways_of_bytes(MIB)[0], "copy:get");
    assert_eq!(world(4).ways_of_bytes(MIB + 1)[0], "ring-wide:cooperative");
    let explanation = world(4).explain(&Message::of_bytes(MIB + 1));
    assert!(explanation.rule.starts_with("messages above DMAmin (1 MiB): ring-wide"), "{explanation}");
    assert_eq!(explanation.place, "nothing shared but the machine");
}

#[test]
fn dma_min_by_processes_and_as_given() {
    let rules = || vec![Rule { above: Some(Bound::DmaMin), ..rule(2, None, None, &["ring"]) }];
    let world = |dma_min| {
        let mut configuration = configuration(vec![layer(Authority::User, rules())]);
        configuration.selection = SelectionSettings { dma_min, ..Default::default() };
        World::new(configuration)
    };
    let mut by_processes = world(DmaMinSetting::ByProcesses);
    assert!(by_processes.policy.counts_processes());
    assert_eq!(by_processes.ways_of_bytes(MIB + 1)[0], "ring:cooperative");
    // The receiver has its L2 for itself.
    by_processes.there = cpu(2);
    by_processes.processes = vec![cpu(0), cpu(2)];
    assert_eq!(by_processes.ways_of_bytes(2 * MIB)[0], "copy:get");
    assert_eq!(by_processes.ways_of_bytes(2 * MIB + 1)[0], "ring:cooperative");
    let given = world(DmaMinSetting::Bytes(64 * KIB));
    assert!(!given.policy.counts_processes());
    assert_eq!(given.ways_of_bytes(64 * KIB + 1)[0], "ring:cooperative");
}

#[test]
fn hints_and_segments_choose_rules_and_directions() {
    let rules = vec![
        Rule { contiguous: Some(false), ..rule(1, None, None, &["ring"]) },
        Rule { reuse: Some(Reuse::Once), ..rule(2, None, None, &["ring-wide"]) },
        Rule { warmth: Some(Warmth::Cold), ..rule(3, None, None, &["copy:put"]) },
        rule(4, None, None, &["copy"]),
    ];
    let world = World::new(configuration(vec![layer(Authority::User, rules)]));
    let first = |contiguous, warmth, reuse| {
        let message = Message { contiguous, hints: Hints { warmth, reuse }, ..Message::of_bytes(MIB) };
        world.ways(&message)[0].clone()
    };
    assert_eq!(first(false, Warmth::Warm, Reuse::Once), "ring:cooperative");
    assert_eq!(first(true, Warmth::Unknown, Reuse::Once), "ring-wide:cooperative");
    assert_eq!(first(true, Warmth::Cold, Reuse::Again), "copy:put", "the rule says who copies");
    assert_eq!(first(true, Warmth::Warm, Reuse::Unknown), "copy:put", "who has it in its cache copies");
    assert_eq!(first(true, Warmth::Unknown, Reuse::Unknown), "copy:get");
}

#[test]
fn crowded_messages_take_ways_without_readers() {
    let capped = Rule { max_readers: Some(2), ..rule(4, None, None, &["copy:get", "ring"]) };
    let world = World::new(configuration(vec![layer(Authority::User, vec![capped])]));
    let message = |readers| Message { readers, ..Message::of_bytes(MIB) };
    assert_eq!(world.ways(&message(1))[0], "copy:get");
    assert_eq!(world.ways(&message(2))[0], "ring:cooperative");
    let explanation = world.explain(&message(2));
    let cap = "at most 2 other processes read this one at once (/home/user/lmt.toml:4); \
               2 now, so paths by which the receiver reads come last";
    assert!(explanation.notes.iter().any(|note| note == cap), "{explanation}");
    assert_eq!(not(&explanation, "copy").0, Why::Crowded);
    let sentence = "2 messages of this process are being read already, and the cap is 2";
    assert_eq!(not(&explanation, "copy").1, sentence);
}

#[test]
fn the_built_in_cap_leaves_named_ways_alone() {
    let mut configuration = Configuration::default();
    configuration.config.mechanisms = Some(vec!["copy:get".into(), "ring".into()]);
    let message = Message { readers: 100, ..Message::of_bytes(MIB) };
    assert_eq!(World::new(configuration.clone()).ways(&message)[0], "copy:get");
    configuration.sources.insert("max_readers", environment("LMT_MAX_READERS"));
    assert_eq!(World::new(configuration).ways(&message)[0], "ring:cooperative");
}

#[test]
fn mechanisms_out_of_their_range_stand_behind() {
    let mut user = layer(Authority::User, vec![rule(9, None, None, &["copy", "ring"])]);
    user.ranges = vec![range(2, "copy", Some(64 * KIB), Some(MIB)), range(5, "ring", None, Some(2 * MIB))];
    // The mechanism's own section outranks the family's.
    user.ranges.push(range(7, "ring-wide", None, None));
    let world = World::new(configuration(vec![user]));
    assert_eq!(world.ways_of_bytes(64 * KIB)[0], "ring:cooperative");
    assert_eq!(world.ways_of_bytes(64 * KIB + 1)[0], "copy:get");
    assert_eq!(world.ways_of_bytes(MIB + 1)[0], "ring:cooperative");
    assert_eq!(world.ways_of_bytes(2 * MIB + 1)[..2], ["ring-wide:cooperative", "copy:get"]);
    let explanation = world.explain(&Message::of_bytes(MIB + 1));
    let sentence =
        "[mechanism.copy] has it for messages above 64 KiB and up to 1 MiB only (/home/user/lmt.toml:2)";
    assert_eq!(not(&explanation, "copy"), (Why::OutOfRange, sentence.into()));
}

#[test]
fn a_range_with_nothing_else_to_take_is_told() {
    let mut user = layer(Authority::User, Vec::new());
    user.ranges = vec![range(2, "copy", None, Some(MIB))];
    let mut world = World::new(configuration(vec![user]));
    world.mechanisms = vec![known("copy", &[Model::Get]), denied("gone")];
    let explanation = world.explain(&Message::of_bytes(MIB + 1));
    assert_eq!(explanation.taken, Taken::By { mechanism: "copy".into(), model: Model::Get });
    let note = "copy is set for messages up to 1 MiB only (/home/user/lmt.toml:2), but nothing else works";
    assert!(explanation.notes.iter().any(|n| n == note), "{explanation}");
}

#[test]
fn another_rule_names_the_mechanism_for_other_lengths() {
    let rules = vec![rule(1, None, Some(2 * MIB), &["copy"]), rule(5, Some(2 * MIB), None, &["ring-wide"])];
    let world = World::new(configuration(vec![layer(Authority::Default, rules)]));
    let explanation = world.explain(&Message::of_bytes(MIB));
    let sentence = "the rules name it for messages above 2 MiB (the built-in default.toml:5)";
    assert_eq!(not(&explanation, "ring-wide"), (Why::OutOfRange, sentence.into()));
    let sentence = "the rule does not name it, and it is later in the list of mechanisms";
    assert_eq!(not(&explanation, "ring"), (Why::Later, sentence.into()));
}

fn figure(bytes: u64, way: &str, median_ns: u64) -> Figure {
    let way = way.to_owned();
    Figure { place: Place::SharedL2, pairs: 1, off_cache: false, bytes, way, median_ns }
}

#[test]
fn a_calibration_says_how_much_slower() {
    let mut calibration = layer(Authority::Calibration, vec![rule(7, None, None, &["copy:put"])]);
    calibration.figures = vec![
        figure(64 * KIB, "copy:put", 5_000),
        figure(64 * KIB, "ring:cooperative", 4_000),
        figure(256 * KIB, "copy:put", 15_000),
        figure(256 * KIB, "ring:cooperative", 31_400),
        figure(MIB, "ring:cooperative", 1),
        Figure { pairs: 2, ..figure(256 * KIB, "ring:cooperative", 1) },
        Figure { off_cache: true, ..figure(256 * KIB, "ring:cooperative", 1) },
        Figure { place: Place::Other, ..figure(256 * KIB, "ring:cooperative", 1) },
    ];
    let world = World::new(configuration(vec![calibration]));
    let explanation = world.explain(&Message::of_bytes(400 * KIB));
    let slower = (Why::Slower, "slower: 31 us against 15 us at 256 KiB".to_owned());
    assert_eq!(not(&explanation, "ring"), slower);
    assert_eq!(not(&explanation, "ring-wide").0, Why::Later);
    // At 64 KiB it was the faster one, whatever the rule says of it.
    let explanation = world.explain(&Message::of_bytes(64 * KIB));
    let (why, sentence) = not(&explanation, "ring");
    assert_eq!(why, Why::Later);
    assert!(sentence.ends_with("(measured: 4.0 us against 5.0 us at 64 KiB)"), "{sentence}");
}

#[test]
fn eager_by_rule_and_by_key() {
    let user = || layer(Authority::User, vec![eager_rule(1, 64 * KIB)]);
    let world = World::new(configuration(vec![user()]));
    assert_eq!(world.decide().eager_max_bytes(), 64 * KIB);
    let explanation = world.explain(&Message::of_bytes(64 * KIB));
    assert_eq!((&explanation.taken, &*explanation.rule), (&Taken::Eager, "messages up to 64 KiB: in cells"));
    assert_eq!(not(&explanation, "ring").0, Why::NotNeeded);

    let keyed = |source: Source, layers: Vec<Layer>| {
        let mut configuration = configuration(layers);
        configuration.config = Config { eager_max_bytes: 100, ..Config::default() };
        configuration.sources = BTreeMap::from([("eager_max_bytes", source)]);
        World::new(configuration).decide().eager_max_bytes()
    };
    let file = |path: &str| Source::File { path: path.into(), line: 2 };
    assert_eq!(keyed(environment("LMT_EAGER_MAX"), vec![user()]), 100);
    assert_eq!(keyed(Source::Call, vec![user()]), 100);
    assert_eq!(keyed(file("/home/user/lmt.toml"), vec![user()]), 64 * KIB, "the rule before the key");
    assert_eq!(keyed(Source::Default { line: Some(2) }, vec![user()]), 64 * KIB);
    let calibration = || layer(Authority::Calibration, vec![eager_rule(1, 32 * KIB)]);
    assert_eq!(
        keyed(file("/home/user/lmt.toml"), vec![layer(Authority::User, Vec::new()), calibration()]),
        100
    );
    assert_eq!(keyed(file("/elsewhere.toml"), vec![calibration()]), 100);
}

#[test]
fn eager_rules_hold_by_place_and_never_beyond_a_mebibyte() {
    let near = Rule { places: vec![Place::SharedL2], ..eager_rule(1, 64 * KIB) };
    let endless = Rule { up_to: None, ..eager_rule(2, 0) };
    let unhinted = Rule { warmth: Some(Warmth::Warm), ..eager_rule(3, 8 * KIB) };
    let world = |there, rules: Vec<Rule>| World {
        there: cpu(there),
        ..World::new(configuration(vec![layer(Authority::User, rules)]))
    };
    assert_eq!(world(1, vec![near.clone(), endless.clone()]).decide().eager_max_bytes(), 64 * KIB);
    assert_eq!(world(2, vec![near.clone(), endless]).decide().eager_max_bytes(), MIB);
    let world = world(2, vec![near, unhinted]);
    assert_eq!(world.decide().eager_max_bytes(), world.config.eager_max_bytes);
    let explanation = world.explain(&Message::of_bytes(1));
    let note =
        "/home/user/lmt.toml:3 is passed over: what takes cells cannot depend on segments, sender or reuse";
    assert!(explanation.notes.iter().any(|n| n == note), "{explanation}");
}

#[test]
fn a_layer_has_no_cells() {
    let mut world = World::new(Configuration::default());
    world.policy = world.policy.without_eager();
    assert_eq!(world.decide().eager_max_bytes(), 0);
    let explanation = world.explain(&Message::of_bytes(1));
    assert_eq!(explanation.taken, Taken::By { mechanism: "copy".into(), model: Model::Get });
}

#[test]
fn before_they_meet_nothing_is_known() {
    let mut world = World::new(Configuration::default());
    world.is_connected = false;
    world.there = CpuSet::EMPTY;
    world.mechanisms.iter_mut().for_each(|known| known.standing = Default::default());
    let explanation = world.explain(&Message::of_bytes(MIB));
    assert_eq!(explanation.taken, Taken::Unknown);
    assert_eq!(explanation.place, "place of the peer not known");
    assert!(explanation.not_taken.iter().all(|other| other.why == Why::Unknown), "{explanation}");
    assert_eq!(world.explain(&Message::of_bytes(1)).taken, Taken::Eager);
}

#[test]
fn rules_need_enough_processes() {
    let rules = vec![
        Rule { min_processes: Some(3), ..rule(1, None, None, &["ring"]) },
        rule(2, None, None, &["copy"]),
    ];
    let mut world = World::new(configuration(vec![layer(Authority::User, rules)]));
    assert!(world.policy.counts_processes());
    assert_eq!(world.ways_of_bytes(MIB)[0], "copy:get");
    world.processes.push(cpu(5));
    assert_eq!(world.ways_of_bytes(MIB)[0], "ring:cooperative");
}

#[test]
fn a_machine_that_cannot_be_read_is_told_and_asked_for_only_if_needed() {
    fn fails() -> Result<Arc<Machine>, String> {
        Err("hwloc is ill".to_owned())
    }
    fn must_not_be_asked() -> Result<Arc<Machine>, String> {
        panic!("no rule asks for the place")
    }
    let anywhere = configuration(vec![layer(Authority::User, vec![rule(1, None, None, &["ring"])])]);
    let mut world = World::new(anywhere.clone());
    world.policy = RulePolicy::new(Arc::new(anywhere), MachineSource::Lazy(must_not_be_asked));
    assert_eq!(world.ways_of_bytes(MIB)[0], "ring:cooperative");

    let here = Rule { places: vec![Place::SharedL2], ..rule(1, None, None, &["ring"]) };
    let by_place = configuration(vec![layer(Authority::User, vec![here])]);
    world.policy = RulePolicy::new(Arc::new(by_place), MachineSource::Lazy(fails));
    assert_eq!(world.ways_of_bytes(MIB)[0], "copy:get");
    let explanation = world.explain(&Message::of_bytes(MIB));
    assert_eq!(explanation.place, "topology not known");
    assert!(
        explanation.notes.contains(&"the topology is not known: hwloc is ill".to_owned()),
        "{explanation}"
    );
}

#[test]
fn a_rule_none_of_whose_ways_works_is_told() {
    let world = World::new(configuration(vec![layer(Authority::User, vec![rule(1, None, None, &["gone"])])]));
    let explanation = world.explain(&Message::of_bytes(MIB));
    assert_eq!(explanation.taken, Taken::By { mechanism: "copy".into(), model: Model::Get });
    let note = "no path that the rule names works here".to_owned();
    assert!(explanation.notes.contains(&note), "{explanation}");
}

#[test]
fn remarks_of_the_configuration_are_passed_on() {
    let remarks = vec!["the calibration is of another machine".to_owned()];
    let configuration = Configuration { remarks: remarks.clone(), ..Configuration::default() };
    assert!(World::new(configuration).explain(&Message::of_bytes(1)).notes.contains(&remarks[0]));
}

#[test]
fn long_lists_are_cut() {
    let names = |names: &[&str]| words::in_order(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(names(&["a"]), "a");
    assert_eq!(names(&["a", "b", "c", "d", "e"]), "a, b, c, d, e in this order");
    assert_eq!(names(&["a", "b", "c", "d", "e", "f"]), "a, b, c and 3 more in this order");
}

#[test]
fn a_rule_in_words() {
    let all = Rule {
        places: vec![Place::SameCore, Place::SharedL2],
        contiguous: Some(true),
        warmth: Some(Warmth::Warm),
        reuse: Some(Reuse::Again),
        min_processes: Some(2),
        take: Take::Ways(vec!["copy:put".parse().unwrap(), "ring".parse().unwrap()]),
        ..rule(1, Some(64 * KIB), Some(2 * MIB), &[])
    };
    let world = World::new(configuration(vec![layer(Authority::User, vec![all])]));
    let hints = Hints { warmth: Warmth::Warm, reuse: Reuse::Again };
    let explanation = world.explain(&Message { hints, ..Message::of_bytes(MIB) });
    assert_eq!(
        explanation.rule,
        "messages above 64 KiB and up to 2 MiB between processes on the same core or with a shared L2, \
         of one segment, just written by the sender, from a buffer that is used again, \
         when at least 2 processes are known: copy:put, ring in this order"
    );
}

#[test]
fn gets_and_puts_go_by_the_rule_for_their_length_and_so_many_processes() {
    let for_many = Rule { min_processes: Some(3), ..rule(4, None, Some(MIB), &["other:both"]) };
    let rules = vec![for_many, rule(7, None, Some(MIB), &["copy:put"]), rule(9, None, None, &["other"])];
    let mut world = World::new(configuration(vec![layer(Authority::User, rules)]));
    let copies = |name| KnownMechanism { copies_registered: true, ..known(name, &[Model::Put]) };
    world.mechanisms = vec![known("ring", &[Model::Cooperative]), copies("copy"), copies("other")];
    let told = |world: &World, bytes| world.one_sided(Direction::Get).explain(&world.policy, bytes);
    let taken = |world: &World, bytes| (told(world, bytes).taken, told(world, bytes).source);
    let by = |name: &str| Taken::By { mechanism: name.into(), model: Model::Get };
    let at = |line| Source::File { path: "/home/user/lmt.toml".into(), line };
    assert_eq!(taken(&world, MIB), (by("copy"), at(7)));
    assert_eq!(taken(&world, MIB + 1), (by("other"), at(9)));
    let explanation = told(&world, 1);
    assert_eq!(explanation.then, ["other:get"], "no cells and no models that are not asked for");
    let sentence = "it moves messages and cannot reach a peer's registered memory".to_owned();
    assert_eq!(not(&explanation, "ring"), (Why::Unavailable, sentence));
    world.processes.push(cpu(2));
    assert_eq!(taken(&world, MIB), (by("other"), at(4)));
    // What is decided is what is told.
    let decisions = world.one_sided(Direction::Get).decide(&mut world.policy.clone());
    let first = |bytes| decisions.candidates(&Message::of_bytes(bytes)).as_slice()[0].mechanism;
    assert_eq!([first(MIB), first(MIB + 1)], [copies("other").tag; 2]);
}
