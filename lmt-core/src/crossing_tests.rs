use super::*;

const KIB: u64 = 1 << 10;

fn crossing() -> Crossing {
    Crossing::new(Limits {
        in_use: Slow { above_bytes: 0, most_bytes: 512 * KIB, parts: 0.28..0.65, beyond: 7.0 / 6.0 },
        long_in_use: Some(Slow {
            above_bytes: 1024 * KIB,
            most_bytes: 4096 * KIB,
            parts: 0.05..0.28,
            beyond: 1.0,
        }),
        left_alone: Some(Slow {
            above_bytes: 64 * KIB,
            most_bytes: 4096 * KIB,
            parts: 0.05..0.28,
            beyond: 1.0,
        }),
    })
}

/// A message that is copied and timed, and takes so much longer than in the caches.
fn copy(crossing: &mut Crossing, bytes: u64, in_caches_by_took: f32) {
    if crossing.begin(bytes, false) == Passing::CopyAndTime {
        note(crossing, bytes, in_caches_by_took);
    }
}

fn note(crossing: &mut Crossing, bytes: u64, in_caches_by_took: f32) {
    let in_caches = Duration::from_micros(10);
    crossing.note(bytes, false, in_caches.div_f32(in_caches_by_took), in_caches);
}

/// Messages that are passed on, and the one behind them, which only takes lines back.
fn passed(crossing: &mut Crossing, bytes: u64) -> u32 {
    (0..).take_while(|_| crossing.begin(bytes, false) == Passing::PassOn).count() as u32
}

#[test]
fn buffers_that_nobody_uses_are_copied() {
    let mut crossing = crossing();
    for ratio in [0.75, 1.1, 2.0] {
        (0..10).for_each(|_| copy(&mut crossing, 128 * KIB, ratio));
        assert_eq!(passed(&mut crossing, 128 * KIB), 0);
    }
}

#[test]
fn two_slow_copies_pass_on_and_trials_become_fewer() {
    let mut crossing = crossing();
    copy(&mut crossing, 256 * KIB, 0.4);
    assert_eq!(passed(&mut crossing, 256 * KIB), 0, "one may be an accident");
    for expected in [8, 32, 128, 128] {
        copy(&mut crossing, 256 * KIB, 0.4);
        assert_eq!(passed(&mut crossing, 256 * KIB), expected);
    }
    for ratio in [0.9, 0.1] {
        copy(&mut crossing, 256 * KIB, ratio);
        assert_eq!(crossing.begin(256 * KIB, false), Passing::CopyAndTime, "it may be an accident");
        note(&mut crossing, 256 * KIB, 0.4);
        assert_eq!(passed(&mut crossing, 256 * KIB), 128);
    }
    (0..2).for_each(|_| copy(&mut crossing, 256 * KIB, 0.9));
    assert_eq!(passed(&mut crossing, 256 * KIB), 0, "two fast trials in a row end it");
    copy(&mut crossing, 256 * KIB, 0.4);
    assert_eq!(passed(&mut crossing, 256 * KIB), 0);
}

#[test]
fn behind_a_fast_copy_only_some_are_timed() {
    let mut crossing = crossing();
    for _ in 0..3 {
        assert_eq!(crossing.begin(64 * KIB, false), Passing::CopyAndTime);
        note(&mut crossing, 64 * KIB, 1.0);
        assert!((0..UNTIMED).all(|_| crossing.begin(64 * KIB, false) == Passing::Copy));
    }
    for _ in 0..crate::trials::SLOW {
        assert_eq!(crossing.begin(64 * KIB, false), Passing::CopyAndTime, "all, while they are slow");
        note(&mut crossing, 64 * KIB, 0.4);
    }
    assert_eq!(passed(&mut crossing, 64 * KIB), 8);
}

#[test]
fn only_who_helps_and_may_passes_on() {
    let plan = |role, model, may_pass_on| {
        let interval = Interval { start: 0, end: 64 * KIB };
        Plan { may_pass_on, ..Plan::new(role, model, interval) }
    };
    let left_alone = Plan { left_alone: true, ..plan(Role::Sender, Model::Both, true) };
    let mut crossing = crossing();
    let helps = plan(Role::Sender, Model::Both, true);
    for _ in 0..crate::trials::SLOW {
        assert_eq!(crossing.prepare(&helps, true, 64 * KIB), Ok(true));
        note(&mut crossing, 64 * KIB, 0.4);
    }
    for (plan, passes_on) in [
        (helps, false),
        (left_alone, true),
        (plan(Role::Sender, Model::Both, false), true),
        (plan(Role::Receiver, Model::Both, true), true),
        (plan(Role::Sender, Model::Get, true), true),
    ] {
        assert_eq!(crossing.prepare(&plan, passes_on, 64 * KIB), Ok(false), "{plan:?}");
    }
    assert_eq!(crossing.prepare(&helps, true, 64 * KIB), Err(Fault::Pass));
}

#[test]
fn what_comes_from_memory_is_copied() {
    let mut crossing = crossing();
    (0..10).for_each(|_| copy(&mut crossing, 512 * KIB, 0.2));
    assert_eq!(passed(&mut crossing, 512 * KIB), 0);
    // A clock that stands still says nothing, and divides by nothing.
    (0..10).for_each(|_| crossing.note(512 * KIB, false, Duration::ZERO, Duration::ZERO));
    (0..10).for_each(|_| crossing.note(512 * KIB, false, Duration::ZERO, Duration::MAX));
    assert_eq!(passed(&mut crossing, 512 * KIB), 0);
}

#[test]
fn lengths_are_told_apart_and_the_longest_never_passed_on() {
    let mut crossing = crossing();
    for bytes in [1, 32 * KIB, 512 * KIB + 1, u64::MAX] {
        assert_eq!(crossing.begin(bytes, false), Passing::Copy);
        (0..10).for_each(|_| copy(&mut crossing, bytes, 0.4));
        assert_eq!(passed(&mut crossing, bytes), 0, "{bytes}");
    }
    copy(&mut crossing, 64 * KIB + 1, 0.9);
    (0..2).for_each(|_| copy(&mut crossing, 64 * KIB, 0.4));
    assert_eq!(passed(&mut crossing, 64 * KIB + 1), 0);
    assert_eq!(passed(&mut crossing, 32 * KIB + 1), 8);
}

/// Of which nothing is known, they are taken to be as the nearest shorter ones that were timed.
#[test]
fn the_first_of_a_length_are_passed_on_as_shorter_ones_are() {
    let mut crossing = crossing();
    copy(&mut crossing, 64 * KIB, 0.9);
    assert_eq!(passed(&mut crossing, 128 * KIB), 0, "those of 64 KiB are fast");
    (0..2).for_each(|_| copy(&mut crossing, 128 * KIB, 0.4));
    for expected in [8, 32, 128] {
        assert_eq!(passed(&mut crossing, 128 * KIB), expected);
        copy(&mut crossing, 128 * KIB, 0.4);
    }
    // Those of 256 KiB have begun, but none was timed.
    assert_eq!(crossing.begin(256 * KIB, false), Passing::PassOn);
    assert_eq!(passed(&mut crossing, 512 * KIB), 64, "half as many as those of 128 KiB before a trial");
    (0..2).for_each(|_| copy(&mut crossing, 512 * KIB, 0.9));
    (0..UNTIMED).for_each(|_| assert_eq!(crossing.begin(512 * KIB, false), Passing::Copy));
    copy(&mut crossing, 512 * KIB, 0.4);
    assert_eq!(crossing.begin(512 * KIB, false), Passing::CopyAndTime, "it was wrong");
}

/// Much longer ones may come from memory while these are in a cache.
#[test]
fn shorter_ones_are_as_the_next_longer_at_most() {
    for (bytes, is_passed) in [(64 * KIB, false), (128 * KIB, false), (256 * KIB, true)] {
        let mut crossing = crossing();
        (0..2).for_each(|_| copy(&mut crossing, 512 * KIB, 0.4));
        assert_eq!(crossing.begin(bytes, false) == Passing::PassOn, is_passed, "{bytes} bytes");
    }
}

#[test]
fn of_two_that_are_near_the_shorter_tells() {
    for (shorter, longer, is_passed) in [(0.4, 0.9, true), (0.9, 0.4, false)] {
        let mut crossing = crossing();
        (0..3).for_each(|_| copy(&mut crossing, 128 * KIB, shorter));
        (0..3).for_each(|_| copy(&mut crossing, 512 * KIB, longer));
        assert_eq!(crossing.begin(256 * KIB, false) == Passing::PassOn, is_passed);
    }
}

/// Long ones that come from memory go the next way whether they are used or not.
#[test]
fn long_ones_in_use_are_passed_on_while_they_come_from_memory() {
    let bytes = 2048 * KIB;
    let mut crossing = crossing();
    (0..20).for_each(|_| copy(&mut crossing, bytes, 0.4));
    assert_eq!(passed(&mut crossing, bytes), 0, "lines that cross");
    while crossing.begin(bytes, false) != Passing::CopyAndTime {}
    (0..crate::trials::SLOW).for_each(|_| note(&mut crossing, bytes, 0.2));
    assert_eq!(passed(&mut crossing, bytes), 8);
    (0..20).for_each(|_| copy(&mut crossing, 1024 * KIB, 0.2));
    assert_eq!(passed(&mut crossing, 1024 * KIB), 0, "1 MiB is not long");
}

/// What crosses says nothing of what comes from memory.
#[test]
fn long_ones_in_use_do_not_begin_as_shorter_ones() {
    let mut crossing = crossing();
    for _ in 0..2 {
        copy(&mut crossing, 512 * KIB, 0.4);
    }
    assert_eq!(passed(&mut crossing, 512 * KIB), 8);
    for _ in 0..FIRST_UNTIMED {
        assert_eq!(crossing.begin(2048 * KIB, false), Passing::Copy);
    }
    assert_eq!(crossing.begin(2048 * KIB, false), Passing::CopyAndTime);
}

/// Up to the longest of all.
#[test]
fn up_to_16_mib_are_passed_on() {
    let slow = Slow { above_bytes: 0, most_bytes: u64::MAX, parts: 0.05..0.28, beyond: 1.0 };
    for (bytes, is_passed) in
        [(ABOVE_BYTES, false), (ABOVE_BYTES + 1, true), (16 << 20, true), (16777217, false)]
    {
        let mut crossing =
            Crossing::new(Limits { in_use: slow.clone(), long_in_use: None, left_alone: None });
        (0..2).for_each(|_| copy(&mut crossing, bytes, 0.2));
        assert_eq!(crossing.begin(bytes, false) == Passing::PassOn, is_passed, "{bytes} bytes");
    }
}

/// The first messages of buffers that are left alone may be the first use of them.
#[test]
fn the_first_of_what_is_left_alone_are_not_timed() {
    let mut crossing = crossing();
    for _ in 0..FIRST_UNTIMED {
        assert_eq!(crossing.begin(128 * KIB, true), Passing::Copy);
    }
    assert_eq!(crossing.begin(128 * KIB, true), Passing::CopyAndTime);
    assert_eq!(crossing.begin(128 * KIB, false), Passing::CopyAndTime, "in use they tell by what crosses");
}

/// What was begun before others were found to be slow ends later, and counts no more.
#[test]
fn messages_in_flight_are_no_trials() {
    let mut crossing = crossing();
    let in_flight = |crossing: &mut Crossing, messages: u32| {
        (0..messages).for_each(|_| assert_ne!(crossing.begin(128 * KIB, false), Passing::PassOn));
        (0..messages).for_each(|_| note(crossing, 128 * KIB, 0.4));
    };
    in_flight(&mut crossing, 4);
    assert_eq!(passed(&mut crossing, 128 * KIB), 8);
    in_flight(&mut crossing, 4);
    assert_eq!(passed(&mut crossing, 128 * KIB), 32);
    in_flight(&mut crossing, 1);
    note(&mut crossing, 128 * KIB, 1.0);
    assert_eq!(passed(&mut crossing, 128 * KIB), 128, "a fast one that was begun before changes nothing");
}

#[test]
fn a_receiver_times_one_in_some_messages_while_all_are_at_hand() {
    let mut looks = Looks::default();
    let (long, short) = (Some(Duration::from_secs(1)), Some(Duration::ZERO));
    for _ in 0..3 {
        let begun = looks.begin();
        assert!(begun.is_some());
        assert_eq!(looks.end(begun, || long, 0.5), Lines::AtHand);
        for _ in 0..UNTIMED {
            let begun = looks.begin();
            assert!(begun.is_none());
            assert_eq!(looks.end(begun, || panic!("nothing was timed"), 0.5), Lines::AtHand);
        }
    }
    for _ in 0..3 {
        let begun = looks.begin();
        assert!(begun.is_some(), "what is slow is timed each time");
        assert_eq!(looks.end(begun, || short, 0.5), Lines::Elsewhere);
    }
    let begun = looks.begin();
    assert_eq!(looks.end(begun, || None, 0.5), Lines::Elsewhere, "nothing is known of the machine");
}

/// Buffers that are left alone come from the caches, or from memory, where the next way is faster.
#[test]
fn what_is_left_alone_is_passed_on_while_it_comes_from_memory() {
    let plan = |bytes| {
        let interval = Interval { start: 0, end: bytes };
        Plan { may_pass_on: true, left_alone: true, ..Plan::new(Role::Sender, Model::Both, interval) }
    };
    let took = |ratio: f32| Duration::from_micros(10).div_f32(ratio);
    let copy = |crossing: &mut Crossing, bytes: u64, ratio: f32| {
        if crossing.open(&plan(bytes)) == Passing::CopyAndTime {
            crossing.note(bytes, true, took(ratio), Duration::from_micros(10));
        }
    };
    let mut crossing = crossing();
    let lengths = [64 * KIB, 128 * KIB, 4096 * KIB, 4096 * KIB + 1];
    for bytes in lengths {
        (0..20).for_each(|_| copy(&mut crossing, bytes, 0.4));
        assert_ne!(crossing.open(&plan(bytes)), Passing::PassOn, "{bytes} bytes cross, or come from afar");
    }
    for bytes in lengths {
        (0..20).for_each(|_| copy(&mut crossing, bytes, 0.2));
        let is_slow = (64 * KIB + 1..=4096 * KIB).contains(&bytes);
        assert_eq!(crossing.open(&plan(bytes)) == Passing::PassOn, is_slow, "{bytes} bytes");
        // It is prepared next, which counts it.
        let passed = (0..).take_while(|_| crossing.prepare(&plan(bytes), true, bytes).is_err()).count();
        assert_eq!(passed, if is_slow { 8 } else { 0 });
        // Nobody who may not passes on.
        let alone = Plan { may_pass_on: false, ..plan(bytes) };
        assert_eq!(crossing.open(&alone), Passing::Copy);
    }
    (0..20).for_each(|_| copy(&mut crossing, 128 * KIB, 0.9));
    assert_ne!(crossing.open(&plan(128 * KIB)), Passing::PassOn, "a fast trial ends it");
    (0..20).for_each(|_| copy(&mut crossing, 512 * KIB, 0.9));
    // What is known of the one says nothing of the other.
    (0..20).for_each(|_| copy(&mut crossing, 256 * KIB, 0.2));
    assert_ne!(crossing.begin(256 * KIB, false), Passing::PassOn);
    // A clock that stands still says nothing.
    (0..20).for_each(|_| crossing.note(512 * KIB, true, Duration::MAX, Duration::ZERO));
    assert_ne!(crossing.open(&plan(512 * KIB)), Passing::PassOn);
    crossing.limits.left_alone = None;
    assert_eq!(crossing.open(&plan(256 * KIB)), Passing::Copy);
}

/// The times of one kind of messages spread over a bound.
#[test]
fn what_is_passed_on_is_so_until_a_copy_is_clearly_beyond_the_bounds() {
    for (near, beyond) in [(0.7, 0.8), (0.25, 0.2)] {
        let mut crossing = crossing();
        // Behind a fast one some are not timed; `passed` copies one of them.
        (0..UNTIMED).for_each(|_| copy(&mut crossing, 256 * KIB, near));
        assert_eq!(passed(&mut crossing, 256 * KIB), 0, "{near} is not slow where nothing was");
        (0..2).for_each(|_| copy(&mut crossing, 256 * KIB, 0.4));
        assert_eq!(passed(&mut crossing, 256 * KIB), 8);
        for expected in [32, 128] {
            copy(&mut crossing, 256 * KIB, near);
            assert_eq!(passed(&mut crossing, 256 * KIB), expected, "{near}");
        }
        (0..2).for_each(|_| copy(&mut crossing, 256 * KIB, beyond));
        assert_eq!(passed(&mut crossing, 256 * KIB), 0, "{beyond}");
    }
}
