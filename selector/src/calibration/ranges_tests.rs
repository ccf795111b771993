use super::*;
use crate::calibration::testing::{Line, MACHINE, measured, order};

fn load(pairs: u32, off_cache: bool) -> Load {
    Load { place: Place::SharedL2, pairs, off_cache }
}

fn course(lines: &[Line], pairs: u32, off_cache: bool) -> Course {
    measured(lines, load(pairs, off_cache), 1, 0.0, 3, 5)
}

/// The machine with one way's bytes cheaper or dearer.
fn changed(way: &str, factor: f64) -> Vec<Line> {
    let change = |line: &Line| match line.way == way {
        true => Line { byte_ns: line.byte_ns * factor, ..line.clone() },
        false => line.clone(),
    };
    MACHINE.iter().map(change).collect()
}

/// What the rules say is what was chosen, for every load and class.
fn says_what_was_chosen(all: &[CourseRules]) {
    let everything: Vec<Rule> = all.iter().flat_map(|course| course.rules.clone()).collect();
    for course in all {
        for chosen in &course.chosen {
            let way = taken(&everything, course.load, chosen.bytes);
            assert_eq!(way.as_deref(), Some(chosen.way.as_str()), "{:?}, {}", course.load, chosen.bytes);
        }
    }
}

#[test]
fn adjacent_classes_with_one_way_are_one_rule() {
    let all = rules(&[course(&MACHINE, 1, false)], &order(&MACHINE));
    let [only] = &all[..] else { panic!("{all:?}") };
    let [cells, read, driver] = &only.rules[..] else { panic!("{:?}", only.rules) };
    assert_eq!((cells.above, cells.up_to, &cells.take), (None, Some(Bound::Bytes(4096)), &Take::Eager));
    assert_eq!((read.above, read.up_to), (Some(Bound::Bytes(4096)), Some(Bound::Bytes(131_072))));
    // Nothing longer is measured: the last holds for all.
    assert_eq!((driver.above, driver.up_to), (Some(Bound::Bytes(131_072)), None));
    let Take::Ways(ways) = &driver.take else { panic!("{driver:?}") };
    let ways: Vec<String> = ways.iter().map(ToString::to_string).collect();
    assert_eq!(ways, ["driver:get", "read:get", "read:put", "ring:cooperative"], "by their medians");
    assert_eq!(read.places, [Place::SharedL2]);
    says_what_was_chosen(&all);
}

#[test]
fn what_is_no_different_off_cache_has_no_rule_of_its_own() {
    let all = rules(&[course(&MACHINE, 1, false), course(&MACHINE, 1, true)], &order(&MACHINE));
    assert_eq!(all.iter().map(|course| course.rules.len()).collect::<Vec<_>>(), [0, 3]);
    says_what_was_chosen(&all);
}

#[test]
fn cold_messages_have_rules_before_the_others_where_they_differ() {
    let cold = changed("driver:get", 0.1);
    let all = rules(&[course(&MACHINE, 1, false), course(&cold, 1, true)], &order(&MACHINE));
    let [off, on] = &all[..] else { panic!("{all:?}") };
    assert!(off.load.off_cache && !on.load.off_cache, "the exception comes first");
    let [rule] = &off.rules[..] else { panic!("{:?}", off.rules) };
    assert_eq!(rule.warmth, Some(Warmth::Cold));
    assert_eq!((rule.above, rule.up_to), (Some(Bound::Bytes(65536)), Some(Bound::Bytes(131_072))));
    says_what_was_chosen(&all);
}

#[test]
fn cells_end_at_the_same_length_whatever_the_cache() {
    let cold = changed(EAGER, 10.0);
    let all = rules(&[course(&MACHINE, 1, false), course(&cold, 1, true)], &order(&MACHINE));
    assert!(all[0].rules.is_empty(), "{:?}", all[0].rules);
    let cells = |course: &CourseRules| course.chosen.iter().filter(|chosen| chosen.way == EAGER).count();
    assert_eq!((cells(&all[0]), cells(&all[1])), (13, 13));
}

#[test]
fn many_pairs_have_rules_for_groups_of_three() {
    let many = changed("driver:get", 3.0);
    let all = rules(&[course(&many, 4, false), course(&MACHINE, 1, false)], &order(&MACHINE));
    assert_eq!(all[0].load.pairs, 4);
    assert!(!all[0].rules.is_empty());
    assert!(all[0].rules.iter().all(|rule| rule.min_processes == Some(3) && rule.warmth.is_none()));
    says_what_was_chosen(&all);
}

#[test]
fn a_part_of_the_sizes_has_rules_for_that_part() {
    let mut part = course(&MACHINE, 1, false);
    part.retain(|bytes| (65536..=1 << 20).contains(&bytes) && bytes != 262_144);
    let all = rules(&[part], &order(&MACHINE));
    let bounds: Vec<_> = all[0].rules.iter().map(|rule| (rule.above, rule.up_to)).collect();
    let bytes = |bytes| Some(Bound::Bytes(bytes));
    assert_eq!(
        bounds,
        [(bytes(32768), bytes(131_072)), (bytes(262_144), bytes(1 << 20))],
        "what was not measured has no rule"
    );
}

#[test]
fn rules_say_nothing_beyond_their_bounds() {
    let all = rules(&[course(&MACHINE, 1, false)], &order(&MACHINE));
    let elsewhere = Load { place: Place::Other, ..load(1, false) };
    assert_eq!(taken(&all[0].rules, elsewhere, 8), None);
    assert_eq!(taken(&all[0].rules, load(1, false), u64::MAX).as_deref(), Some("driver:get"));
    assert_eq!(taken(&all[0].rules, load(1, false), 4097).as_deref(), Some("read:get"));
}
