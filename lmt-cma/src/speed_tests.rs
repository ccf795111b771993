use super::*;

#[test]
fn a_read_is_timed_by_what_it_moves() {
    let source = vec![7; BYTES];
    let mut target = vec![0; BYTES];
    let took = time_of_read(&source, &mut target);
    // Where a filter refuses the call there is nothing to be said of it.
    assert_eq!(took.is_some(), sys::refused_call().is_none());
    if took.is_some() {
        assert_eq!(source, target);
    }
}

#[test]
fn what_was_found_is_kept_for_the_process() {
    let first = times_plain_copy();
    assert_eq!(first.is_some(), sys::refused_call().is_none());
    assert_eq!(times_plain_copy(), first);
    // Pages are looked up beside the copy, so it is not nothing; no kernel takes
    // thousands of times as long.
    assert!(first.is_none_or(|times| times > 0.1 && times < 1000.0), "{first:?}");
}

/// The look goes on as long as this says so.
#[test]
fn the_fastest_of_each_is_kept() {
    let us = Duration::from_micros;
    let mut found = [Duration::MAX; 2];
    assert!(is_faster(&mut found, [us(100), us(200)]));
    assert!(!is_faster(&mut found, [us(100), us(300)]), "none");
    assert!(!is_faster(&mut found, [us(99), us(200)]), "by a hundredth only");
    assert!(is_faster(&mut found, [us(200), us(190)]), "one of them");
    assert_eq!(found, [us(99), us(190)]);
}
