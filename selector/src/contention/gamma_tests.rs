use super::*;

#[test]
fn one_reader_waits_for_nobody_whatever_the_curve_says() {
    let gamma = Gamma::curve(0.11, 1.6);
    assert_eq!([0, 1].map(|readers| gamma.of(readers)), [1.0, 1.0]);
    assert!((gamma.of(2) - 3.64).abs() < 1e-12);
    assert!((gamma.of(64) - (0.11 * 4096.0 + 102.4)).abs() < 1e-9);
}

#[test]
fn no_factor_is_less_than_that_of_one() {
    assert_eq!(Gamma::curve(0.0, 0.2).of(3), 1.0);
    assert_eq!(Gamma { measured: vec![1.0, 0.9].into(), fit: None }.of(2), 1.0);
}

#[test]
fn what_was_measured_last_holds_beyond_it() {
    let gamma = Gamma { measured: vec![1.0, 1.7].into(), fit: None };
    assert_eq!([1, 2, 3, 100].map(|readers| gamma.of(readers)), [1.0, 1.7, 1.7, 1.7]);
    assert_eq!(Gamma { measured: Cow::Borrowed(&[]), fit: None }.of(9), 1.0);
}

#[test]
fn the_curve_goes_before_the_points() {
    let fit = Some(Quadratic { squared: 0.5, linear: 0.5 });
    let gamma = Gamma { measured: vec![1.0, 2.9, 6.2].into(), fit };
    assert_eq!([2, 3, 4].map(|readers| gamma.of(readers)), [3.0, 6.0, 10.0]);
}
