use super::*;

#[test]
fn without_rotation_the_same_bytes_are_used_again() {
    let mut memory = vec![0u8; 1024];
    let mut arena = Arena::new(&mut memory, 100, 1, false).unwrap();
    let first = arena.slot().as_ptr();
    assert_eq!(arena.slot().as_ptr(), first);
    assert_eq!(arena.slot().len(), 100);
}

#[test]
fn rotation_walks_all_of_the_memory() {
    let mut memory = vec![0u8; 1024];
    let start = memory.as_ptr() as usize;
    let mut arena = Arena::new(&mut memory, 100, 2, true).unwrap();
    let offsets: Vec<usize> = (0..5).map(|_| arena.slot().as_ptr() as usize - start).collect();
    assert_eq!(offsets, [0, 256, 512, 768, 0]);
    arena.start_at(300);
    assert_eq!(arena.position_bytes(), 512);
    assert_eq!(arena.group().len(), 2);
}

#[test]
fn a_group_is_of_messages_that_lie_apart() {
    let mut memory = vec![0u8; 1024];
    let start = memory.as_ptr() as usize;
    let mut arena = Arena::new(&mut memory, 100, 3, true).unwrap();
    for first in [0, 384, 0] {
        let mut group = arena.group();
        let slots: Vec<_> = group.by_ref().map(|slot| (slot.as_ptr() as usize - start, slot.len())).collect();
        assert_eq!(slots, [0, 128, 256].map(|offset| (first + offset, 100)));
        assert!(group.next().is_none());
    }
}

#[test]
fn empty_messages_have_slots_too() {
    let mut memory = vec![0u8; 64];
    assert_eq!(Arena::packed(&mut memory, 0, 4).unwrap().group().filter(|slot| slot.is_empty()).count(), 4);
    let mut none = [0u8; 0];
    let mut arena = Arena::packed(&mut none, 0, 2).unwrap();
    assert!(arena.slot().is_empty());
    assert!(arena.pair()[1].is_empty());
}

#[test]
fn too_little_memory_is_said() {
    assert!(Arena::new(&mut [0u8; 100], 100, 1, false).is_none());
}
