use lmt_core::buffer::lend_mut;
use lmt_core::shared_buffer::HEAD_BYTES;

use super::*;

const ARENA_BYTES: usize = 1 << 20;

/// Copies `near` to the pieces, as a sender, or from them.
fn copy(mapping: &Mapping, near: &mut [u8], pieces: &[Piece], role: Role) -> u64 {
    let (mut here, mut there) = (Cursor::default(), Cursor::default());
    lend_mut(near, |data| mapping.copy(role, data, &mut here, pieces, &mut there, ARENA_BYTES as u64))
}

#[test]
fn what_is_copied_in_and_out_is_the_same() {
    let memory = SharedMemory::create("a test", "none", ARENA_BYTES, true).expect("there is memory").0;
    let mapping = Mapping::new(memory);
    for bytes in [1, 63, 64, 255, 256, 257, 4095, 4097, 100_001] {
        for offset in [HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + 33] {
            let first = Piece { offset: offset as u64, bytes: bytes as u64 / 2 };
            let last = Piece { offset: (offset + 200_001) as u64, bytes: (bytes - bytes / 2) as u64 };
            let mut sent: Vec<u8> = (0..bytes).map(|at| (at * 31 + offset) as u8).collect();
            let copied = copy(&mapping, &mut sent, &[first, last], Role::Sender);
            assert_eq!(copied, bytes as u64);
            let mut received = vec![0; bytes];
            let copied = copy(&mapping, &mut received, &[first, last], Role::Receiver);
            assert_eq!(copied, bytes as u64);
            assert_eq!(received, sent, "{bytes} bytes at {offset}");
        }
    }
}
