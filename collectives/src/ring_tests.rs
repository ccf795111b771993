use super::*;

#[test]
fn slots_follow_each_other_and_begin_again_at_the_end() {
    let mut ring = Ring::new(1024);
    let begins: Vec<_> = (0..6).map(|call| ring.claim(call, 250, call, false)).collect();
    assert_eq!(begins, [0, 256, 512, 768, 0, 256].map(Some));
    assert_eq!(ring.claim(6, 600, 6, false), Some(0), "what does not fit up to the end is not cut");
}

#[test]
fn one_that_is_to_begin_again_does_where_nothing_is_under_way() {
    let mut ring = Ring::new(1024);
    assert_eq!((ring.claim(0, 128, 0, false), ring.claim(1, 128, 1, false)), (Some(0), Some(128)));
    assert_eq!(ring.claim(2, 256, 2, true), Some(0));
    assert_eq!(ring.claim(3, 256, 2, true), Some(256), "the one before is in flight");
    assert_eq!(ring.claim(4, 256, 4, true), Some(0));
    assert_eq!(ring.claim(5, 256, 5, false), Some(256));
}

#[test]
fn a_slot_waits_for_those_it_would_lie_on() {
    let mut ring = Ring::new(1024);
    assert_eq!((ring.claim(0, 512, 0, false), ring.claim(1, 512, 0, false)), (Some(0), Some(512)));
    assert_eq!(ring.claim(2, 64, 0, false), None, "nobody has ended anything");
    assert_eq!(ring.claim(2, 64, 1, false), Some(0));
    assert_eq!(ring.claim(3, 512, 1, false), None, "the second is in use, and so is the begin");
    assert_eq!(ring.claim(3, 512, 3, false), Some(64));
}

#[test]
fn what_posts_nothing_has_no_slot() {
    let mut ring = Ring::new(64);
    assert_eq!(ring.claim(0, 1, 0, false), Some(0));
    assert_eq!(ring.claim(1, 0, 0, false), Some(0));
    assert_eq!(ring.claim(2, 64, 0, false), None);
}

#[test]
fn what_is_longer_than_all_is_never_placed() {
    let mut ring = Ring::new(128);
    assert_eq!(ring.claim(0, 129, 0, false), None);
    assert_eq!(ring.claim(0, 128, 0, false), Some(0));
}

#[test]
fn numbers_of_calls_go_round() {
    let mut ring = Ring::new(128);
    assert_eq!(ring.claim(u32::MAX, 128, u32::MAX, false), Some(0));
    assert_eq!(ring.claim(0, 128, u32::MAX, false), None);
    assert_eq!(ring.claim(0, 128, 0, false), Some(0));
}

/// Numbers are compared as far as half of them: what has ended is let go of by calls that
/// post nothing, too.
#[test]
fn what_has_ended_long_ago_is_not_in_the_way() {
    let mut ring = Ring::new(128);
    assert_eq!(ring.claim(0, 128, 0, false), Some(0));
    for call in [1, 1 << 30, 1 << 31, 3 << 30, u32::MAX] {
        assert_eq!(ring.claim(call, 0, call, false), Some(0));
    }
    assert_eq!(ring.claim(5, 128, 5, false), Some(0));
}
