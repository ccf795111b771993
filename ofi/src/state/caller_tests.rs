use std::cell::Cell;

use super::*;
use crate::state::peeks::Peeks;

/// How many of 100,000 times others were let run here, with a caller that loses its core before
/// those of its polls that `loses` names.
fn yields_here(caller: &mut Caller, loses: impl Fn(u32) -> bool) -> u32 {
    let (mut switches, mut here) = (0, 0);
    for poll in 0..100_000 {
        if !caller.is_left_alone(|| Some(switches)) {
            here += 1;
            switches += 1;
        }
        switches += i64::from(loses(poll));
        caller.look(|| Some(switches));
    }
    here
}

#[test]
fn who_lets_others_run_itself_is_left_alone() {
    let mut caller = Caller::default();
    assert_eq!(yields_here(&mut caller, |_| true), 0);
    let here = yields_here(&mut caller, |poll| poll % 4 != 0);
    assert!(here < 10_000, "{here}: not each of its yields runs others");
    let here = yields_here(&mut caller, |_| false);
    assert!(here >= 85_000 - LEFT_ALONE, "{here}: what it does now counts");
}

#[test]
fn who_lets_others_run_between_its_polls_no_more_has_them_run_here_soon() {
    let mut caller = Caller::default();
    let lets_run = 1000;
    let (mut switches, mut here) = (0, 0);
    for poll in 0..2 * lets_run {
        // As in a blocking send, whose thread loses its core only by the timer.
        switches += i64::from(poll < lets_run || poll % 100 == 0);
        caller.look(|| Some(switches));
        if !caller.is_left_alone(|| Some(switches)) {
            here += 1;
        }
    }
    assert!(here > lets_run - 2 * LEFT_ALONE - lets_run / BETWEEN_LOOKS, "{here}");
}

#[test]
fn who_loses_its_core_now_and_then_is_not_taken_for_one_that_lets_others_run() {
    let mut caller = Caller::default();
    let others = |loses: u32| yields_here(&mut Caller::default(), |poll| poll % loses == 0);
    assert!(others(20) > 85_000 && others(3) > 85_000, "{} {}", others(20), others(3));
    assert!(yields_here(&mut caller, |_| false) > 85_000);
}

#[test]
fn only_one_thread_that_polls_all_the_time_is_left_alone() {
    let known = || Caller { left_alone: 10, thread: this_thread(), ..Caller::default() };
    assert!(known().yields_itself(true));
    assert!(!known().yields_itself(false), "others are let run after many polls only");
    let mut of_another = known();
    std::thread::scope(|threads| {
        let there = threads.spawn(|| assert!(!of_another.yields_itself(true)));
        there.join().expect("it is asked there");
    });
}

#[test]
fn where_the_kernel_does_not_say_others_are_let_run() {
    let mut caller = Caller::default();
    for _ in 0..100 {
        assert!(!caller.is_left_alone(|| None));
        caller.look(|| None);
    }
    let mut caller = Caller { left_alone: 1, ..Caller::default() };
    assert!(!caller.is_left_alone(|| None), "it says no more");
}

#[test]
fn the_kernel_counts_the_times_that_a_thread_loses_its_core() {
    let before = context_switches().expect("Linux counts them");
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(context_switches().expect("Linux counts them") > before);
}

#[test]
fn what_another_thread_lost_says_nothing_of_this_one() {
    let looked_at = || Caller { switches: Some(-1), seen: 1, thread: this_thread(), ..Caller::default() };
    let mut caller = looked_at();
    caller.polls();
    assert!(caller.left_alone > 0 && !caller.is_looked_at(), "it has lost its core since");
    let mut of_another = looked_at();
    std::thread::scope(|threads| {
        threads.spawn(|| of_another.polls());
    });
    assert!(of_another.left_alone == 0 && of_another.is_looked_at());
}

#[test]
fn a_caller_that_only_peeks_has_others_run_all_the_time() {
    let (mut caller, mut peeks) = (Caller::default(), Peeks::default());
    let (switches, mut here) = (Cell::new(0), 0);
    for _ in 0..10_000 {
        let yields = peeks.take_owed_yield() || peeks.yields_now();
        if yields && !caller.is_left_alone(|| Some(switches.get())) {
            here += 1;
            switches.set(switches.get() + 1);
        }
    }
    assert!(here > 4_000, "{here}: each second peek, but for those at which it is looked at");
}
