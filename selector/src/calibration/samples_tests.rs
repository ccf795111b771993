use super::*;

const LOAD: Load = Load { place: Place::SharedL3, pairs: 1, off_cache: false };

fn class_of(ways: &[(&str, &[&[f64]])]) -> Class {
    let mut course = Course::new(LOAD);
    for (way, passes) in ways {
        for (pass, times) in passes.iter().enumerate() {
            course.add(8, way, pass, times);
        }
    }
    course.class(8).unwrap().clone()
}

#[test]
fn a_disturbed_pass_does_not_move_the_median() {
    let class = class_of(&[("a", &[&[10.0, 11.0, 12.0], &[90.0, 95.0, 99.0], &[10.0, 11.0, 12.0]])]);
    assert_eq!(class.samples("a").unwrap().median_ns(), Some(11.0));
    assert_eq!(class.samples("a").unwrap().count(), 9);
}

#[test]
fn what_slows_a_whole_pass_drops_out_of_the_ratio() {
    // b always takes 10 % longer, in passes that differ tenfold.
    let class = class_of(&[
        ("a", &[&[100.0; 5], &[1000.0; 5], &[300.0; 5]]),
        ("b", &[&[110.0; 5], &[1100.0; 5], &[330.0; 5]]),
    ]);
    let estimates = class.estimates();
    assert!((estimates["b"].regret - 1.1f64.ln()).abs() < 1e-9, "{estimates:?}");
    assert!(estimates["b"].error < 1e-9, "{estimates:?}");
    assert_eq!(estimates["a"].regret, 0.0);
}

#[test]
fn differences_between_passes_count_as_error() {
    let class = class_of(&[
        ("a", &[&[100.0; 9], &[100.0; 9], &[100.0; 9]]),
        ("b", &[&[105.0; 9], &[140.0; 9], &[120.0; 9]]),
    ]);
    let b = class.estimates()["b"];
    assert!((b.regret - 1.2f64.ln()).abs() < 1e-9 && b.error > 0.1, "{b:?}");
}

#[test]
fn a_single_time_is_not_sure() {
    let class = class_of(&[("a", &[&[100.0]]), ("b", &[&[120.0]])]);
    assert!(class.estimates()["b"].error > 0.5);
}

#[test]
fn times_that_are_none_are_left_out() {
    let class = class_of(&[("a", &[&[f64::NAN, 0.0, -1.0, f64::INFINITY, 5.0]])]);
    assert_eq!(class.samples("a").unwrap().count(), 1);
    let mut course = Course::new(LOAD);
    course.add(8, "a", 0, &[f64::NAN]);
    assert_eq!(course.classes().count(), 0);
    assert!(course.figures().is_empty());
}

#[test]
fn ways_that_were_never_in_one_pass_are_compared_by_their_medians() {
    let class = class_of(&[("a", &[&[100.0; 5]]), ("b", &[&[], &[200.0; 5]])]);
    assert!((class.estimates()["b"].regret - 2f64.ln()).abs() < 1e-9);
}

#[test]
fn figures_hold_every_median() {
    let mut course = Course::new(LOAD);
    course.add(64, "b:put", 0, &[2.4]);
    course.add(64, "a:get", 0, &[0.2]);
    let figures: Vec<(u64, String, u64)> =
        course.figures().into_iter().map(|f| (f.bytes, f.way, f.median_ns)).collect();
    assert_eq!(figures, [(64, "a:get".into(), 1), (64, "b:put".into(), 2)]);
    course.forget("a:get");
    assert_eq!(course.figures().len(), 1);
}
