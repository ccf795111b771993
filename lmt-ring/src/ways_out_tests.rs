use std::time::Duration;

use super::*;

const BYTES: u64 = 8 << 20;

/// So many messages one by one, which take so long as `took` says of their way; how many of
/// the last ten went past the caches.
fn past(ways: &mut WaysOut, messages: u32, took: impl Fn(Emptying) -> Duration) -> usize {
    let mut all = Vec::new();
    for _ in 0..messages {
        let way = ways.begin(BYTES, true);
        std::thread::sleep(took(way));
        ways.end(BYTES, true);
        all.push(way);
    }
    all.iter().rev().take(10).filter(|way| **way == Emptying::Streamed).count()
}

#[test]
fn the_faster_way_is_found() {
    let took = |way, slow| Duration::from_micros(if way == slow { 3000 } else { 300 });
    let mut ways = WaysOut::new(BYTES);
    assert_eq!(past(&mut ways, 18, |way| took(way, Emptying::Streamed)), 0);
    let mut ways = WaysOut::new(BYTES);
    assert_eq!(past(&mut ways, 30, |way| took(way, Emptying::Cached)), 10);
}

#[test]
fn what_is_to_go_through_the_caches_goes_through_them() {
    let mut ways = WaysOut::new(BYTES);
    for _ in 0..1000 {
        assert_eq!(ways.begin(BYTES, false), Emptying::Cached);
        assert!(ways.timed.is_none());
        ways.end(BYTES, true);
    }
}

/// Several at once say nothing of one, nor does one that was given up.
#[test]
fn of_several_at_once_all_go_past_and_none_is_timed() {
    let mut ways = WaysOut::new(BYTES);
    for _ in 0..1000 {
        let both = [ways.begin(BYTES, true), ways.begin(BYTES, true)];
        assert_eq!(both, [Emptying::Streamed; 2]);
        assert!(ways.timed.is_none());
        (0..2).for_each(|_| ways.end(BYTES, true));
        ways.begin(BYTES, true);
        ways.end(BYTES, false);
    }
    assert_eq!(ways.incoming, 0);
}
