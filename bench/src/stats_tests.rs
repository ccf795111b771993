use super::*;

#[test]
fn medians_of_odd_and_even_numbers() {
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(Summary::of(&[5.0]), Some(Summary { median: 5.0, min: 5.0, max: 5.0 }));
    assert_eq!(Summary::of(&[9.0, 1.0, 5.0]), Some(Summary { median: 5.0, min: 1.0, max: 9.0 }));
    assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 8.0]), Some(Summary { median: 3.0, min: 1.0, max: 8.0 }));
}

#[test]
fn ratios_are_taken_pair_by_pair() {
    // The machine is ten times slower in the second repetition, for both.
    assert_eq!(median_ratio(&[1.0, 10.0, 1.0], &[2.0, 20.0, 2.0]), Some(0.5));
    assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    assert_eq!(median_ratio(&[], &[1.0]), None);
}

#[test]
fn megabytes_are_powers_of_ten() {
    assert_eq!(mb_per_s(1e6, 1e6), 1.0);
    assert_eq!(mb_per_s(65536.0, 4.0), 16384.0);
    assert_eq!(mb_per_s(8.0, 0.0), 0.0);
}

#[test]
fn quartiles_lie_between_the_values() {
    assert_eq!(Spread::of(&[]), None);
    assert_eq!(Spread::of(&[7.0]), Some(Spread { lower: 7.0, median: 7.0, upper: 7.0 }));
    assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Some(Spread { lower: 1.75, median: 2.5, upper: 3.25 }));
}

#[test]
fn geometric_means_are_of_positive_numbers() {
    assert_eq!(geometric_mean(&[]), None);
    assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    assert!((geometric_mean(&[1.0, 2.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
}
