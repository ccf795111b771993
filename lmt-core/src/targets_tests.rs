use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How many of so many messages of 256 KiB that are left alone go past the caches, and how
/// many were looked at, where the target of the n-th is cold as this says: told whether the
/// one before went past.
fn past(targets: &mut Targets, messages: u32, mut is_cold: impl FnMut(bool) -> bool) -> (u32, u32) {
    let (mut past, mut looks, mut before) = (0, 0, false);
    for _ in 0..messages {
        before = targets.go_past(256 * KIB, true, || {
            looks += 1;
            Some(is_cold(before))
        });
        past += u32::from(before);
    }
    (past, looks)
}

#[test]
fn what_is_in_a_cache_goes_through_it_and_is_seldom_looked_at() {
    let (past, looks) = past(&mut Targets::default(), 800, |_| false);
    assert_eq!((past, looks), (0, 100));
}

#[test]
fn what_is_in_none_goes_past_but_for_some_trials() {
    let (gone, looks) = past(&mut Targets::default(), 10_000, |_| true);
    // A look costs a hundredth of a message, one through the caches a fifth.
    assert!(gone > 9_500, "{gone}");
    assert!(looks < 500, "{looks}");
}

/// One look may have been interrupted.
#[test]
fn single_slow_looks_are_no_cold_lines() {
    let mut look = 0;
    let (gone, _) = past(&mut Targets::default(), 10_000, |_| {
        look += 1;
        look % 2 != 0
    });
    assert_eq!(gone, 0);
}

/// Of what does not fit a cache some lines are in it.
#[test]
fn single_lines_that_are_there_change_nothing() {
    let mut look = 0;
    let (gone, _) = past(&mut Targets::default(), 10_000, |_| {
        look += 1;
        look % 4 != 0
    });
    assert!(gone > 9_000, "{gone}");
}

/// Lines that are cold only since the message before went past them are found out.
#[test]
fn who_made_the_lines_cold_is_found_out() {
    let mut targets = Targets::default();
    assert!(past(&mut targets, 10, |_| true).0 > 0, "for some time they were in no cache");
    let (gone, _) = past(&mut targets, 1000, |went_past| went_past);
    assert!(gone <= u32::from(FIRST_PAUSE), "{gone}");
}

#[test]
fn what_is_short_or_may_not_goes_through() {
    let cases = [
        (64 * KIB - 1, true, false),
        (64 * KIB, true, true),
        (64 * KIB, false, false),
        (u64::MAX, false, false),
        (u64::MAX, true, true),
    ];
    for (bytes, may, way) in cases {
        let mut targets = Targets::default();
        let last = (0..IN_A_ROW).map(|_| targets.go_past(bytes, may, || Some(true))).last();
        assert_eq!(last, Some(way), "{bytes} bytes, {may}");
    }
}

#[test]
fn lengths_are_told_apart_and_who_cannot_look_goes_through() {
    let mut targets = Targets::default();
    assert!(past(&mut targets, 4, |_| true).0 > 0);
    assert!(!targets.go_past(512 * KIB, true, || Some(true)));
    (0..100).for_each(|_| assert!(!targets.go_past(MIB, true, || None)));
}
