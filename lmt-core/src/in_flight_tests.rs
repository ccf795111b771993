use super::*;

const MIB: u64 = 1 << 20;

fn window(in_flight: &mut InFlight, messages: u32, bytes: u64) {
    (0..messages).for_each(|_| in_flight.begin(bytes));
    (0..messages).for_each(|_| in_flight.end(bytes));
}

#[test]
fn a_window_is_known_until_the_next_one_is_over() {
    let mut in_flight = InFlight::default();
    for (messages, bytes) in
        [(2, MIB), (16, 2 * MIB), (64, MIB), (65, MIB), (128, MIB), (300, MIB), (4, 1), (2, u64::MAX)]
    {
        window(&mut in_flight, messages, bytes);
        assert_eq!(in_flight.last_most_bytes(), bytes.saturating_mul(messages.into()));
        assert_eq!(in_flight.bytes(), 0);
    }
}

#[test]
fn one_alone_is_no_window_and_ends_what_is_known() {
    let mut in_flight = InFlight::default();
    window(&mut in_flight, 1, 16 * MIB);
    assert_eq!(in_flight.last_most_bytes(), 0);
    window(&mut in_flight, 2, MIB);
    window(&mut in_flight, 1, 16 * MIB);
    assert_eq!(in_flight.last_most_bytes(), 0);
}

#[test]
fn what_never_runs_dry_is_forgotten_all_the_same() {
    let mut in_flight = InFlight::default();
    window(&mut in_flight, 16, MIB);
    in_flight.begin(MIB);
    for begun in 2..3 * MOST_MESSAGES {
        in_flight.begin(MIB);
        in_flight.end(MIB);
        let expected = if begun <= MOST_MESSAGES { 16 * MIB } else { 2 * MIB };
        assert_eq!(in_flight.last_most_bytes(), expected, "{begun} messages");
    }
}

#[test]
fn what_is_in_flight_outlives_that_the_window_before_is_forgotten() {
    let mut in_flight = InFlight::default();
    window(&mut in_flight, 16, MIB);
    (0..2).for_each(|_| in_flight.begin(MIB));
    in_flight.forget_last();
    assert_eq!((in_flight.bytes(), in_flight.last_most_bytes()), (2 * MIB, 0));
    (0..2).for_each(|_| in_flight.end(MIB));
    assert_eq!((in_flight.bytes(), in_flight.last_most_bytes()), (0, 0));
}
