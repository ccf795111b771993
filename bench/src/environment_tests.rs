use super::*;

#[test]
fn dates() {
    assert_eq!(utc(0), "1970-01-01 00:00 UTC");
    assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
    assert_eq!(utc(1_767_225_599), "2025-12-31 23:59 UTC");
}

#[test]
fn runs_of_cpus() {
    assert_eq!(join(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    assert_eq!(join(&[]), "");
}

#[test]
fn this_machine() {
    assert!(page_bytes().is_power_of_two());
    assert!(!allowed_cpus().unwrap().is_empty());
}
