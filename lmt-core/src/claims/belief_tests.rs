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

#[test]
fn classes_are_powers_of_two() {
    let mut beliefs = Beliefs::new();
    beliefs.of(65_536).learn(false, false);
    assert!(
        beliefs.of(131_071).is_alone() && !beliefs.of(131_072).is_alone() && !beliefs.of(65_535).is_alone()
    );
    assert!(!beliefs.of(0).is_alone() && !beliefs.of(u64::MAX).is_alone());
}
