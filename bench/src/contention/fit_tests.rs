use lmt_selector::contention::{BROADWELL, KNL, POWER8};

use super::*;

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn curves_are_found_again() {
    for machine in [&KNL, &BROADWELL, &POWER8] {
        let curve = machine.parameters.gamma.fit.unwrap();
        let points: Vec<f64> = (1..=machine.ranks).map(|readers| curve.at(f64::from(readers))).collect();
        for points in [&points[..], &points[..3]] {
            let found = fit(points).unwrap();
            assert!(near(found.squared, curve.squared) && near(found.linear, curve.linear), "{found:?}");
        }
    }
}

#[test]
fn noise_moves_them_by_little() {
    let curve = Quadratic { squared: 0.18, linear: 0.83 };
    let noise = |readers: u32| 1.0 + 0.05 * f64::from(readers * 7919 % 13).sin();
    let points: Vec<f64> = (1..=28).map(|readers| curve.at(f64::from(readers)) * noise(readers)).collect();
    let found = fit(&points).unwrap();
    assert!((found.at(28.0) / curve.at(28.0) - 1.0).abs() < 0.05, "{found:?}");
}

/// Factors that do not grow at all are next to a line that grows least.
#[test]
fn no_number_is_negative() {
    for points in [vec![1.0; 8], vec![1.0, 1.1, 1.15, 1.17, 1.18]] {
        let found = fit(&points).unwrap();
        assert!(found.squared >= 0.0 && found.linear >= 0.0, "{found:?}");
    }
}

#[test]
fn two_points_are_no_curve() {
    assert!(fit(&[1.0, 1.9]).is_none() && fit(&[]).is_none());
}
