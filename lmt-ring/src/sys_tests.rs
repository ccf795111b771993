use lmt_core::buffer::Segment;

use super::*;

/// Runs `with` on a buffer of these pieces.
pub(crate) fn lend<R>(pieces: &mut [&mut [u8]], access: Access, with: impl FnOnce(&mut Buffer) -> R) -> R {
    let segments: Vec<_> = pieces.iter_mut().map(|piece| Segment::of_mut(piece)).collect();
    // SAFETY: the pieces are borrowed exclusively until `with` has returned.
    let mut buffer = unsafe { Buffer::new(&segments, access) }.unwrap();
    with(&mut buffer)
}

#[test]
fn only_memory_of_the_right_size_is_mapped() {
    let create = |bytes| Mapping::create(bytes).unwrap();
    lmt_conformance::mapping::only_the_right_size_is_mapped(create, Mapping::attach);
}

#[test]
fn nothing_outside_the_mapping_is_reached() {
    let (mapping, _fd) = Mapping::create(8192).unwrap();
    let slot_bytes = size_of::<Slot>() as u64;
    assert!(mapping.slot(8192 - slot_bytes).is_some());
    for offset in [8192 - slot_bytes + 128, 8192, 1 << 40, u64::MAX - 127, u64::MAX, 64] {
        assert!(mapping.slot(offset).is_none(), "{offset}");
    }
    let mut own = [1; 16];
    lend(&mut [&mut own], Access::Write, |data| {
        for offset in [8177, 8192, u64::MAX - 15, u64::MAX] {
            assert!(!mapping.copy_in(offset, data, &mut Cursor::default(), 16), "{offset}");
            assert!(!mapping.copy_out(offset, data, &mut Cursor::default(), 16, CopyOut::Cached), "{offset}");
        }
        assert!(mapping.copy_in(8176, data, &mut Cursor::default(), 16));
    });
    assert_eq!(own, [1; 16]);
}

#[test]
fn what_goes_in_comes_out_whatever_the_pieces() {
    let (mapping, _fd) = Mapping::create(16384).unwrap();
    for bytes in [1, 63, 1023, 1024, 1025, 2048, 8191] {
        let mut sent: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect();
        let (front, back) = sent.split_at_mut(bytes / 3);
        let copied = lend(&mut [front, back], Access::Read, |data| {
            mapping.copy_in(17, data, &mut Cursor::default(), bytes as u64)
        });
        assert!(copied);
        let mut got = vec![0xee; bytes + 5];
        let (front, back) = got.split_at_mut(bytes / 2);
        let copied = lend(&mut [front, back], Access::Write, |data| {
            let way = [CopyOut::Cached, CopyOut::Streamed][bytes % 2];
            mapping.copy_out(17, data, &mut Cursor::default(), bytes as u64, way)
        });
        assert!(copied);
        assert_eq!(got[..bytes], sent);
        assert_eq!(got[bytes..], [0xee; 5]);
    }
}

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let (mapping, _fd) = Mapping::create(4096).unwrap();
    let mut own = [1; 16];
    lend(&mut [&mut own], Access::Read, |data| {
        assert!(!mapping.copy_out(0, data, &mut Cursor::default(), 16, CopyOut::Cached), "lent for reading");
        assert!(!mapping.copy_in(0, data, &mut Cursor::default(), 17), "too short");
    });
    lend(&mut [&mut own], Access::Write, |data| {
        assert!(!mapping.copy_out(0, data, &mut Cursor::default(), 17, CopyOut::Cached), "too short");
    });
}

#[test]
fn memory_is_taken_when_asked_for() {
    let (mapping, fd) = Mapping::create(1 << 20).unwrap();
    let bytes = || nix::sys::stat::fstat(&fd).unwrap().st_blocks * 512;
    assert_eq!(bytes(), 0);
    mapping.commit(4096, 8192).unwrap();
    assert_eq!(bytes(), 8192);
}
