use super::*;

#[test]
fn memory_begins_with_a_page_and_is_filled() {
    for bytes in [0, 1, 4096, 100_000, 1 << 20] {
        let mut pages = Pages::filled(bytes, 7).unwrap();
        assert_eq!(pages.as_ptr().addr() % page_bytes() as usize, 0);
        assert_eq!(pages.len(), bytes);
        pages.iter_mut().for_each(|byte| *byte += 1);
        assert!(pages.iter().all(|byte| *byte == 8));
    }
    let error = Pages::filled(usize::MAX, 0).err().expect("nobody has so much");
    assert!(error.to_string().contains("RLIMIT_AS"));
}
