use super::*;

fn times(name: &str, role: Role, usec: &[f64]) -> Times {
    Times { name: name.to_owned(), role, usec: usec.to_vec() }
}

fn way(way: &str, messages: u64, bytes: u64) -> PathCount {
    PathCount { way: way.to_owned(), messages, bytes }
}

/// The machine is ten times slower in the last round, for all.
pub(in crate::peers) fn size() -> SizeTimes {
    SizeTimes {
        bytes: 65536,
        iterations: 10,
        times: vec![
            times("auto", Role::Ours, &[4.0, 4.0, 40.0]),
            times("cma", Role::Ours, &[8.0, 8.0, 80.0]),
            times("mpich", Role::Peer, &[10.0, 12.0, 120.0]),
            times("intelmpi", Role::Peer, &[8.0, 8.0, 80.0]),
            times("both", Role::Limit, &[3.0, 2.0, 20.0]),
            times("pipe", Role::Limit, &[5.0, 5.0, 50.0]),
        ],
        ways: vec![way("eager", 60, 60), way("cma", 40, 65536 * 40)],
        verified_messages: 7,
    }
}

#[test]
fn ratios_are_taken_round_by_round_against_the_best() {
    let row = Row::of(&size()).unwrap();
    assert_eq!((row.rounds, row.iterations, row.verified_messages), (3, 10, 7));
    assert_eq!(row.best_peer.as_deref(), Some("intelmpi"));
    assert_eq!(row.limit.as_deref(), Some("both"));
    assert_eq!(row.over_peer(), Some(Spread { lower: 0.5, median: 0.5, upper: 0.5 }));
    assert_eq!(row.over_limit().unwrap().median, 2.0);
    assert_eq!(row.limit_over_peer.unwrap().median, 0.25);
    assert_eq!(row.contender("cma").unwrap().ours_over_this.median, 0.5);
    assert_eq!(row.ours().unwrap().name, "auto");
}

#[test]
fn without_peers_and_limits_there_are_no_ratios() {
    let mut size = size();
    size.times.retain(|times| times.role == Role::Ours);
    let row = Row::of(&size).unwrap();
    assert_eq!((row.over_peer(), row.over_limit(), row.limit_over_peer), (None, None, None));
    size.times.clear();
    assert_eq!(Row::of(&size), None);
}

#[test]
fn the_way_is_that_of_most_bytes() {
    let row = Row::of(&size()).unwrap();
    assert_eq!(row.way(), "cma");
    let mixed = Row { ways: vec![way("eager", 90, 40), way("cma", 10, 60)], ..row.clone() };
    assert_eq!(mixed.way(), "cma 60%");
    let empty = Row { ways: vec![way("eager", 90, 0), way("cma", 10, 0)], ..row.clone() };
    assert_eq!(empty.way(), "eager 90%");
    assert_eq!(Row { ways: Vec::new(), ..row }.way(), "-");
}
