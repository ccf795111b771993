use super::*;

#[test]
fn address_space_is_spared_for_what_is_needed() {
    let spare = |left| spare_of(left, "a cache", "cache_bytes", 100, 8);
    assert_eq!(spare(None), Ok(()));
    assert_eq!(spare(Some(800)), Ok(()));
    let short = spare(Some(799)).expect_err("it is less than eight times as much");
    let sentence = short.to_string();
    for part in
        ["a cache needs 100 bytes and 99 are available", "799 bytes", "ulimit -v", "lower cache_bytes"]
    {
        assert!(sentence.contains(part), "{sentence}");
    }
}
