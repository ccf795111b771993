use super::*;

const MIB: u64 = 1 << 20;

fn window(under_way: &mut UnderWay, messages: u32, bytes: u64) {
    (0..messages).for_each(|_| under_way.begin(bytes));
    (0..messages).for_each(|_| under_way.end(bytes));
}

#[test]
fn a_window_is_known_until_the_next_one_is_over() {
    let mut under_way = UnderWay::default();
    for (messages, bytes) in [(2, MIB), (16, 2 * MIB), (4, 1), (2, u64::MAX)] {
        window(&mut under_way, messages, bytes);
        assert_eq!(under_way.last_most_bytes(), bytes.saturating_mul(messages.into()));
        assert_eq!(under_way.bytes(), 0);
    }
}

#[test]
fn one_alone_is_no_window_and_ends_what_is_known() {
    let mut under_way = UnderWay::default();
    window(&mut under_way, 1, 16 * MIB);
    assert_eq!(under_way.last_most_bytes(), 0);
    window(&mut under_way, 2, MIB);
    window(&mut under_way, 1, 16 * MIB);
    assert_eq!(under_way.last_most_bytes(), 0);
}

#[test]
fn what_never_runs_dry_is_forgotten_all_the_same() {
    let mut under_way = UnderWay::default();
    window(&mut under_way, 16, MIB);
    under_way.begin(MIB);
    for ended in 1..=2 * MOST_MESSAGES {
        assert_eq!(under_way.last_most_bytes(), if ended <= MOST_MESSAGES { 16 } else { 2 } * MIB);
        under_way.begin(MIB);
        under_way.end(MIB);
    }
}

#[test]
fn what_is_under_way_outlives_that_the_window_before_is_forgotten() {
    let mut under_way = UnderWay::default();
    window(&mut under_way, 16, MIB);
    (0..2).for_each(|_| under_way.begin(MIB));
    under_way.forget_last();
    assert_eq!((under_way.bytes(), under_way.last_most_bytes()), (2 * MIB, 0));
    (0..2).for_each(|_| under_way.end(MIB));
    assert_eq!((under_way.bytes(), under_way.last_most_bytes()), (0, 0));
}
