use super::*;

#[test]
fn verdicts_travel_as_lines() {
    for verdict in [holds(), Ok("a remark".to_owned()), fails("this, not that"), skip("no engine")] {
        assert_eq!(from_line(&to_line(&verdict)), Some(verdict));
    }
    assert_eq!(from_line("thread panicked"), None);
    assert_eq!(to_line(&fails("two\nlines")), "FAIL two lines");
}

#[test]
fn the_first_wrong_byte_is_named() {
    let wrong = same_bytes("data", &[1, 2, 3], &[1, 9, 3]);
    assert_eq!(wrong, fails("data: expected byte 1 of 3 to be 0x09, found 0x02"));
    assert!(same_bytes("data", &[1], &[1, 2]).is_err());
    assert_eq!(same_bytes("data", &[1], &[1]), Ok(()));
}
