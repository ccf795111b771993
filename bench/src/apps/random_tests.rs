use super::*;

#[test]
fn the_factor_is_five_to_the_thirteenth() {
    assert_eq!(FACTOR, 5u64.pow(13));
    assert_eq!(power(1), FACTOR);
}

/// The report gives the period: a fourth of the modulus, since a mod 8 is 5.
#[test]
fn the_period_is_two_to_the_forty_fourth() {
    assert_eq!(power(1 << 44), 1);
    assert_ne!(power(1 << 43), 1);
    assert_eq!(Randoms::behind((1 << 44) + 7), Randoms::behind(7));
}

/// The first numbers, by arithmetic that cannot wrap.
#[test]
fn the_first_numbers() {
    let mut expected = u128::from(SEED);
    let mut randoms = Randoms::behind(0);
    for _ in 0..10_000 {
        expected = expected * 5u128.pow(13) % (1 << 46);
        assert_eq!(u128::from(randoms.draw()), expected);
    }
}

#[test]
fn parts_join() {
    let mut all = Randoms::behind(0);
    for skipped in 0..300 {
        assert_eq!(Randoms::behind(skipped), all);
        all.draw();
    }
}

/// Uniform between 0 and 1: the mean of n numbers is off by at most a few times
/// 1 / sqrt(12 n).
#[test]
fn the_mean_is_a_half() {
    const NUMBERS: u32 = 1 << 20;
    let mut randoms = Randoms::behind(0);
    let sum: f64 = (0..NUMBERS).map(|_| randoms.draw() as f64 / (1u64 << 46) as f64).sum();
    let mean = sum / f64::from(NUMBERS);
    assert!((mean - 0.5).abs() < 4.0 / (12.0 * f64::from(NUMBERS)).sqrt(), "{mean}");
}
