use std::time::Duration;

use crate::endpoint::waiting::{SleepCount, oversubscribed_yields};

#[test]
fn naps_grow_longer_while_nothing_moves() {
    const SHORTEST: Duration = Duration::from_micros(200);
    let mut naps = SleepCount::default();
    let mut waited = Duration::ZERO;
    for idle in 1..100 {
        naps.count(idle);
        let sleep_at_most = naps.longer(SHORTEST);
        assert!(sleep_at_most >= SHORTEST && sleep_at_most <= SleepCount::LONGEST, "{sleep_at_most:?}");
        assert!(sleep_at_most <= SHORTEST.max(waited), "{sleep_at_most:?} after {waited:?}");
        waited += sleep_at_most;
    }
    assert_eq!(naps.longer(SHORTEST), SleepCount::LONGEST);
    // Something has moved: the number begins anew, and may come to the same.
    naps.count(99);
    assert_eq!(naps.longer(SHORTEST), SHORTEST);
    naps.count(u32::MAX);
    naps.count(u32::MAX);
    assert_eq!(naps.longer(SHORTEST), SHORTEST);
}

#[test]
fn the_more_share_a_core_the_sooner_each_sleeps() {
    assert_eq!([4, 8, 16, 32, 64].map(|ranks| oversubscribed_yields(ranks, 2)), [100, 50, 25, 12, 6]);
    assert_eq!(oversubscribed_yields(3, 2), 100);
    for (processes, cpus) in [(1000, 1), (0, 0), (u32::MAX, 1)] {
        assert!(oversubscribed_yields(processes, cpus) >= 4, "{processes} on {cpus}");
    }
}
