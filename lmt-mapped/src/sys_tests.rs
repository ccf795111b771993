#![allow(unsafe_code)]

use lmt_core::buffer::Segment;
use lmt_core::shared_buffer::HEAD_BYTES;

use super::*;

const ARENA_BYTES: usize = 1 << 20;
const WAYS: [(Role, bool); 4] =
    [(Role::Sender, false), (Role::Sender, true), (Role::Receiver, false), (Role::Receiver, true)];

const WAY_IN: Way = Way { role: Role::Sender, goes_past: false };

fn arena() -> Mapping {
    Mapping::new(SharedMemory::create("a test", "none", ARENA_BYTES, true).expect("there is memory").0)
}

fn bytes_of(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + seed) as u8).collect()
}

/// Copies `near`, as the message of a sender, to the pieces, or the other way.
fn copy(mapping: &Mapping, near: &mut [u8], pieces: &[Piece], way: Way) -> u64 {
    let (access, most_bytes) =
        (if way.role == Role::Receiver { Access::Write } else { Access::Read }, 1 << 30);
    let segment = Segment::of_mut(near);
    // SAFETY: borrowed until the end of this function, in which nobody else uses it.
    let mut data = unsafe { Buffer::new(&[segment], access) }.expect("one segment");
    let (mut here, mut there) = (Cursor::default(), Cursor::default());
    mapping.copy(way, &mut data, &mut here, pieces, &mut there, most_bytes)
}

#[test]
fn what_goes_past_the_caches_is_the_same() {
    let mapping = arena();
    for (role, goes_past) in WAYS {
        for bytes in [1, 63, 64, 255, 256, 257, 4095, 4097, 100_001] {
            for offset in [HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + 33] {
                let first = Piece { offset: offset as u64, bytes: bytes as u64 / 2 };
                let last = Piece { offset: (offset + 200_001) as u64, bytes: (bytes - bytes / 2) as u64 };
                let pieces = [first, last];
                let sent = bytes_of(bytes + offset, bytes);
                let fill = Way { role: Role::Sender, goes_past: goes_past && role == Role::Sender };
                assert_eq!(copy(&mapping, &mut sent.clone(), &pieces, fill), bytes as u64);
                let mut received = vec![0; bytes];
                let empty = Way { role: Role::Receiver, goes_past: goes_past && role == Role::Receiver };
                assert_eq!(copy(&mapping, &mut received, &pieces, empty), bytes as u64);
                assert_eq!(received, sent, "{bytes} bytes at {offset}, {role:?}, past: {goes_past}");
            }
        }
    }
}

#[test]
fn only_what_is_mapped_is_looked_at() {
    let mapping = arena();
    let whole = Piece { offset: HEAD_BYTES as u64, bytes: (ARENA_BYTES - HEAD_BYTES) as u64 };
    // A cache has room for it; a processor that cannot be asked says nothing.
    copy(&mapping, &mut bytes_of(1, ARENA_BYTES - HEAD_BYTES), &[whole], WAY_IN);
    let looks = (0..100).filter(|_| mapping.is_cold(whole) == Some(true)).count();
    assert!(looks < 50, "{looks} of 100 found it in no cache");
    for (offset, bytes) in [(0, ARENA_BYTES as u64 + 2), (u64::MAX, 2), (u64::MAX - 1, u64::MAX)] {
        assert_eq!(mapping.is_cold(Piece { offset, bytes }), None, "{offset} and {bytes}");
    }
}
