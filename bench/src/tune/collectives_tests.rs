use super::*;

const DEFAULT: Algorithm = Algorithm::DirectRead;

/// At each length the times of the library's choice and of another.
fn case(bytes: u64, default: &[f64], other: Algorithm, times: &[f64]) -> Case {
    Case { bytes, default: Some(DEFAULT), times: vec![(DEFAULT, default.to_vec()), (other, times.to_vec())] }
}

#[test]
fn only_what_is_clearly_faster_wins() {
    let other = Algorithm::Knomial(2);
    let of = |times: &[f64]| winner(&case(1 << 20, &[100.0, 110.0, 120.0, 100.0], other, times));
    assert_eq!(of(&[80.0, 90.0, 100.0, 85.0]), Some(other));
    assert_eq!(of(&[97.0, 107.0, 117.0, 98.0]), None, "3 % faster");
    assert_eq!(of(&[80.0, 95.0, 130.0, 130.0]), None, "slower in half of the rounds");
    assert_eq!(of(&[]), None, "not measured");
    let unknown = Case { default: None, ..case(1 << 20, &[100.0], other, &[10.0]) };
    assert_eq!(winner(&unknown), None);
}

#[test]
fn of_several_the_fastest_wins() {
    let mut case = case(65536, &[100.0; 5], Algorithm::Knomial(2), &[90.0; 5]);
    case.times.push((Algorithm::ScatterAllgather, vec![70.0; 5]));
    assert_eq!(winner(&case), Some(Algorithm::ScatterAllgather));
}

#[test]
fn lengths_with_the_same_winner_have_one_rule() {
    let (one, other) = (Algorithm::Knomial(2), Algorithm::ScatterAllgather);
    let slow = [100.0; 5];
    let faster = |bytes, algorithm| case(bytes, &slow, algorithm, &[50.0; 5]);
    let same = |bytes| case(bytes, &slow, one, &slow);
    let [a, b, c, d, e] = SIZES;
    let said = |cases: &[Case]| {
        let winners: Vec<Winner> = cases.iter().map(|case| (case.bytes, winner(case))).collect();
        rules(Kind::Broadcast, 2, &winners).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        said(&[faster(a, one), faster(b, one), same(c), faster(d, other), faster(e, other)]),
        [
            "bcast above 4 KiB up to 64 KiB on 2 ranks: knomial:2",
            "bcast above 256 KiB on 2 ranks: scatter-allgather"
        ]
    );
    assert_eq!(
        said(&[same(a), faster(b, one), faster(c, other), same(d), same(e)]),
        [
            "bcast above 16 KiB up to 64 KiB on 2 ranks: knomial:2",
            "bcast above 64 KiB up to 256 KiB on 2 ranks: scatter-allgather"
        ]
    );
    assert!(said(&[same(a), same(b)]).is_empty());
    assert!(said(&[]).is_empty());
    // The longest was left out: beyond what was measured nothing is said.
    assert_eq!(said(&[same(c), faster(d, one)]), ["bcast above 256 KiB up to 1 MiB on 2 ranks: knomial:2"]);
}

#[test]
fn numbers_are_those_that_ranks_allow() {
    let names = |kind, ranks| {
        let all = algorithms(kind, ranks);
        assert!(all.iter().all(|one| one.does(kind)));
        all.iter().map(ToString::to_string).filter(|name| name.contains("throttled")).collect::<Vec<_>>()
    };
    assert_eq!(names(Kind::Scatter, 2), ["throttled-read:1"]);
    assert_eq!(
        names(Kind::Gather, 9),
        ["throttled-write:1", "throttled-write:2", "throttled-write:4", "throttled-write:8"]
    );
}
