use super::*;

#[test]
fn asking_for_lines_changes_nothing() {
    let bytes: Vec<u8> = (0..=255).collect();
    prefetch_for_write(bytes.as_ptr(), bytes.len());
    prefetch(bytes.as_ptr(), bytes.len());
    assert!(bytes.iter().enumerate().all(|(i, &byte)| i == usize::from(byte)));
}
