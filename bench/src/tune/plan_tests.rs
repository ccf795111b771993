use lmt_selector::calibration::choose;
use lmt_selector::topology::Place;

use super::*;

const LOAD: Load = Load { place: Place::Other, pairs: 1, off_cache: false };

fn ways() -> Vec<String> {
    [EAGER, "a:get", "b:get"].map(str::to_owned).into()
}

/// One class, with the times of the ways in one pass each.
fn course(bytes: u64, eager: [f64; 5], a: [f64; 5], b: [f64; 5]) -> Course {
    let mut course = Course::new(LOAD);
    for pass in 0..3 {
        for (way, times) in ways().iter().zip([&eager, &a, &b]) {
            course.add(bytes, way, pass, times);
        }
    }
    course
}

#[test]
fn nothing_is_measured_where_there_is_nothing_to_learn() {
    let counts = |bytes| repetitions(Effort::QUICK, 0, bytes, &ways(), &Course::new(LOAD));
    assert_eq!(counts(128), [3, 0, 0], "too short to be announced");
    assert_eq!(counts(256), [3, 3, 3]);
    assert_eq!(counts(2 << 20), [0, 3, 3], "too long for cells");
}

#[test]
fn what_is_hopeless_is_measured_once_a_pass_and_not_beyond() {
    let course = course(4096, [100.0; 5], [110.0; 5], [300.0; 5]);
    let counts = |pass| repetitions(Effort::QUICK, pass, 4096, &ways(), &course);
    assert_eq!(counts(1), [7, 7, 1]);
    assert_eq!(counts(Effort::QUICK.passes), [7, 7, 0]);
}

#[test]
fn what_is_close_and_unsure_is_open() {
    let scattered = [80.0, 90.0, 100.0, 110.0, 130.0];
    let open = |course: &Course| undecided(course, &choose(course, &ways(), None));
    assert_eq!(open(&course(4096, [900.0; 5], scattered, [104.0; 5])), [4096]);
    assert!(open(&course(4096, [900.0; 5], [100.0; 5], [104.0; 5])).is_empty(), "it is sure");
    let far = scattered.map(|ns| ns * 9.0);
    assert!(open(&course(4096, [900.0; 5], [100.0; 5], far)).is_empty(), "it is far");
}

#[test]
fn quick_is_within_three_minutes() {
    // Starting, probing and ending take seconds; half a minute is left for them.
    const { assert!(Effort::QUICK.time_s <= 150) };
}

#[test]
fn what_passes_contradict_each_other_about_is_open() {
    // By the medians of all passes b is the fastest, by the ratios a.
    let mut course = Course::new(LOAD);
    for (pass, (a, b)) in [(100.0, 110.0), (200.0, 210.0), (150.0, 140.0)].into_iter().enumerate() {
        course.add(4096, "a:get", pass, &[a; 5]);
        course.add(4096, "b:get", pass, &[b; 5]);
    }
    assert_eq!(undecided(&course, &choose(&course, &ways(), None)), [4096]);
}

#[test]
fn cells_are_not_open_where_they_cannot_be_chosen() {
    let scattered = [80.0, 90.0, 100.0, 110.0, 130.0];
    let plain = course(4096, scattered, [104.0; 5], [300.0; 5]);
    let chosen = choose(&plain, &ways(), None);
    assert_eq!(undecided(&plain, &chosen), [4096]);
    for (pairs, off_cache) in [(1, true), (2, false), (2, true)] {
        let mut other = Course::new(Load { pairs, off_cache, ..LOAD });
        for pass in 0..3 {
            for (way, times) in ways().iter().zip([scattered, [104.0; 5], [300.0; 5]]) {
                other.add(4096, way, pass, &times);
            }
        }
        let own = [Chosen { bytes: 4096, way: "a:get".into() }];
        assert!(undecided(&other, &own).is_empty(), "the two mechanisms are far apart");
        let counts = |pass| repetitions(Effort::QUICK, pass, 4096, &ways(), &other);
        assert_eq!(counts(1), [1, 7, 1], "cells are for the page only");
        assert_eq!(counts(Effort::QUICK.passes), [0, 7, 0]);
        let theirs = [Chosen { bytes: 4096, way: EAGER.into() }];
        assert!(undecided(&other, &theirs).is_empty(), "it is another load's choice");
    }
}

#[test]
fn no_further_pass_begins_late() {
    let left = |effort: Effort| effort.time_s - effort.without_further().as_secs();
    assert_eq!((left(Effort::QUICK), left(Effort::FULL)), (90, 960));
    assert_eq!(left(Effort { time_s: 10, ..Effort::QUICK }), 6);
}
