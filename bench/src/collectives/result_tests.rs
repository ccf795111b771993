use super::*;

pub(super) fn times(name: &str, is_peer: bool, usec: &[f64]) -> Times {
    Times { name: name.into(), is_peer, usec: usec.to_vec() }
}

fn row(all: &[Times]) -> Option<Row> {
    Row::of(8, 10, &all.iter().collect::<Vec<_>>(), None, 0)
}

#[test]
fn ratios_are_taken_of_the_best_peer_round_by_round() {
    let all = [
        times("auto", false, &[2.0, 40.0, 6.0]),
        times("slots", false, &[1.0, 10.0, 3.0]),
        times("slow", true, &[8.0, 80.0, 24.0]),
        times("fast", true, &[4.0, 40.0, 12.0]),
    ];
    let row = row(&all).unwrap();
    assert_eq!((row.reference.as_str(), row.rounds, row.has_peers()), ("fast", 3, true));
    let ratio = |name: &str| row.contender(name).unwrap().over_reference.unwrap().median;
    assert_eq!((ratio("auto"), ratio("slots"), ratio("slow"), ratio("fast")), (0.5, 0.25, 2.0, 1.0));
    assert_eq!(row.fastest().unwrap().name, "slots");
}

#[test]
fn without_peers_the_first_is_the_measure() {
    let all = [times("auto", false, &[2.0]), times("slots", false, &[1.0]), times("gone", true, &[])];
    let row = row(&all).unwrap();
    assert_eq!((row.reference.as_str(), row.contenders.len(), row.has_peers()), ("auto", 2, false));
    assert!(super::Row::of(8, 1, &[], None, 0).is_none());
}
