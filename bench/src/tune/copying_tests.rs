use lmt_selector::calibration::Load;
use lmt_selector::contention::KNL;
use lmt_selector::topology::Place;

use super::*;

fn course(off_cache: bool, factor: f64) -> Course {
    let mut course = Course::new(Load { place: Place::SharedL3, pairs: 1, off_cache });
    for bytes in [1u64, 1024, 1 << 20, 1 << 24] {
        course.add(bytes, "slow:get", 0, &[1e9; 3]);
        course.add(bytes, "fast:get", 0, &[factor * (200.0 + 0.1 * (bytes - 1) as f64); 3]);
    }
    course
}

#[test]
fn messages_are_those_of_one_pair_on_cache() {
    let courses = [course(true, 5.0), course(false, 1.0)];
    let message = with_messages(KNL.parameters.clone(), &courses).message.unwrap();
    assert!((message.start_us - 0.2).abs() < 1e-9 && (message.byte_ns - 0.1).abs() < 1e-9, "{message:?}");
}

#[test]
fn what_was_not_measured_is_left_out() {
    let of = |courses: &[Course]| with_messages(KNL.parameters.clone(), courses).message;
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[course(true, 1.0)]), None);
    let mut one = Course::new(Load { place: Place::SharedL3, pairs: 1, off_cache: false });
    one.add(64, "fast:get", 0, &[100.0; 3]);
    assert_eq!(of(&[one]), None);
}

#[test]
fn without_time_it_says_so() {
    let sentence = contention(None, &Interrupt::never()).unwrap_err();
    assert!(sentence.contains("60 s or more"), "{sentence}");
}
