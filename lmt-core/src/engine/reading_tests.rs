use super::*;

const LONG: u64 = 64 << 10;

/// What the last of so many messages of a ping-pong or ping-ping is cut into.
fn after(rounds: u32, reading: &mut Reading, was_awaited: impl Fn(u32) -> bool) -> Cut {
    let mut cut = reading.cut();
    for round in 0..rounds {
        cut = reading.cut();
        reading.went(LONG);
        reading.came(LONG, was_awaited(round));
    }
    cut
}

#[test]
fn who_waits_gets_growing_pieces() {
    assert_eq!(after(1, &mut Reading::default(), |_| true), Cut::Growing);
    assert_eq!(after(100, &mut Reading::default(), |_| true), Cut::Growing);
}

#[test]
fn who_sends_at_the_same_time_gets_whole_cells() {
    assert_eq!(after(10, &mut Reading::default(), |_| false), Cut::Cells);
    // Now and then one of the two is the first.
    assert_eq!(after(100, &mut Reading::default(), |round| round % 4 == 0), Cut::Cells);
}

#[test]
fn one_interruption_is_no_habit_and_a_habit_ends_soon() {
    let mut reading = Reading::default();
    assert_eq!(after(20, &mut reading, |round| round != 18), Cut::Growing);
    assert_eq!(after(20, &mut reading, |_| false), Cut::Cells);
    assert_eq!(after(3, &mut reading, |_| true), Cut::Growing);
}

#[test]
fn what_goes_behind_another_goes_in_whole_cells() {
    let mut reading = Reading::default();
    reading.went(LONG);
    assert_eq!(reading.cut(), Cut::Cells);
    // A short answer says that it was read.
    reading.came(4, true);
    assert_eq!(reading.cut(), Cut::Growing);
    reading.went(ABOVE_BYTES);
    assert_eq!(reading.cut(), Cut::Growing);
}

#[test]
fn short_messages_are_no_habit() {
    let mut reading = Reading::default();
    (0..10).for_each(|_| reading.came(ABOVE_BYTES, false));
    assert_eq!(reading.cut(), Cut::Growing);
}

#[test]
fn where_processes_outnumber_cpus_cells_go_whole() {
    assert_eq!(Reading { is_crowded: true, ..Reading::default() }.cut(), Cut::Cells);
}
