use super::*;

#[test]
fn half_or_256_stay_free() {
    assert!(is_within(19, 40) && !is_within(20, 40));
    assert!(is_within(767, 1024) && !is_within(768, 1024));
    assert!(is_within(100_000, u64::MAX));
    assert!(!is_within(0, 0) && is_within(0, 1));
}
