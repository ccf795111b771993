use super::*;

const BYTES: u64 = 64 << 10;

#[test]
fn cells_are_waited_for_where_as_much_has_come_as_goes() {
    let returns = Returns::default();
    assert!(!returns.are_likely(BYTES - 1, BYTES));
    assert!(returns.are_likely(BYTES, BYTES));
}

/// A peer that is counted anew has sent less than before: it may be waited for once.
#[test]
fn counters_that_begin_anew_are_no_harm() {
    let returns = Returns { before_bytes: 100 * BYTES, ..Returns::default() };
    assert!(returns.are_likely(BYTES, BYTES));
    let returns = Returns { before_bytes: BYTES, ..returns };
    assert!(!returns.are_likely(2 * BYTES - 1, BYTES));
}
