use super::*;

#[test]
fn slots_follow_each_other_and_begin_again_at_the_end() {
    let mut ring = Ring::new(1024, 1);
    let begins: Vec<_> = (0..6).map(|call| ring.claim(call, 250, call)).collect();
    assert_eq!(begins, [0, 256, 512, 768, 0, 256].map(Some));
    assert_eq!(ring.claim(6, 600, 6), Some(0), "what does not fit up to the end is not cut");
}

#[test]
fn what_all_post_is_more_than_caches_hold_begins_again_at_once() {
    let mut ring = Ring::new(1024, 3);
    assert_eq!((ring.claim(0, 128, 0), ring.claim(1, 128, 1)), (Some(0), Some(128)));
    assert_eq!(ring.claim(2, 256, 2), Some(0), "768 of 512 bytes");
    assert_eq!(ring.claim(3, 256, 2), Some(256), "the one before is under way");
    assert_eq!(ring.claim(4, 256, 4), Some(0));
}

#[test]
fn a_slot_waits_for_those_it_would_lie_on() {
    let mut ring = Ring::new(1024, 1);
    assert_eq!((ring.claim(0, 512, 0), ring.claim(1, 512, 0)), (Some(0), Some(512)));
    assert_eq!(ring.claim(2, 64, 0), None, "nobody has ended anything");
    assert_eq!(ring.claim(2, 64, 1), Some(0));
    assert_eq!(ring.claim(3, 512, 1), None, "the second is in use, and so is the begin");
    assert_eq!(ring.claim(3, 512, 3), Some(64));
}

#[test]
fn what_posts_nothing_has_no_slot() {
    let mut ring = Ring::new(64, 1);
    assert_eq!(ring.claim(0, 1, 0), Some(0));
    assert_eq!(ring.claim(1, 0, 0), Some(0));
    assert_eq!(ring.claim(2, 64, 0), None);
}

#[test]
fn what_is_longer_than_all_is_never_placed() {
    let mut ring = Ring::new(128, 1);
    assert_eq!(ring.claim(0, 129, 0), None);
    assert_eq!(ring.claim(0, 128, 0), Some(0));
}

#[test]
fn numbers_of_calls_go_round() {
    let mut ring = Ring::new(128, 1);
    assert_eq!(ring.claim(u32::MAX, 128, u32::MAX), Some(0));
    assert_eq!(ring.claim(0, 128, u32::MAX), None);
    assert_eq!(ring.claim(0, 128, 0), Some(0));
}

/// Numbers are compared as far as half of them: what has ended is let go of by calls that
/// post nothing, too.
#[test]
fn what_has_ended_long_ago_is_not_in_the_way() {
    let mut ring = Ring::new(128, 1);
    assert_eq!(ring.claim(0, 128, 0), Some(0));
    for call in [1, 1 << 30, 1 << 31, 3 << 30, u32::MAX] {
        assert_eq!(ring.claim(call, 0, call), Some(0));
    }
    assert_eq!(ring.claim(5, 128, 5), Some(0));
}
