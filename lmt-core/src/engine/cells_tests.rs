use super::*;

const BYTES: u64 = 64 << 10;

#[test]
fn cells_are_waited_for_where_as_much_has_come_as_goes() {
    let returns = Returns::default();
    assert!(!returns.are_likely(BYTES - 1, BYTES));
    assert!(returns.are_likely(BYTES, BYTES));
}

/// Who is waited for in vain again and again has to send more and more before the next time.
#[test]
fn waits_in_vain_grow_rarer() {
    let (mut returns, mut came_bytes, mut needed) = (Returns::default(), 0, Vec::new());
    for _ in 0..12 {
        let before = came_bytes;
        while !returns.are_likely(came_bytes, BYTES) {
            came_bytes += BYTES;
        }
        returns.fail(came_bytes);
        needed.push((came_bytes - before) / BYTES);
    }
    assert_eq!(needed, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
}

/// A peer that is counted anew has sent less than before: it may be waited for once.
#[test]
fn counters_that_begin_anew_are_no_harm() {
    let mut returns = Returns::default();
    returns.fail(100 * BYTES);
    assert!(returns.are_likely(BYTES, BYTES));
    returns.fail(BYTES);
    assert!(!returns.are_likely(4 * BYTES, BYTES));
}
