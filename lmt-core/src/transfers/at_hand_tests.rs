use super::*;

const BYTES: u64 = 16 << 10;

/// How many of so many messages are announced, of which each is as slow as all others.
fn announced(known: &mut AtHand, messages: usize, at_hand: bool) -> usize {
    let mut announced = 0;
    for _ in 0..messages {
        if known.is_likely(BYTES) {
            announced += 1;
            known.learn(BYTES, at_hand);
        } else {
            known.pass(BYTES);
        }
    }
    announced
}

#[test]
fn what_is_at_hand_is_announced() {
    let mut known = AtHand::default();
    assert_eq!(announced(&mut known, 1000, true), 1000);
    assert!(known.is_so(BYTES));
}

#[test]
fn what_is_not_goes_in_cells_but_for_a_look_now_and_then() {
    let mut known = AtHand::default();
    assert_eq!(announced(&mut known, 2, false), 2);
    assert!(!known.is_so(BYTES));
    assert_eq!(announced(&mut known, 8, false), 0);
    // 16 to 512 in cells lie between two that are announced each time.
    assert!(announced(&mut known, 1024, false) <= 14);
    assert!(announced(&mut known, 10 * 1026, false) <= 20, "one look of two for 1024 messages");
}

#[test]
fn the_first_behind_cells_takes_its_lines_back_and_the_second_tells() {
    let mut known = AtHand::default();
    announced(&mut known, 2 + 8, false);
    assert!(known.is_likely(BYTES));
    known.learn(BYTES, false);
    assert!(known.is_likely(BYTES), "the first says nothing");
    known.learn(BYTES, true);
    assert_eq!(announced(&mut known, 100, true), 100);
}

#[test]
fn one_that_is_slow_among_others_changes_nothing() {
    let mut known = AtHand::default();
    for _ in 0..50 {
        assert_eq!(announced(&mut known, 1, false), 1);
        assert_eq!(announced(&mut known, 3, true), 3);
    }
}

#[test]
fn an_answer_to_one_that_was_announced_before_the_last_look_counts_no_more() {
    let mut known = AtHand::default();
    announced(&mut known, 2, false);
    for _ in 0..100 {
        known.learn(BYTES, false);
    }
    assert_eq!(announced(&mut known, 8, false), 0);
    assert_eq!(announced(&mut known, 2, false), 2);
}

#[test]
fn sizes_are_apart() {
    let mut known = AtHand::default();
    announced(&mut known, 2, false);
    for bytes in [BYTES + 1, 32 << 10, 64 << 10, 1 << 20, u64::MAX] {
        assert!(known.is_likely(bytes) && known.is_so(bytes), "{bytes}");
    }
    for bytes in [BYTES, BYTES / 2 + 1, 1, 0] {
        assert!(!known.is_likely(bytes) && !known.is_so(bytes), "{bytes}");
    }
}
