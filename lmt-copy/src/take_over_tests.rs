use super::*;

#[test]
fn asking_for_lines_changes_nothing() {
    let bytes: Vec<u8> = (0..=255).collect();
    take_over(bytes.as_ptr(), bytes.len());
    ask_for(bytes.as_ptr(), bytes.len());
    assert!(bytes.iter().enumerate().all(|(i, &byte)| i == usize::from(byte)));
}
