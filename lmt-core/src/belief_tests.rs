use super::*;

#[test]
fn who_never_comes_is_expected_ever_more_seldom() {
    let mut belief = Belief::default();
    let mut expected = 0;
    for _ in 0..1000 {
        expected += u32::from(!belief.is_alone());
        belief.learn(false, false);
    }
    assert!((1000 / 33..50).contains(&expected), "{expected} of 1000 messages");
}

#[test]
fn who_comes_too_late_is_soon_expected_and_who_copies_always() {
    let mut belief = Belief::default();
    (0..1000).for_each(|_| belief.learn(false, false));
    let waits = (0..100).take_while(|_| {
        let alone = belief.is_alone();
        belief.learn(true, false);
        alone
    });
    assert!(waits.count() <= 7);
    belief.learn(true, true);
    assert!(!belief.is_alone());
    belief.learn(false, false);
    assert!(belief.is_alone(), "once nobody came");
}

/// Windows of 64 messages, of which nothing is known before all have been asked for.
#[test]
fn of_several_at_once_one_is_asked_for_after_failures() {
    let mut belief = Belief::default();
    let window = |belief: &mut Belief, copied| {
        let asked: Vec<bool> = (0..64).map(|_| belief.is_worth_asking()).collect();
        for is_asked in &asked {
            if *is_asked { belief.learn_of_asked(copied) } else { belief.pass() }
        }
        asked.iter().filter(|is_asked| **is_asked).count()
    };
    assert_eq!(window(&mut belief, false), 64, "nothing is known yet");
    let later: usize = (0..100).map(|_| window(&mut belief, false)).sum();
    assert!((50..250).contains(&later), "{later} of 6400");
    assert!((0..3).any(|_| window(&mut belief, true) > 0));
    let once = window(&mut belief, false);
    let again: usize = (0..20).map(|_| window(&mut belief, false)).sum();
    assert!(
        once <= 1 && again <= 40,
        "one that was helped with does not change all: {once}, {again} of 1280"
    );
    let windows = (0..20).take_while(|_| window(&mut belief, true) < 64).count();
    assert!(windows < 8, "who helps again and again is asked for all, not only {windows} windows later");
}

/// A sender asks for one message in 33 and the receiver, too, leaves it something of one
/// in 33 only: that it comes in time is what they find each other by again.
#[test]
fn two_that_have_given_each_other_up_work_together_again_after_some_windows() {
    let (mut sender, mut receiver) = (Belief::default(), Belief::default());
    let mut message = |sender_is_busy: bool| {
        if !sender.is_worth_asking() {
            sender.pass();
            return false;
        }
        let copies = !sender_is_busy && !receiver.is_alone();
        sender.learn_of_asked(copies);
        receiver.learn(!sender_is_busy, copies);
        copies
    };
    assert!((0..10_000).all(|_| !message(true)));
    let messages = (0..10_000).take_while(|_| !message(false)).count();
    assert!(messages < 256, "four windows of 64, not {messages} messages");
}

#[test]
fn classes_are_powers_of_two() {
    let mut beliefs = Beliefs::new();
    beliefs.of(65_536).learn(false, false);
    assert!(
        beliefs.of(131_071).is_alone() && !beliefs.of(131_072).is_alone() && !beliefs.of(65_535).is_alone()
    );
    assert!(!beliefs.of(0).is_alone() && !beliefs.of(u64::MAX).is_alone());
}
