use super::*;

const MOST: u16 = 100;
const TIMES: u16 = 4;

/// How many messages go another way before the next trial.
fn pause(trials: &mut Trials) -> u16 {
    let mut passed = 0;
    while !trials.is_due() {
        trials.pass();
        passed += 1;
    }
    passed
}

#[test]
fn one_slow_message_may_be_an_accident() {
    let mut trials = Trials::default();
    trials.fail(TIMES, MOST);
    assert!(trials.is_due() && trials.is_good());
    trials.succeed();
    trials.fail(TIMES, MOST);
    assert!(trials.is_due() && trials.is_good());
    trials.fail(TIMES, MOST);
    assert!(!trials.is_due() && !trials.is_good());
}

#[test]
fn pauses_grow_up_to_a_bound_and_end_with_a_success() {
    let mut trials = Trials::default();
    trials.fail(TIMES, MOST);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        trials.fail(TIMES, MOST);
        pauses.push(pause(&mut trials));
        assert!(!trials.is_good(), "it has not succeeded yet");
    }
    assert_eq!(pauses, [8, 32, 100, 100, 100, 100]);
    trials.succeed();
    assert!(trials.is_good() && trials.is_due());
    trials.fail(TIMES, MOST);
    trials.fail(TIMES, MOST);
    assert_eq!(pause(&mut trials), 8);
}

#[test]
fn the_first_message_behind_others_takes_lines_back() {
    let mut trials = Trials::default();
    assert!(!trials.take_back(), "none went another way");
    trials.fail(TIMES, MOST);
    trials.fail(TIMES, MOST);
    trials.fail(TIMES, MOST);
    assert_eq!(pause(&mut trials), 8, "one that was begun before says nothing");
    assert!(trials.take_back());
    assert!(!trials.take_back(), "the second one says how it is");
}

#[test]
fn who_is_like_one_that_is_slow_waits_half_as_long_for_the_first_trial() {
    let mut trials = Trials::default();
    assert!(trials.begin_alike().is_good() && trials.begin_alike().is_due());
    trials.fail(TIMES, MOST);
    assert!(trials.begin_alike().is_due(), "one may be an accident");
    for expected in [8, 16, 50, 50] {
        trials.fail(TIMES, MOST);
        let mut alike = trials.begin_alike();
        assert!(!alike.is_good());
        assert_eq!(pause(&mut alike), expected);
        pause(&mut trials);
    }
}
