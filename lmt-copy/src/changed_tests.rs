use super::{BLOCK_BYTES, copy_changed};

/// Copies what differs, and returns what was written.
fn copy(target: &mut [u8], source: &[u8], may_write: bool) -> Option<usize> {
    assert_eq!(target.len(), source.len());
    // SAFETY: both have as many bytes, and the target is borrowed exclusively.
    unsafe { copy_changed(target.as_mut_ptr(), source.as_ptr(), source.len(), || may_write) }
}

fn some_bytes(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn what_is_the_same_is_not_written_and_nobody_is_asked() {
    for bytes in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 5 * BLOCK_BYTES + 3] {
        let source = some_bytes(bytes);
        assert_eq!(copy(&mut source.clone(), &source, false), Some(0), "{bytes}");
    }
}

#[test]
fn without_leave_nothing_is_written() {
    let source = some_bytes(3 * BLOCK_BYTES);
    let mut target = source.clone();
    target[BLOCK_BYTES + 7] ^= 1;
    let before = target.clone();
    assert_eq!(copy(&mut target, &source, false), None);
    assert!(target == before);
}

#[test]
fn one_byte_anywhere_is_found_and_its_block_written() {
    let bytes = 4 * BLOCK_BYTES + 100;
    let source = some_bytes(bytes);
    for at in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 77, 4 * BLOCK_BYTES, bytes - 1] {
        let mut target = source.clone();
        target[at] ^= 0x80;
        let block = BLOCK_BYTES.min(bytes - at / BLOCK_BYTES * BLOCK_BYTES);
        assert_eq!(copy(&mut target, &source, true), Some(block), "{at}");
        assert!(target == source, "{at}");
    }
}

#[test]
fn where_all_differs_all_is_written() {
    let bytes = 9 * BLOCK_BYTES + 1;
    let (source, mut target) = (some_bytes(bytes), vec![255; bytes]);
    assert_eq!(copy(&mut target, &source, true), Some(bytes));
    assert!(target == source);
}

#[test]
fn changes_here_and_there_come_over_with_what_lies_between_left_alone() {
    let bytes = 20 * BLOCK_BYTES;
    let source = some_bytes(bytes);
    let mut target = source.clone();
    for block in [3, 4, 9, 19] {
        target[block * BLOCK_BYTES + 5] ^= 1;
    }
    // Behind one block that differs in a row with another two are taken to.
    assert_eq!(copy(&mut target, &source, true), Some(5 * BLOCK_BYTES));
    assert!(target == source);
}
