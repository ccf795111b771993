use super::*;

fn ids(open: &Open) -> Vec<u64> {
    open.ids().map(RequestId::to_raw).collect()
}

#[test]
fn places_are_used_again_and_each_is_closed_once() {
    let mut open = Open::default();
    let places: Vec<Place> =
        (1..=4).map(|raw| open.enter(Started::Pending(RequestId::from_raw(raw)))).collect();
    assert_eq!(ids(&open), [1, 2, 3, 4]);
    for at in [1, 3, 1, 3] {
        open.close(places[at]);
    }
    assert_eq!(ids(&open), [1, 3]);
    (5..=7).for_each(|raw| {
        open.enter(Started::Pending(RequestId::from_raw(raw)));
    });
    assert_eq!(open.slots.len(), 5, "two places were free");
    let mut all = ids(&open);
    all.sort_unstable();
    assert_eq!(all, [1, 3, 5, 6, 7]);
}

#[test]
fn what_is_done_is_kept_until_it_is_taken_or_let_go() {
    let status = Status { peer: lmt_core::endpoint::PeerId::from_raw(3), tag: 5, bytes: 7, immediate: None };
    let mut open = Open::default();
    let [taken, dropped] = [(); 2].map(|()| open.enter(Started::Done(status)));
    let pending = open.enter(Started::Pending(RequestId::from_raw(1)));
    assert_eq!(open.take_done(taken), Ok(status));
    assert_eq!(open.take_done(pending), Err(Some(RequestId::from_raw(1))));
    [dropped, pending].into_iter().for_each(|place| open.let_go(place));
    assert_eq!((open.take_done(dropped), ids(&open)), (Err(None), vec![1]), "what is in flight stays");
    (2..=3).for_each(|raw| {
        open.enter(Started::Pending(RequestId::from_raw(raw)));
    });
    assert_eq!(open.slots.len(), 3, "two places were free");
}

#[test]
fn a_list_comes_back_empty_and_with_its_memory() {
    let spares = OperationLists::default();
    let mut open = spares.take();
    (1..100).for_each(|raw| {
        open.enter(Started::Pending(RequestId::from_raw(raw)));
    });
    let capacity = open.slots.capacity();
    spares.give_back(open);
    let again = spares.take();
    assert_eq!((ids(&again).len(), again.slots.capacity()), (0, capacity));
    let held = spares.0.lock();
    assert_eq!(spares.take().slots.capacity(), 0, "nobody waits");
    drop(held);
}
