use super::*;

const BYTES: u64 = 1 << 20;

/// So many turns, of which each takes so many microseconds as `took` says of the way it takes;
/// how many took the second.
fn turns(rival: &mut Rival, count: u32, took: impl Fn(bool) -> u64) -> u32 {
    (0..count)
        .filter(|_| {
            let is_second = rival.takes_second();
            rival.note(Duration::from_micros(took(is_second)), BYTES);
            is_second
        })
        .count() as u32
}

#[test]
fn the_faster_way_is_taken_soon_and_for_good() {
    let took = |is_second| if is_second { 75 } else { 100 };
    assert!(turns(&mut Rival::default(), 1000, took) > 970);
    assert!(turns(&mut Rival::default(), 1000, |is_second| took(!is_second)) < 30);
}

#[test]
fn the_slower_one_is_tried_more_and_more_seldom() {
    let mut rival = Rival::default();
    let others = turns(&mut rival, 10_000, |is_second| if is_second { 150 } else { 100 });
    assert!((9..60).contains(&others), "{others}");
}

#[test]
fn as_fast_is_no_reason_to_change() {
    let mut rival = Rival::default();
    turns(&mut rival, 1000, |is_second| if is_second { 97 } else { 100 });
    assert!(!rival.prefers_second);
}

/// A machine that changes is followed, once a trial comes.
#[test]
fn what_has_become_slower_is_left() {
    let mut rival = Rival::default();
    turns(&mut rival, 100, |is_second| if is_second { 100 } else { 75 });
    assert!(!rival.prefers_second);
    let firsts = 400 - turns(&mut rival, 400, |is_second| if is_second { 100 } else { 150 });
    assert!(firsts < 150, "{firsts}");
    assert!(rival.prefers_second);
}

#[test]
fn lengths_are_told_apart() {
    let mut rivals = ByLength::default();
    turns(rivals.of_mut(BYTES), 100, |is_second| if is_second { 75 } else { 100 });
    assert!(rivals.of(2 * BYTES - 1).takes_second());
    for bytes in [0, 1, BYTES - 1, 2 * BYTES, u64::MAX] {
        assert!(!rivals.of(bytes).takes_second(), "{bytes}");
    }
}

#[test]
fn what_is_tried_soon_is_found_soon() {
    let took = |is_second| if is_second { 75 } else { 100 };
    let mut rivals = ByLength::soon_below(BYTES);
    turns(rivals.of_mut(BYTES - 1), 8, took);
    turns(rivals.of_mut(BYTES), 8, took);
    assert!(rivals.of(BYTES - 1).takes_second() && !rivals.of(BYTES).takes_second());
}

#[test]
fn the_first_of_a_length_begin_as_the_nearest_shorter_ones_that_were_tried() {
    let mut rivals = ByLength::default();
    let (second, first) =
        (|is_second| if is_second { 75 } else { 100 }, |is_second| if is_second { 100 } else { 75 });
    turns(rivals.of_mut(BYTES), 100, second);
    rivals.begin_as_shorter(4 * BYTES);
    assert!(rivals.of(4 * BYTES).takes_second());
    assert!(!rivals.of(2 * BYTES).takes_second(), "of those nothing was asked");
    for bytes in [0, BYTES / 2] {
        rivals.begin_as_shorter(bytes);
        assert!(!rivals.of(bytes).takes_second(), "shorter ones were not tried: {bytes}");
    }
    // What is known of a length itself counts.
    turns(rivals.of_mut(4 * BYTES), 100, first);
    rivals.begin_as_shorter(4 * BYTES);
    assert!(!rivals.of(4 * BYTES).takes_second());
    rivals.begin_as_shorter(u64::MAX);
    assert!(!rivals.of(u64::MAX).takes_second(), "the nearest counts");
}
