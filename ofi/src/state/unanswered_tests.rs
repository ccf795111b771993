use super::*;

#[test]
fn each_peer_is_awaited_for_a_while() {
    let (one, two) = (PeerId::from_raw(1), PeerId::from_raw(2));
    let start = Instant::now();
    let mut unanswered = Unanswered::default();
    assert!(unanswered.goes_on(one, start));
    let late = start + TRY_AGAIN_LIMIT - Duration::from_millis(1);
    assert!(unanswered.goes_on(one, late) && unanswered.goes_on(two, late));
    let later = start + TRY_AGAIN_LIMIT;
    assert!(!unanswered.goes_on(one, later) && unanswered.goes_on(two, later));
    assert!(!unanswered.retain(one, |_| true), "it is still to answer");
    assert!(!unanswered.retain(PeerId::from_raw(3), |_| true), "it was never asked");
    assert!(unanswered.retain(one, |peer| peer != one), "its attempt has ended");
    assert!(unanswered.goes_on(one, later), "it is awaited anew");
    unanswered.forget(two);
    assert!(unanswered.goes_on(two, later), "and so is one that was removed");
}
