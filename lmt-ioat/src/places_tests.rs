use super::*;
use lmt_core::buffer::Segment;

#[allow(unsafe_code)]
fn mapped(address: usize, bytes: usize, access: Access) -> Mapped {
    // SAFETY: no test of this file gives it to an engine.
    unsafe { Mapped::new(Segment { address, bytes }, access) }
}

#[test]
fn lists_take_what_both_places_have() {
    let mut list = CopyList::new();
    let here = Place::Mapped(mapped(1000, 10, Access::Write));
    assert_eq!(list.push(Place::Peer(5), here, 10), Ok(()));
    assert_eq!(list.push(Place::Peer(5), here, 11), Err(ListError::TooShort { bytes: 11, room: 10 }));
    assert_eq!(list.push(here, Place::Peer(u64::MAX - 3), 4), Err(ListError::TooShort { bytes: 4, room: 3 }));
    let there = region(1, u64::MAX);
    assert_eq!(list.push(there, here, 1), Err(ListError::TooShort { bytes: 1, room: 0 }));
    let read_only = Place::Mapped(mapped(1000, 10, Access::Read));
    assert_eq!(list.push(Place::Peer(5), read_only, 1), Err(ListError::ReadOnly));
    assert_eq!(list.push(read_only, Place::Peer(5), 0), Ok(()));
    assert_eq!((list.copies().len(), list.total_bytes()), (1, 10));
}

#[test]
fn sums_that_overflow_are_refused() {
    let mut list = CopyList::new();
    let far = |number| region(number, 0);
    assert_eq!(list.push(far(1), far(2), u64::MAX), Ok(()));
    assert_eq!(list.push(far(3), far(4), 1), Err(ListError::TooMany));
    assert_eq!(list.copies().len(), 1);
}

#[test]
fn places_advance_within_their_memory() {
    let piece = mapped(1000, 10, Access::Read);
    assert_eq!(piece.advanced(4), Some(mapped(1004, 6, Access::Read)));
    assert_eq!(piece.advanced(11), None);
    assert_eq!(piece.shortened(3), mapped(1000, 3, Access::Read));
    assert_eq!(piece.shortened(30), piece);
    assert_eq!(Place::Peer(u64::MAX).advanced(1), None);
    let there = region(7, 3);
    assert_eq!(there.advanced(2), Some(region(7, 5)));
    assert_eq!(Place::Mapped(piece).advanced(10), Some(Place::Mapped(mapped(1010, 0, Access::Read))));
}

fn region(number: u32, offset: u64) -> Place {
    let owner = lmt_core::identity::EndpointId::from_bytes([0; 16]);
    Place::Region { cookie: RegionCookie::new(owner, number, 1), offset }
}
