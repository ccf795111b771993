use super::*;

fn known(log: f64) -> Level {
    let mut level = Level::default();
    for number in 0..20 {
        assert!(!level.block(log, number % 2 == 1));
    }
    assert!(level.is_known());
    level
}

#[test]
fn three_blocks_in_a_row_are_a_change_and_two_are_none() {
    let mut level = known(1.0);
    assert!(!level.block(2.0, true) && !level.block(2.0, false));
    assert!(!level.block(1.0, true), "it was a disturbance");
    assert!(!level.block(2.0, true) && !level.block(0.0, false), "above and below");
    assert!(!level.block(0.1, false));
    assert!(level.block(0.2, true));
    assert_eq!(level.log(), 0.2, "the nearest of them");
}

#[test]
fn what_varies_much_is_not_always_a_change() {
    let mut level = known(1.0);
    for number in 0..100 {
        level.block(if number % 2 == 0 { 0.85 } else { 1.15 }, true);
    }
    assert!(level.noise() > 0.2);
    assert!((0..6).all(|_| !level.block(1.4, true)));
}

#[test]
fn another_way_has_its_own_level() {
    let mut level = known(1.0);
    level.shift(-0.5);
    assert!((0..10).all(|_| !level.block(0.5, true)));
}
