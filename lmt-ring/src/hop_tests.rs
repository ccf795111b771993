use std::time::Duration;

use super::{APART_NS, Hop, UNTIMED};

/// So many looks at a line that was written before each took so long.
fn looks(hop: &mut Hop, count: u64, took_ns: u64) {
    for _ in 0..count {
        hop.note(hop.last + 1, Duration::from_nanos(took_ns));
    }
}

#[test]
fn one_long_look_changes_nothing_and_many_do() {
    let mut hop = Hop::default();
    looks(&mut hop, 10, 20);
    looks(&mut hop, 1, 1_000_000);
    assert!(!hop.is_apart() || hop.ns < 2 * APART_NS);
    looks(&mut hop, 3, 20);
    assert!(!hop.is_apart());
    looks(&mut hop, 10, 200);
    assert!(hop.is_apart());
}

#[test]
fn what_was_not_written_tells_nothing() {
    let mut hop = Hop::default();
    looks(&mut hop, 10, 200);
    let last = hop.last;
    (0..100).for_each(|_| hop.note(last, Duration::from_nanos(10)));
    assert!(hop.is_apart());
}

#[test]
fn one_look_in_some_is_timed() {
    let mut hop = Hop::default();
    let mut looked = 0;
    for _ in 0..10 * (u32::from(UNTIMED) + 1) {
        hop.time(|| {
            looked += 1;
            Some(looked)
        });
    }
    assert_eq!(looked, 10);
}
