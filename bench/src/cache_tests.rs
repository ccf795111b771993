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
