use super::*;

const BYTES: u64 = 1 << 20;

/// So many windows, of which each takes so long as `took` says of the order it takes; how
/// many had streams first.
fn windows(rivals: &mut Rivals, count: u32, took: impl Fn(bool) -> u64) -> u32 {
    let order = |rivals: &Rivals| rivals.are_streams_first(BYTES);
    (0..count)
        .filter(|_| {
            let is_first = order(rivals);
            let time = Duration::from_micros(took(is_first));
            rivals.classes[class_of(BYTES)].note(time, 64 * BYTES);
            is_first
        })
        .count() as u32
}

#[test]
fn the_faster_order_is_taken_soon_and_for_good() {
    let took = |streams_first| if streams_first { 75 } else { 100 };
    assert!(windows(&mut Rivals::default(), 1000, took) > 970);
    assert!(windows(&mut Rivals::default(), 1000, |streams_first| took(!streams_first)) < 30);
}

#[test]
fn the_slower_one_is_tried_more_and_more_seldom() {
    let mut rivals = Rivals::default();
    let others = 10_000 - windows(&mut rivals, 10_000, |streams_first| if streams_first { 100 } else { 150 });
    assert!((9..60).contains(&others), "{others}");
}

#[test]
fn as_fast_is_no_reason_to_change() {
    let mut rivals = Rivals::default();
    windows(&mut rivals, 1000, |streams_first| if streams_first { 100 } else { 97 });
    assert!(rivals.classes[class_of(BYTES)].streams_first);
}

/// A machine that changes is followed, once a trial comes.
#[test]
fn what_has_become_slower_is_left() {
    let mut rivals = Rivals::default();
    windows(&mut rivals, 100, |streams_first| if streams_first { 75 } else { 100 });
    assert!(rivals.classes[class_of(BYTES)].streams_first);
    let streams = windows(&mut rivals, 400, |streams_first| if streams_first { 150 } else { 100 });
    assert!(streams < 150, "{streams}");
    assert!(!rivals.classes[class_of(BYTES)].streams_first);
}

#[test]
fn lengths_are_told_apart() {
    let mut rivals = Rivals::default();
    windows(&mut rivals, 100, |streams_first| if streams_first { 100 } else { 75 });
    assert!(!rivals.are_streams_first(2 * BYTES - 1));
    for bytes in [0, 1, BYTES - 1, 2 * BYTES, u64::MAX] {
        assert!(rivals.are_streams_first(bytes), "{bytes}");
    }
}

/// Single messages are not timed, and a window without an end is cut.
#[test]
fn a_window_is_timed_from_the_message_that_makes_it_one() {
    let mut rivals = Rivals::default();
    for messages in 1..STREAMS_AT_ONCE {
        rivals.begin(messages);
        assert!(rivals.timed.is_none());
    }
    rivals.end(STREAMS_AT_ONCE - 2, BYTES);
    let noted = |rivals: &Rivals| rivals.classes[class_of(BYTES)].left;
    assert_eq!(noted(&rivals), FIRST_PAUSE);
    rivals.begin(STREAMS_AT_ONCE);
    (0..MOST_MESSAGES).for_each(|_| rivals.end(10, BYTES));
    assert_eq!(noted(&rivals), FIRST_PAUSE - 1);
    assert!(rivals.timed.is_some(), "the next begins where it was cut");
    rivals.end(0, BYTES);
    assert_eq!(noted(&rivals), FIRST_PAUSE - 2);
    assert!(rivals.timed.is_none());
}
