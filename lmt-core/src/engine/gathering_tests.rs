use super::{FIRST_ALONE, MOST_ALONE, Run, WORTH_IT};

/// So many messages come together, again and again; how many of all these are gathered, and how
/// many times.
fn gathered_of(run: &mut Run, together: usize, times: usize) -> (usize, usize) {
    let (mut messages, mut calls) = (0, 0);
    for _ in 0..times {
        let mut left = together;
        while left > 0 {
            if !run.is_on() {
                run.comes(3, left == together);
                left -= 1;
                continue;
            }
            let taken = left.min(super::MOST_MESSAGES);
            (0..taken).for_each(|_| run.comes(3, false));
            run.learn(taken, taken == super::MOST_MESSAGES);
            (messages, calls, left) = (messages + taken, calls + 1, left - taken);
        }
        // The next look finds none.
        run.in_a_row = 0;
    }
    (messages, calls)
}

#[test]
fn of_a_window_all_but_the_first_are_gathered() {
    let mut run = Run::default();
    assert_eq!(gathered_of(&mut run, 64, 1), (63, 8));
    let alone = usize::from(FIRST_ALONE);
    assert_eq!(gathered_of(&mut run, 64, 10), ((64 - alone) * 10, 80));
    assert_eq!(gathered_of(&mut run, alone + WORTH_IT, 10), (WORTH_IT * 10, 10));
}

#[test]
fn messages_that_come_one_by_one_are_never_gathered() {
    let mut run = Run::default();
    assert_eq!(gathered_of(&mut run, 1, 1000), (0, 0));
}

/// Their senders would wait for the first while the second is copied.
#[test]
fn of_two_at_a_time_few_are_gathered_and_ever_fewer() {
    let mut run = Run::default();
    // The next comes while the last is copied: no look finds none, but for one after the other.
    let mut calls = 0;
    for _ in 0..100_000 {
        if run.is_on() {
            run.comes(3, false);
            run.learn(1, false);
            calls += 1;
        } else {
            run.comes(3, false);
        }
    }
    assert!(calls <= 10 + 100_000 / usize::from(MOST_ALONE), "{calls}");
    // More at a time are found out again.
    assert!(gathered_of(&mut run, 64, 50).0 > 1500);
}

#[test]
fn what_another_peer_sends_between_ends_the_run() {
    let mut run = Run { alone: 3, ..Run::default() };
    (0..3).for_each(|_| run.comes(3, false));
    assert!(run.is_on());
    run.comes(4, false);
    assert!(!run.is_on());
    assert_eq!((run.peer, run.in_a_row), (4, 1));
}
