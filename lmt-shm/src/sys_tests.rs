use super::*;

#[test]
fn only_sealed_memory_of_the_right_size_is_approved() {
    let good = create(8192).unwrap();
    assert_eq!(is_sealed_memory(&good, 8192), Ok(true));
    assert_eq!(is_sealed_memory(&good, 4096), Ok(false));
    let unsealed = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    nix::unistd::ftruncate(&unsealed, 8192).unwrap();
    assert_eq!(is_sealed_memory(&unsealed, 8192), Ok(false));
    let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    assert_eq!(is_sealed_memory(&null, 0), Err(Errno::EINVAL));
    assert_eq!(nix::unistd::ftruncate(&good, 0), Err(Errno::EPERM));
}

#[test]
fn nothing_outside_the_mapping_is_reached() {
    let fd = create(8192).unwrap();
    let mapping = Mapping::new(&fd, 8192).unwrap();
    assert!(mapping.word(8184).is_some());
    for offset in [8185, 8192, 1 << 40, u64::MAX - 7, u64::MAX, 4] {
        assert!(mapping.word(offset).is_none(), "{offset}");
    }
    let mut own = [1u8; 16];
    // SAFETY: `own` outlives the buffer and is not touched meanwhile.
    let mut data =
        unsafe { Buffer::new(&[lmt_core::buffer::Segment::of_mut(&mut own)], Access::Write) }.unwrap();
    assert_eq!(mapping.copy_in(8184, &data, &mut Cursor::default(), 16), 0);
    assert_eq!(mapping.copy_out(u64::MAX, &mut data, &mut Cursor::default(), 16), 0);
    assert_eq!(mapping.copy_in(8176, &data, &mut Cursor::default(), 16), 16);
    assert_eq!(mapping.copy_out(8168, &mut data, &mut Cursor::default(), 16), 16);
    assert_eq!(own, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn memory_is_taken_and_given_back() {
    let fd = create(1 << 20).unwrap();
    let blocks = || fstat(&fd).unwrap().st_blocks * 512;
    assert_eq!(blocks(), 0);
    commit(&fd, 0..1 << 20).unwrap();
    assert_eq!(blocks(), 1 << 20);
    give_back(&fd, 4096..1 << 20).unwrap();
    assert_eq!(blocks(), 4096);
    assert!(commit(&fd, 0..(1 << 20) + 4096).is_err(), "the seals forbid growing");
}
