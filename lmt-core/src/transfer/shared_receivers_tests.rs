use super::*;

#[test]
fn one_is_believed_and_a_stranger_is_not() {
    let mut receivers = SharedReceivers::default();
    receivers.learn(3, false);
    assert!(receivers.0.is_empty(), "who has none costs nothing");
    receivers.learn(3, true);
    assert!(receivers.is_expected_shared(3));
    assert!(!receivers.is_expected_shared(2) && !receivers.is_expected_shared(4));
    receivers.forget(3);
    assert!(!receivers.is_expected_shared(3));
}

#[test]
fn who_alternates_is_believed_more_and_more_rarely() {
    let mut receivers = SharedReceivers::default();
    let mut mistakes = 0;
    for message in 0..1000 {
        let shared = message % 2 == 0;
        mistakes += u32::from(receivers.is_expected_shared(0) && !shared);
        receivers.learn(0, shared);
    }
    assert_eq!(mistakes, 1);
    let mut needed = 0;
    while !receivers.is_expected_shared(0) {
        receivers.learn(0, true);
        needed += 1;
    }
    assert_eq!(needed, 2);
}

#[test]
fn mistakes_are_bounded_in_number() {
    let mut receivers = SharedReceivers::default();
    for _ in 0..100 {
        for _ in 0..=u8::MAX {
            receivers.learn(0, true);
        }
        receivers.learn(0, false);
        assert!(!receivers.is_expected_shared(0));
    }
    (0..MAX_NEEDED).for_each(|_| receivers.learn(0, true));
    assert!(receivers.is_expected_shared(0));
}
