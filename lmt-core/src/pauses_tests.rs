use super::*;

const KIB: u64 = 1 << 10;
const SHORT: Duration = Duration::from_nanos(100);
const LONG: Duration = Duration::from_micros(10);
/// Enough to use all that came.
const LONG_TIME: Duration = Duration::from_secs(1);

fn series(pauses: &mut Pauses, times: impl IntoIterator<Item = Duration>) {
    for time in times {
        pauses.look(time, 64 * KIB);
    }
}

#[test]
fn buffers_are_taken_to_be_used_until_it_is_seen_that_they_are_not() {
    let mut pauses = Pauses::default();
    assert!(!pauses.are_short());
    series(&mut pauses, [SHORT; IN_A_ROW as usize - 1]);
    assert!(!pauses.are_short());
    series(&mut pauses, [SHORT]);
    assert!(pauses.are_short());
    series(&mut pauses, [LONG, LONG]);
    assert!(!pauses.are_short());
}

/// Between two repetitions of a loop there may be a barrier.
#[test]
fn one_long_pause_refutes_nothing() {
    let mut pauses = Pauses::default();
    series(&mut pauses, [SHORT; IN_A_ROW as usize]);
    for _ in 0..10 {
        pauses.bytes = 1 << 30;
        series(&mut pauses, [LONG]);
        assert!(pauses.are_short());
        series(&mut pauses, [SHORT; IN_A_ROW as usize]);
        assert!(pauses.are_short());
    }
    pauses.bytes = 1 << 30;
    series(&mut pauses, [LONG, SHORT, SHORT, LONG]);
    assert!(!pauses.are_short());
}

/// Who receives into several buffers and then reads them all pauses once for all of them.
#[test]
fn a_pause_that_is_long_enough_for_all_that_came_refutes_at_once() {
    let mut pauses = Pauses::default();
    series(&mut pauses, [SHORT; IN_A_ROW as usize]);
    pauses.untimed = 0;
    (0..8).for_each(|_| pauses.end(64 * KIB));
    series(&mut pauses, [Duration::from_nanos(8 * 64 * KIB / MOST_BYTES_PER_NS)]);
    assert!(!pauses.are_short());
}

#[test]
fn what_ends_within_a_call_begins_no_pause() {
    let mut pauses = Pauses::default();
    pauses.end(64 * KIB);
    pauses.forget();
    (0..100).for_each(|_| pauses.begin(64 * KIB));
    assert!(!pauses.are_short() && pauses.in_a_row == 0);
}

/// At first it may have been something else that took the time, so it is soon looked again.
#[test]
fn fewer_messages_are_untimed_after_the_first_refutations() {
    let mut pauses = Pauses::default();
    let mut untimed = Vec::new();
    for _ in 0..6 {
        series(&mut pauses, [LONG]);
        untimed.push(std::mem::take(&mut pauses.untimed));
    }
    assert_eq!(untimed, [4, 8, 16, 32, UNTIMED, UNTIMED]);
}

/// A ping-pong whose application reads what comes pauses once for two messages.
#[test]
fn every_second_pause_is_enough_to_use_buffers() {
    let mut pauses = Pauses::default();
    series(&mut pauses, [SHORT, LONG].into_iter().cycle().take(1000));
    assert!(!pauses.are_short());
}

#[test]
fn a_pause_is_long_by_what_could_be_done_in_it() {
    for (bytes, pause_ns, is_short) in [(64 * KIB, 511, true), (64 * KIB, 512, false), (1 << 20, 8191, true)]
    {
        let mut pauses = Pauses::default();
        (0..IN_A_ROW).for_each(|_| pauses.look(Duration::from_nanos(pause_ns), bytes));
        assert_eq!(pauses.are_short(), is_short, "{bytes} bytes in {pause_ns} ns");
    }
}

/// The clock is asked for one series in some dozens of messages, for short ones never.
#[test]
fn few_messages_are_timed() {
    let mut pauses = Pauses::default();
    pauses.end(32 * KIB);
    assert!(pauses.ended.is_none(), "a short message");
    series(&mut pauses, [SHORT; IN_A_ROW as usize]);
    let mut timed = 0;
    for _ in 0..10 * u32::from(UNTIMED) {
        pauses.end(LONG_BYTES);
        timed += u32::from(pauses.ended.is_some());
        pauses.begin(64 * KIB);
        assert!(pauses.ended.is_none());
    }
    assert!((9..=10 * u32::from(IN_A_ROW)).contains(&timed), "{timed}");
}

#[test]
fn a_short_message_in_between_is_part_of_the_pause() {
    let mut pauses = Pauses::default();
    pauses.end(64 * KIB);
    pauses.begin(8);
    assert!(pauses.ended.is_some());
    pauses.begin(64 * KIB);
    assert!(pauses.ended.is_none());
}

/// To ask the clock is nothing beside what long messages take, and a program may send few.
#[test]
fn long_messages_are_all_timed_and_few_of_them_suffice() {
    let mut pauses = Pauses::default();
    for _ in 0..3 {
        pauses.look(LONG_TIME, LONG_BYTES + 1);
        assert!(!pauses.are_short());
        (1..LONG_IN_A_ROW).for_each(|_| pauses.look(SHORT, LONG_BYTES + 1));
        assert!(!pauses.are_short());
        pauses.look(SHORT, LONG_BYTES + 1);
        assert!(pauses.are_short());
        pauses.end(LONG_BYTES + 1);
        assert!(pauses.ended.is_some());
    }
}

/// Two sends, two receives, and then their use.
#[test]
fn an_exchange_with_two_neighbours_uses_its_buffers() {
    let mut pauses = Pauses::default();
    for pause in [SHORT, SHORT, SHORT, LONG_TIME].into_iter().cycle().take(400) {
        pauses.look(pause, LONG_BYTES + 1);
        assert!(!pauses.are_short());
    }
}

#[test]
fn shorter_messages_in_between_are_none_of_the_long_ones() {
    let mut pauses = Pauses::default();
    for bytes in [LONG_BYTES + 1, LONG_BYTES + 1, 64 * KIB, LONG_BYTES + 1, LONG_BYTES + 1] {
        pauses.look(SHORT, bytes);
        assert!(!pauses.are_short());
    }
    pauses.look(SHORT, 64 * KIB);
    assert!(pauses.are_short(), "all count together");
}

/// A pause for all says little of what comes behind it, where nobody paused before.
#[test]
fn what_was_found_is_looked_for_at_once_behind_a_long_pause() {
    let mut pauses = Pauses::default();
    series(&mut pauses, [SHORT; IN_A_ROW as usize]);
    series(&mut pauses, [LONG_TIME]);
    assert!(!pauses.are_short() && pauses.untimed == 0);
    series(&mut pauses, [LONG_TIME]);
    assert!(pauses.untimed == FIRST_UNTIMED, "the second time");
}
