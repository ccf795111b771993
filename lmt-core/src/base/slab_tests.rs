use super::*;

#[test]
fn a_name_never_names_the_slot_s_next_entry() {
    let mut slab = Slab::new();
    let a = slab.insert('a');
    let b = slab.insert('b');
    assert_eq!((slab.get(a), slab.get(b), slab.len()), (Some(&'a'), Some(&'b'), 2));
    assert_eq!(slab.remove(a), Some('a'));
    assert_eq!(slab.remove(a), None);
    assert_eq!(slab.standing(a), SlotStatus::Stale);
    let c = slab.insert('c');
    assert_eq!(c as u32, a as u32, "the slot is used again");
    assert_eq!((slab.get(a), slab.get(c)), (None, Some(&'c')));
    assert_eq!(slab.standing(a), SlotStatus::Stale);
    assert_eq!(slab.standing(c), SlotStatus::Live);
    assert_eq!(slab.id_at(c as u32), Some(c));
}

#[test]
fn names_that_were_never_given_out_are_told_apart() {
    let mut slab = Slab::new();
    let a = slab.insert(());
    assert_eq!(slab.standing(a + (1 << 32)), SlotStatus::Never);
    assert_eq!(slab.standing(a + 1), SlotStatus::Never);
    assert_eq!(slab.standing(0), SlotStatus::Never);
    slab.remove(a);
    assert_eq!(slab.standing(a + (1 << 32)), SlotStatus::Never, "free, so not given out yet");
}

#[test]
fn slots_are_reused_before_the_table_grows() {
    let mut slab = Slab::new();
    for round in 0..100 {
        let ids: Vec<_> = (0..10).map(|i| slab.insert((round, i))).collect();
        ids.iter().for_each(|id| assert!(slab.remove(*id).is_some()));
    }
    assert_eq!((slab.slots(), slab.len()), (10, 0));
}

#[test]
fn what_is_discarded_is_dropped_and_its_name_names_nothing() {
    let shared = std::rc::Rc::new(());
    let mut slab = Slab::new();
    let (first, second) = (slab.insert(shared.clone()), slab.insert(shared.clone()));
    slab.discard(first);
    slab.discard(first);
    assert_eq!((slab.len(), std::rc::Rc::strong_count(&shared)), (1, 2));
    assert!(slab.get(first).is_none() && slab.get(second).is_some());
    assert_eq!(slab.standing(first), SlotStatus::Stale);
    let third = slab.insert(shared.clone());
    assert_ne!(third, first);
    assert_eq!(third as u32, first as u32, "the slot is used again");
    assert_eq!(slab.remove(first), None);
    assert_eq!(slab.len(), 2);
}
