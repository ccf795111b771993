use super::*;
use lmt_core::buffer::{Access, Segment};

fn buffer(sizes: &[usize]) -> Buffer {
    let list: Vec<_> =
        sizes.iter().enumerate().map(|(i, &bytes)| Segment { address: i << 20, bytes }).collect();
    // The addresses are only described here, never followed.
    Buffer::describing(&list)
}

trait Describing {
    fn describing(list: &[Segment]) -> Buffer;
}

#[allow(unsafe_code)]
impl Describing for Buffer {
    fn describing(list: &[Segment]) -> Buffer {
        // SAFETY: no test of this file reads or writes the memory.
        unsafe { Buffer::new(list, Access::Read) }.unwrap()
    }
}

#[test]
fn a_cookie_says_the_pieces_of_its_interval() {
    for segments in [2, 3, INLINE_SEGMENTS] {
        let data = buffer(&vec![100; segments]);
        let interval = Interval { start: 7, end: segments as u64 * 100 - 3 };
        let (cookie, kept) = describe(&data, interval).unwrap();
        assert!(kept.is_none());
        assert_eq!(cookie.as_bytes().len(), HEADER_BYTES + segments * SEGMENT_BYTES);
        let Some(Described::Inline { start: 7, count, segments: list }) = parse(&cookie, interval) else {
            panic!("not inline: {cookie:?}");
        };
        assert_eq!(count, segments);
        assert_eq!(list[0].address, 7);
        assert!(covers(7, &list[..count], interval));
        assert!(!covers(7, &list[..count], Interval { end: interval.end + 1, ..interval }));
        assert!(!covers(7, &list[..count], Interval { start: 6, ..interval }));
    }
}

#[test]
fn contiguous_memory_is_described_by_its_address_alone() {
    let (cookie, kept) = describe(&buffer(&[100]), Interval { start: 7, end: 90 }).unwrap();
    assert!(kept.is_none());
    assert_eq!(cookie.as_bytes().len(), BASE_BYTES);
    let interval = Interval { start: 20, end: 80 };
    let Some(Described::Inline { start: 20, count: 1, segments }) = parse(&cookie, interval) else {
        panic!("not inline: {cookie:?}");
    };
    assert_eq!(segments[0], RemoteSegment { address: 20, bytes: 60 });
    let top = Cookie::new(&u64::MAX.to_ne_bytes()).unwrap();
    let Some(Described::Inline { segments, .. }) = parse(&top, Interval { start: 0, end: 2 }) else {
        panic!("not inline: {top:?}");
    };
    assert!(!covers(0, &segments[..1], Interval { start: 0, end: 2 }), "it wraps around");
}

#[test]
fn a_long_list_is_described_by_where_it_stands() {
    let data = buffer(&[10; INLINE_SEGMENTS + 1]);
    let whole = Interval { start: 0, end: data.total_bytes() };
    let (cookie, kept) = describe(&data, whole).unwrap();
    let kept = kept.expect("a list is kept");
    assert_eq!(kept.len(), INLINE_SEGMENTS + 1);
    assert_eq!(kept[INLINE_SEGMENTS].address, (INLINE_SEGMENTS as u64) << 20);
    let Some(Described::Indirect { start: 0, address, count }) = parse(&cookie, whole) else {
        panic!("not indirect: {cookie:?}");
    };
    assert_eq!((address, count), (kept.as_ptr().addr() as u64, kept.len()));
}

#[test]
fn cookies_that_cannot_be_are_refused() {
    let whole = Interval { start: 0, end: 10 };
    let (good, _kept) = describe(&buffer(&[5, 5]), whole).unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.as_bytes().to_vec();
        bytes[at] = value;
        parse(&Cookie::new(&bytes).unwrap(), whole)
    };
    assert!(parse(&Cookie::empty(), whole).is_none());
    assert!(parse(&Cookie::new(&good.as_bytes()[..HEADER_BYTES + 15]).unwrap(), whole).is_none());
    assert!(changed(8, 3).is_none(), "a count that is not there");
    assert!(changed(12, 1).is_none(), "indirect, yet with two entries");
    assert!(changed(12, 2).is_none(), "an unknown form");
}

#[test]
fn sums_and_addresses_that_overflow_cover_nothing() {
    let huge = RemoteSegment { address: 0, bytes: u64::MAX };
    let interval = Interval { start: 0, end: 1 };
    assert!(covers(0, &[huge], interval));
    assert!(!covers(0, &[huge, huge], interval));
    assert!(!covers(0, &[RemoteSegment { address: 1, bytes: u64::MAX }], interval));
    assert!(!covers(0, &[], interval));
    assert!(covers(0, &[], Interval { start: 0, end: 0 }));
}
