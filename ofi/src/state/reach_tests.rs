use super::*;

#[test]
fn each_peer_is_awaited_for_a_while() {
    let (one, two) = (PeerId::from_raw(1), PeerId::from_raw(2));
    let start = Instant::now();
    let mut awaited = Awaited::default();
    assert!(awaited.goes_on(one, start));
    let late = start + TRIES_FOR - Duration::from_millis(1);
    assert!(awaited.goes_on(one, late) && awaited.goes_on(two, late));
    let later = start + TRIES_FOR;
    assert!(!awaited.goes_on(one, later) && awaited.goes_on(two, later));
    awaited.forget(one);
    assert!(awaited.goes_on(one, later), "it is awaited anew");
}
