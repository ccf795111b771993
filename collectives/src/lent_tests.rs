use super::*;
use crate::reduction::{Element, Operator};

/// A place of `bytes` bytes in segments of these lengths, which lives as long as the test.
fn lend(bytes: &mut [u8], lengths: &[usize], access: Access) -> Option<Buffer> {
    let mut rest = bytes;
    let mut segments = Vec::new();
    for &length in lengths {
        let (segment, behind) = rest.split_at_mut(length);
        segments.push(segment);
        rest = behind;
    }
    let memory = match access {
        Access::Write => Memory::segments_mut(segments),
        Access::Read => Memory::segments(&segments.iter().map(|slice| &**slice).collect::<Vec<_>>()),
    };
    assert_eq!(memory.is_for_writing(), access == Access::Write);
    Some(memory.into_buffer())
}

fn places(input: Option<Buffer>, output: Option<Buffer>, work: Vec<u8>) -> Places {
    let mut places = Places::default();
    places.lend(input, output);
    places.lend_work(work);
    places
}

fn bytes_of(part: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; part.total_bytes() as usize];
    assert_eq!(part.read_at(0, &mut bytes), bytes.len());
    bytes
}

fn counted(count: u8) -> Vec<u8> {
    (0..count).collect()
}

#[test]
fn parts_are_the_bytes_of_all_segments() {
    let mut input = counted(20);
    let expected = input.clone();
    for lengths in [&[20][..], &[5, 15], &[1, 2, 0, 3, 14], &[0, 20, 0]] {
        let mut places = places(lend(&mut input, lengths, Access::Read), None, Vec::new());
        for offset in 0..=20 {
            for bytes in 0..=20 - offset {
                let part = places.part(Span::input(offset, bytes), Access::Read).expect("it is there");
                assert_eq!(
                    bytes_of(&part),
                    expected[offset as usize..(offset + bytes) as usize],
                    "{lengths:?}"
                );
            }
        }
    }
}

#[test]
fn a_part_lies_within_its_place() {
    let mut input = counted(8);
    let mut output = counted(9);
    let input = lend(&mut input, &[3, 5], Access::Read);
    let output = lend(&mut output, &[9], Access::Write);
    let mut places = places(input, output, vec![0; 10]);
    for (place, bytes) in [(Place::Input, 8), (Place::Output, 9), (Place::Work, 10)] {
        assert_eq!(places.bytes_of(place), bytes);
        let mut is_part = |offset, bytes| places.part(Span { place, offset, bytes }, Access::Read).is_some();
        assert!(is_part(0, bytes) && is_part(bytes, 0) && is_part(bytes - 1, 1));
        assert!(!is_part(0, bytes + 1) && !is_part(bytes, 1) && !is_part(bytes + 1, 0));
        assert!(!is_part(1, u64::MAX) && !is_part(u64::MAX, 1) && !is_part(u64::MAX, u64::MAX));
    }
}

#[test]
fn a_place_that_was_not_given_is_empty() {
    let mut places = places(None, None, Vec::new());
    for place in [Place::Input, Place::Output, Place::Work] {
        assert_eq!(places.bytes_of(place), 0);
        assert!(places.part(Span { place, offset: 0, bytes: 0 }, Access::Read).is_some());
        assert!(places.part(Span { place, offset: 0, bytes: 1 }, Access::Read).is_none());
    }
}

#[test]
fn what_is_lent_for_reading_is_not_written() {
    let mut input = counted(8);
    let mut output = counted(8);
    let input = lend(&mut input, &[8], Access::Read);
    let output = lend(&mut output, &[4, 4], Access::Write);
    let mut places = places(input, output, vec![0; 8]);
    let mut may_write = |place| places.part(Span { place, offset: 0, bytes: 8 }, Access::Write).is_some();
    assert_eq!([Place::Input, Place::Output, Place::Work].map(&mut may_write), [false, true, true]);
    let sum = Reduction::new(Operator::Sum, Element::U8).expect("bytes have sums");
    assert!(!places.combine(Span::work(0, 8), Span::input(0, 8), true, &sum).expect("no panic"));
}

#[test]
fn a_part_that_is_written_is_the_place() {
    let mut output = vec![0; 10];
    let lent = lend(&mut output, &[3, 0, 4, 3], Access::Write);
    let mut places = places(None, lent, vec![0; 4]);
    let mut part = places.part(Span::output(2, 6), Access::Write).expect("it is there");
    assert_eq!(part.write_at(0, &[1, 2, 3, 4, 5, 6]), 6);
    let mut part = places.part(Span::work(1, 2), Access::Write).expect("it is there");
    assert_eq!(part.write_at(0, &[7, 8]), 2);
    assert_eq!(places.into_work(), [0, 7, 8, 0]);
    assert_eq!(output, [0, 0, 1, 2, 3, 4, 5, 6, 0, 0]);
}

/// Places whose input and output are divided like this; both count from 0.
fn combined(input: &[usize], output: &[usize], from_is_left: bool, with: &Reduction) -> Vec<u8> {
    let (mut from, mut into) = (counted(12), counted(12));
    let lent = lend(&mut from, input, Access::Read);
    let mut places = places(lent, lend(&mut into, output, Access::Write), Vec::new());
    assert!(places.combine(Span::input(2, 8), Span::output(4, 8), from_is_left, with).expect("no panic"));
    into
}

#[test]
fn stretches_are_combined_over_segments() {
    let sum = Reduction::new(Operator::Sum, Element::U16).expect("numbers have sums");
    let expected = [0, 1, 2, 3, 4 + 2, 5 + 3, 6 + 4, 7 + 5, 8 + 6, 9 + 7, 10 + 8, 11 + 9];
    for input in [&[12][..], &[3, 9], &[1, 4, 7]] {
        for output in [&[12][..], &[5, 7], &[4, 8], &[11, 1]] {
            assert_eq!(combined(input, output, true, &sum), expected, "{input:?} into {output:?}");
        }
    }
}

/// Left is what the program says, in one piece or several.
#[test]
fn the_order_of_operands_is_kept() {
    let left = |left: &[u8], right: &mut [u8]| right.copy_from_slice(left);
    let first = Reduction::custom(1, 2, false, left);
    for lengths in [&[12][..], &[3, 9]] {
        let of_input: Vec<u8> = (0..4).chain(2..10).collect();
        assert_eq!(combined(lengths, lengths, true, &first), of_input);
        assert_eq!(combined(lengths, lengths, false, &first), counted(12));
    }
}

#[test]
fn stretches_that_overlap_or_differ_are_not_combined() {
    let sum = Reduction::new(Operator::Sum, Element::U8).expect("bytes have sums");
    let mut places = places(None, None, counted(10));
    let mut combine = |from, into| places.combine(from, into, true, &sum).expect("no panic");
    assert!(!combine(Span::work(0, 4), Span::work(3, 4)), "they overlap");
    assert!(!combine(Span::work(3, 4), Span::work(0, 4)), "they overlap");
    assert!(!combine(Span::work(2, 4), Span::work(2, 4)), "they are the same");
    assert!(!combine(Span::work(0, 4), Span::work(4, 5)), "they are not as long");
    assert!(!combine(Span::work(0, 4), Span::work(7, 4)), "one reaches past the end");
    assert!(!combine(Span::work(u64::MAX, 4), Span::work(0, 4)), "there is no such offset");
    assert!(!combine(Span::output(0, 1), Span::work(0, 1)), "there is no output");
    assert!(combine(Span::work(0, 4), Span::work(4, 4)), "they touch");
    assert!(combine(Span::work(5, 0), Span::work(5, 0)), "nothing overlaps nothing");
    assert_eq!(places.into_work(), [0, 1, 2, 3, 4, 6, 8, 10, 8, 9]);
}

#[test]
fn no_segments_are_no_bytes() {
    assert_eq!((Memory::segments(&[]).bytes(), Memory::segments_mut([]).bytes()), (0, 0));
    assert!(Memory::segments_mut([]).is_for_writing());
}
