use super::*;

#[test]
fn all_buffers_together_exceed_the_cache_twice() {
    assert_eq!(rotation_bytes(2, Some(32 << 20), None), 16 << 20);
    assert_eq!(rotation_bytes(4, Some(32 << 20), None), 8 << 20);
}

#[test]
fn the_bounds_hold() {
    assert_eq!(rotation_bytes(2, Some(480 << 20), None), 240 << 20);
    assert_eq!(rotation_bytes(2, Some(4 << 30), None), 256 << 20);
    assert_eq!(rotation_bytes(2, Some(4 << 30), Some(1 << 30)), 64 << 20);
    assert_eq!(rotation_bytes(1000, Some(1 << 20), Some(0)), 1 << 20);
}

#[test]
fn a_working_set_is_half_the_last_cache() {
    assert_eq!(working_set_bytes(Some(32 << 20), u64::MAX), 16 << 20);
    assert_eq!(working_set_bytes(Some(480 << 20), 400 << 20), 100 << 20);
    assert_eq!(working_set_bytes(None, u64::MAX), ASSUMED_CACHE_BYTES / 2);
    assert_eq!(working_set_bytes(Some(1000), 1000), 4096);
}
