use super::*;
use crate::copier::Cpu;

#[test]
fn only_memory_of_the_right_size_is_mapped() {
    let create = |bytes| Mapping::create(bytes).unwrap();
    lmt_conformance::mapping::only_the_right_size_is_mapped(create, Mapping::attach);
}

#[test]
fn nothing_outside_the_mapping_is_reached() {
    let (mapping, _fd) = Mapping::create(8192).unwrap();
    assert!(mapping.word(8184).is_some());
    for offset in [8185, 8192, 1 << 40, u64::MAX - 7, u64::MAX, 4] {
        assert!(mapping.word(offset).is_none(), "{offset}");
    }
    let mut own = [1u8; 16];
    // SAFETY: `own` outlives the buffer and is not touched meanwhile.
    let mut data =
        unsafe { Buffer::new(&[lmt_core::buffer::Segment::of_mut(&mut own)], Access::Write) }.unwrap();
    let copy_in = |offset, data: &Buffer| {
        mapping.copy_in(&mut Cpu, offset, data, &mut Cursor::default(), 16).unwrap().bytes
    };
    let copy_out = |offset, data: &mut Buffer| {
        mapping.copy_out(&mut Cpu, offset, data, &mut Cursor::default(), 16).unwrap().bytes
    };
    assert_eq!(copy_in(8184, &data), 0);
    assert_eq!(copy_out(u64::MAX, &mut data), 0);
    assert_eq!(copy_in(8176, &data), 16);
    assert_eq!(copy_out(8168, &mut data), 16);
    assert_eq!(own, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn memory_is_taken_and_given_back() {
    let (mapping, fd) = Mapping::create(1 << 20).unwrap();
    let bytes = || nix::sys::stat::fstat(&fd).unwrap().st_blocks * 512;
    assert_eq!(bytes(), 0);
    mapping.commit(0..1 << 20).unwrap();
    assert_eq!(bytes(), 1 << 20);
    lmt_core::shared_memory::give_back(&fd, 4096..1 << 20).unwrap();
    assert_eq!(bytes(), 4096);
}
