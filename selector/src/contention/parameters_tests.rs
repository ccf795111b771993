use super::*;
use crate::contention::{BROADWELL, KNL};

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * other.abs().max(1.0)
}

#[test]
fn a_copy_is_a_start_and_bytes_and_pages_begun() {
    let of = |bytes| KNL.parameters.copy_us(bytes, 1);
    assert!(near(of(0), 1.43));
    assert!(near(of(1), 1.43 + 1.0 / 3290.0 + 0.25));
    assert!(near(of(4096), 1.43 + 4096.0 / 3290.0 + 0.25));
    assert!(near(of(4097), 1.43 + 4097.0 / 3290.0 + 0.5));
}

#[test]
fn only_the_pages_suffer_from_readers() {
    let gamma_14 = 0.18 * 196.0 + 0.83 * 14.0;
    let expected = 0.98 + 40960.0 / 13200.0 + 0.11 * gamma_14 * 10.0;
    assert!(near(BROADWELL.parameters.copy_us(40960, 14), expected));
}

#[test]
fn no_more_contend_than_run_at_a_time() {
    let here = Parameters { cpus: Some(2), ..KNL.parameters.clone() };
    assert_eq!(here.copy_us(65536, 8), here.copy_us(65536, 2));
    assert!(here.copy_us(65536, 2) > here.copy_us(65536, 1));
    assert_eq!([1, 2, 3, 8].map(|processes| here.sharing(processes)), [1.0, 1.0, 1.5, 4.0]);
    assert_eq!(KNL.parameters.sharing(64), 1.0);
}

#[test]
fn figures_that_mean_nothing_are_named() {
    let knl = || KNL.parameters.clone();
    assert_eq!(knl().check(), Ok(()));
    let wrong = |parameters: Parameters| parameters.check().unwrap_err().to_string();
    assert!(wrong(Parameters { lock_us: f64::NAN, ..knl() }).contains("`lock_us`"));
    assert!(wrong(Parameters { alpha_us: -1.0, ..knl() }).contains("`alpha_us` is -1"));
    let told = wrong(Parameters { byte_ns: 1e300, ..knl() });
    assert_eq!(told, "`byte_ns` is 1e300; it must be a number from 0 to 1000000000");
    assert!(wrong(Parameters { gamma: Gamma::curve(1e7, 1.0), ..knl() }).contains("from 0 to 1000000"));
    assert!(wrong(Parameters { page_bytes: 0, ..knl() }).contains("`page_bytes`"));
    assert!(wrong(Parameters { cpus: Some(0), ..knl() }).contains("`cpus`"));
    assert!(wrong(Parameters { gamma: Gamma::curve(-0.1, 1.0), ..knl() }).contains("gamma is -0.1"));
}

#[test]
fn the_most_that_figures_may_be_predicts_a_number() {
    let most = Parameters {
        alpha_us: MAX_TIME,
        byte_ns: MAX_TIME,
        lock_us: MAX_TIME,
        page_bytes: 1,
        gamma: Gamma::curve(MAX_FACTOR, MAX_FACTOR),
        ..KNL.parameters.clone()
    };
    assert_eq!(most.check(), Ok(()));
    // A thousand of the longest calls of a thousand ranks.
    assert!((most.copy_us(u64::MAX, 1024) * 1e6).is_finite());
}
