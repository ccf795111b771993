use super::*;

#[test]
fn what_others_did_is_told_by_how_long_the_core_was_away() {
    let of = |ns| YieldOutcome::of(Duration::from_nanos(ns));
    assert_eq!((of(150), of(1000)), (YieldOutcome::None, YieldOutcome::None));
    assert_eq!((of(1001), of(300_000)), (YieldOutcome::Wait, YieldOutcome::Wait));
    assert_eq!((of(300_001), of(4_000_000)), (YieldOutcome::Compute, YieldOutcome::Compute));
}

#[test]
fn what_others_did_counts_for_some_waits() {
    let mut sharing = Sharing::new();
    assert_eq!(sharing.others(), YieldOutcome::None);
    sharing.note(YieldOutcome::Wait);
    for _ in 1..WAITS {
        sharing.begin_wait();
        assert_eq!(sharing.others(), YieldOutcome::Wait);
    }
    sharing.begin_wait();
    assert_eq!(sharing.others(), YieldOutcome::None);
    sharing.note(YieldOutcome::Wait);
    sharing.note(YieldOutcome::Compute);
    assert_eq!(sharing.others(), YieldOutcome::Compute, "what was seen last");
}

#[test]
fn an_interrupt_is_taken_for_others_that_wait_for_some_yields_only() {
    let mut sharing = Sharing::new();
    let mut yields_until_nobody = |between: fn(&mut Sharing)| {
        sharing.note(YieldOutcome::Wait);
        let mut yields = 0;
        while sharing.others() == YieldOutcome::Wait && yields < 1000 {
            sharing.note(YieldOutcome::None);
            between(&mut sharing);
            yields += 1;
        }
        yields
    };
    assert_eq!(yields_until_nobody(|_| ()), 8);
    assert_eq!(yields_until_nobody(|sharing| sharing.note(YieldOutcome::Wait)), 1000, "they are there");
    // Who computes is not there at each yield: its time slices are long.
    sharing.note(YieldOutcome::Compute);
    (0..100).for_each(|_| sharing.note(YieldOutcome::None));
    assert_eq!(sharing.others(), YieldOutcome::Compute);
}

#[test]
fn who_waits_is_let_run_soon_and_who_computes_late() {
    const SPINS: u32 = 50_000;
    let mut sharing = Sharing::new();
    assert_eq!(sharing.polls_before_yield(SPINS, false), POLLS);
    assert_eq!(sharing.polls_before_yield(SPINS, true), OVERSUBSCRIBED_POLLS);
    sharing.note(YieldOutcome::Wait);
    assert_eq!(sharing.polls_before_yield(SPINS, false), OVERSUBSCRIBED_POLLS);
    sharing.note(YieldOutcome::Compute);
    assert_eq!(sharing.polls_before_yield(SPINS, false), COMPUTING_POLLS);
    assert_eq!(sharing.polls_before_yield(SPINS, true), OVERSUBSCRIBED_POLLS, "peers are known to wait");
    assert_eq!(sharing.polls_before_yield(0, false), 0, "no spins at all are wanted");
}

#[test]
fn others_are_let_run_after_each_poll_only_where_they_are_known_to_wait() {
    let times = |polls| (0..2000).filter(|empty| is_time(*empty, polls)).collect::<Vec<u32>>();
    assert_eq!(times(OVERSUBSCRIBED_POLLS), (OVERSUBSCRIBED_POLLS..2000).collect::<Vec<_>>());
    assert_eq!(times(POLLS), [512, 1024, 1536]);
    assert!(times(50_000).is_empty());
    assert_eq!(times(0).len(), 1999, "not after a poll that found something");
}

#[test]
fn who_computes_again_and_again_is_let_run_more_and_more_seldom() {
    let mut sharing = Sharing::new();
    let mut waits_for = |others| {
        sharing.note(others);
        let mut waits = 0;
        while sharing.others() != YieldOutcome::None {
            sharing.begin_wait();
            waits += 1;
        }
        waits
    };
    assert_eq!([(); 3].map(|()| waits_for(YieldOutcome::Compute)), [2 * WAITS, 4 * WAITS, 8 * WAITS]);
    assert_eq!(waits_for(YieldOutcome::Wait), WAITS);
    assert_eq!(waits_for(YieldOutcome::Compute), 2 * WAITS);
    (0..100).for_each(|_| _ = waits_for(YieldOutcome::Compute));
    assert_eq!(waits_for(YieldOutcome::Compute), WAITS << MAX_DOUBLINGS);
}

/// After how many empty polls credits are returned first, and others let run first.
fn first_of_each(spins: u32, is_oversubscribed: bool) -> (u32, u32) {
    let mut sharing = Sharing::new();
    let (mut credits, mut yields) = (0, 0);
    for poll in 1..=10_000 {
        sharing.count_empty(spins, is_oversubscribed);
        assert_eq!(sharing.empty_polls(), poll);
        if sharing.is_time_to_return_credits() {
            assert_eq!(credits, 0, "once a wait");
            credits = poll;
        }
        if yields == 0 && sharing.is_time_to_yield() {
            yields = poll;
        }
    }
    (credits, yields)
}

#[test]
fn credits_are_returned_before_others_are_let_run_who_may_wait_for_them() {
    assert_eq!(first_of_each(50_000, false), (RETURN_CREDITS_AFTER, POLLS));
    assert_eq!(first_of_each(50_000, true), (OVERSUBSCRIBED_POLLS, OVERSUBSCRIBED_POLLS));
    assert_eq!(first_of_each(8, false), (8, 8));
    assert_eq!(first_of_each(0, false), (1, 1), "no spins at all are wanted");
}

#[test]
fn processes_that_come_to_outnumber_cores_during_a_wait_are_let_run_at_once() {
    let mut sharing = Sharing::new();
    (0..10).for_each(|_| sharing.count_empty(50_000, false));
    assert!(!sharing.is_time_to_yield() && !sharing.yields_each_poll());
    sharing.count_empty(50_000, true);
    assert!(sharing.is_time_to_yield() && sharing.yields_each_poll());
    sharing.count_empty(50_000, false);
    assert!(!sharing.is_time_to_yield(), "some have gone");
}

#[test]
fn a_wait_ends_with_a_poll_that_found_something() {
    let mut sharing = Sharing::new();
    (0..POLLS).for_each(|_| sharing.count_empty(50_000, false));
    assert!(sharing.is_time_to_yield());
    sharing.end_wait();
    assert!(!sharing.is_time_to_yield());
    sharing.count_empty(4, false);
    assert_eq!((sharing.empty_polls(), sharing.is_time_to_yield()), (1, false));
    (1..4).for_each(|_| sharing.count_empty(4, false));
    assert!(sharing.is_time_to_yield(), "what was said when this wait began counts");
}

#[test]
fn idle_polls_are_those_that_return_no_credits_and_let_nobody_run() {
    const SPINS: u32 = 50_000;
    let acts = |sharing: &Sharing| sharing.is_time_to_return_credits() || sharing.is_time_to_yield();
    // Once each poll is counted, once those that may be left out are counted together.
    let (mut all, mut few) = (Sharing::new(), Sharing::new());
    let mut polls = Vec::new();
    while few.empty_polls() < 3 * POLLS {
        few.count_empty(SPINS, false);
        polls.push((few.empty_polls(), acts(&few)));
        few.count_idle(few.idle_polls());
    }
    assert!(polls.len() < 16, "most are left out: {polls:?}");
    for (number, acted) in polls {
        while all.empty_polls() + 1 < number {
            all.count_empty(SPINS, false);
            assert!(!acts(&all), "poll {} was left out", all.empty_polls());
        }
        all.count_empty(SPINS, false);
        assert_eq!(acts(&all), acted, "poll {number}");
    }
}

#[test]
fn no_poll_is_idle_at_first_or_where_others_wait_for_the_core() {
    let mut sharing = Sharing::new();
    assert_eq!(sharing.idle_polls(), 0, "nothing was looked for");
    for _ in 1..IDLE_AFTER {
        sharing.count_empty(POLLS, false);
        assert_eq!(sharing.idle_polls(), 0);
    }
    sharing.count_empty(POLLS, false);
    assert!(sharing.idle_polls() > 0);
    sharing.note(YieldOutcome::Wait);
    assert_eq!(sharing.idle_polls(), 0, "each poll yields");
    sharing.count_empty(POLLS, true);
    assert_eq!(sharing.idle_polls(), 0, "each poll yields");
}
