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

#[test]
fn no_two_lines_say_the_same_and_all_are_ordinary_numbers() {
    let mut memory = [vec![0; 100_003], vec![0; 100_003]];
    memory.iter_mut().zip([0, 1]).for_each(|(one, seed)| mix(one, seed));
    let mut lines: Vec<&[u8]> = memory.iter().flat_map(|one| one.chunks_exact(64)).collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count);
    for number in memory[0].as_chunks::<4>().0 {
        let number = f32::from_le_bytes(*number);
        assert!(number.is_normal() && (0.0..2.0).contains(&number), "{number}");
    }
    assert!(memory[0][100_000..].iter().any(|byte| *byte != 0), "the end is filled, too");
}
