use super::*;

/// What the last of so many messages of a ping-pong or ping-ping is cut into.
fn after(rounds: u32, reading: &mut Reading, was_awaited: impl Fn(u32) -> bool) -> Cut {
    let mut cut = reading.cut();
    for round in 0..rounds {
        cut = reading.cut();
        reading.came(was_awaited(round));
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
fn where_processes_outnumber_cpus_cells_go_whole() {
    assert_eq!(Reading { is_crowded: true, ..Reading::default() }.cut(), Cut::Cells);
}

#[test]
fn what_was_known_ends_with_the_connection() {
    let mut reading = Reading { is_crowded: true, ..Reading::default() };
    after(20, &mut reading, |_| false);
    reading.forget();
    assert!(reading.is_crowded && reading.late == 0);
}
