//! The driver's table: requests, structs, errors, by one process. What knem-check's
//! behaviours say of the stand-in is not repeated here.
#![deny(unsafe_code)]

mod raw;

use knem_stand_in::Options;
use nix::errno::Errno;
use raw::*;

const BYTES: usize = 3 * PAGE + 123;

fn info(options: Options) -> Option<[u32; 4]> {
    under(options).map(|_alone| {
        let mut it = Struct(vec![0xff; 16]);
        assert_eq!(Device::open().request(GET_INFO, &mut it), Ok(()));
        [it.at(0), it.at(4), it.at(8), it.at(12)]
    })
}

#[test]
fn info_without_an_engine() {
    assert!(info(Options::default()).is_none_or(|info| info == [0xd, 0, 0, 0]));
}

#[test]
fn info_with_an_engine() {
    assert!(info(Options::default().dma(true)).is_none_or(|info| info == [0xd, 1, 0, 0]));
}

#[test]
fn opening_can_fail() {
    if let Some(_alone) = under(Options::default().open_error(Errno::EACCES)) {
        let error = std::fs::File::open("/dev/knem").expect_err("it is not this user's");
        assert_eq!(error.raw_os_error(), Some(Errno::EACCES as i32));
        assert!(knem_stand_in::inside());
    }
}

#[test]
fn other_files_and_other_requests_are_the_kernels() {
    if let Some(_alone) = under(Options::default()) {
        assert!(std::fs::read_to_string("/proc/self/status").is_ok());
        let other = Device(std::fs::File::open("/dev/null").expect("it is there"));
        assert_eq!(other.request(GET_INFO, &mut Struct(vec![0; 16])), Err(Errno::ENOTTY));
    }
}

#[test]
fn segments_on_both_sides_and_offsets() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let pieces = [(ours.at(7000), 300), (ours.at(0), 0), (ours.at(11), 5000)];
    let cookie = device.create(&pieces, 0, READ).expect("good memory");
    let into = [(theirs.at(100), 1000), (theirs.at(0), 0), (theirs.at(2000), 3000)];
    assert_eq!(device.read(&into, (cookie, 250), PLAIN), Ok(SUCCESS));
    // So far behind the end that a sum would overflow: nothing arrives.
    assert_eq!(device.read(&into, (cookie, u64::MAX), PLAIN), Ok(SUCCESS));
    let source = ours.bytes();
    let whole = [&source[7000..7300], &source[11..5011]].concat();
    let mut expected = vec![0; BYTES];
    expected[100..1100].copy_from_slice(&whole[250..1250]);
    expected[2000..5000].copy_from_slice(&whole[1250..4250]);
    assert!(theirs.bytes() == expected);
}

#[test]
fn a_region_is_destroyed_by_the_upper_half_of_its_cookie() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, other, ours) = (Device::open(), Device::open(), Area::filled(10, 1));
    let cookie = device.create(&[ours.all()], 0, READ).expect("good memory");
    let theirs = other.create(&[ours.all()], 0, READ).expect("good memory");
    assert_eq!(device.destroy(cookie ^ (1 << 32)), Err(Errno::EINVAL));
    assert_eq!(device.destroy(cookie ^ 0x5555), Ok(()));
    assert_eq!(device.read(&[ours.all()], (cookie, 0), PLAIN), Err(Errno::EINVAL));
    assert_eq!(device.read(&[ours.all()], (theirs, 0), PLAIN), Ok(SUCCESS), "another descriptor's");
}

#[test]
fn whether_a_use_is_the_only_one_is_for_who_asks_to_say() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    const LAST: u64 = 1 << 31;
    let (device, ours, theirs) = (Device::open(), Area::filled(10, 1), Area::anonymous(10));
    let read = |cookie| device.read(&[theirs.all()], (cookie, 0), PLAIN);
    let many = device.create(&[ours.all()], 0, READ).expect("good memory");
    assert_eq!((many & LAST, read(many), read(many | LAST)), (0, Ok(SUCCESS), Ok(SUCCESS)));
    assert_eq!((read(many), device.destroy(many)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let once = device.create(&[ours.all()], SINGLE_USE, READ).expect("good memory");
    assert_eq!((once & LAST, read(once & !LAST)), (LAST, Ok(SUCCESS)));
    assert_eq!((read(once), read(once)), (Ok(SUCCESS), Err(Errno::EINVAL)));
}

#[test]
fn cookies_are_recycled() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours) = (Device::open(), Area::filled(100, 1));
    let first = device.create(&[ours.all()], 0, READ).expect("good memory");
    let second = device.create(&[ours.all()], SINGLE_USE, READ).expect("good memory");
    assert_ne!(first, second);
    device.destroy(first).expect("it is there");
    assert_eq!(device.create(&[ours.all()], 0, READ), Ok(first));
    device.read(&[ours.all()], (second, 0), PLAIN).expect("it is there");
    // The number is the same; whether it is for one use is another bit.
    assert_eq!(device.create(&[ours.all()], 0, READ), Ok(second & !(1 << 31)));
}

#[test]
fn protection_and_single_use() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::filled(100, 1), [(NOWHERE, 100)]);
    for (protection, reads, writes) in
        [(0, false, false), (READ, true, false), (WRITE, false, true), (READ | WRITE, true, true)]
    {
        let cookie = device.create(&[ours.all()], 0, protection).expect("good memory");
        let expected = |allowed| if allowed { Ok(SUCCESS) } else { Err(Errno::EACCES) };
        let local = Area::filled(10, 1);
        assert_eq!(device.read(&[local.all()], (cookie, 0), PLAIN), expected(reads));
        assert_eq!(device.write(&[local.all()], (cookie, 0), PLAIN), expected(writes));
    }
    let once = || device.create(&[ours.all()], SINGLE_USE, READ).expect("good memory");
    let gone = |cookie| assert_eq!(device.read(&[], (cookie, 0), PLAIN), Err(Errno::EINVAL));
    let cookie = once();
    assert_eq!(device.write(&[ours.all()], (cookie, 0), PLAIN), Err(Errno::EACCES));
    assert_eq!(device.read(&[], (cookie, 0), PLAIN), Ok(SUCCESS));
    gone(cookie);
    let cookie = once();
    assert_eq!(device.read(&theirs, (cookie, 0), PLAIN), Ok(FAILED));
    gone(cookie);
    let (cookie, closed) = (once(), device.create(&[ours.all()], 0, 0).expect("good memory"));
    assert_eq!(device.copy((cookie, 0), (closed, 0), PLAIN), Err(Errno::EACCES));
    gone(cookie);
}

#[test]
fn bad_memory_at_creation() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours) = (Device::open(), Area::filled(3 * PAGE, 1));
    let bad = Err(Errno::EFAULT);
    assert_eq!(device.request_at(CREATE_REGION, NOWHERE), bad.map(|_: u64| ()));
    assert_eq!(device.create_raw(NOWHERE, 1, 0, READ), bad);
    assert_eq!(device.create(&[(NOWHERE, 10)], 0, READ), bad);
    assert_eq!(device.create(&[(u64::MAX - 10, 100)], 0, READ), bad);
    assert_eq!(device.create(&[ours.all(), (NOWHERE, 1)], 0, READ), bad);
    assert_eq!(device.create_raw(NOWHERE, u32::MAX, 0, READ), Err(Errno::ENOMEM));
    // Where there are no bytes nothing is bad.
    assert!(device.create(&[(NOWHERE, 0)], 0, READ).is_ok());
    assert!(device.create_raw(NOWHERE, 0, 0, READ).is_ok());
    ours.protect(PAGE, PAGE, true);
    assert_eq!(device.create(&[ours.all()], 0, WRITE), bad);
    let cookie = device.create(&[ours.all()], 0, READ).expect("it can be read");
    assert_eq!(device.write(&[], (cookie, 0), PLAIN), Err(Errno::EACCES));
    ours.protect(PAGE, PAGE, false);
    assert_eq!(device.create(&[ours.all()], 0, READ), bad);
}

#[test]
fn bad_local_memory() {
    let Some(_alone) = under(Options::default().dma(true)) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::filled(3 * PAGE, 1), Area::anonymous(3 * PAGE));
    let cookie = device.create(&[ours.all()], 0, READ | WRITE).expect("good memory");
    device.map(PAGE).expect("the first");
    theirs.protect(2 * PAGE, PAGE, false);
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), PLAIN), Ok(FAILED));
    let earlier = Area { address: theirs.address, bytes: 2 * PAGE };
    assert!(earlier.bytes() == pattern(1, 2 * PAGE));
    assert_eq!(device.write(&[theirs.all()], (cookie, 0), PLAIN), Err(Errno::EFAULT));
    for pinning in [DMA, PIN_LOCAL, MEMCPY_THREAD, DMA | ASYNC_DMA_COMPLETE] {
        assert_eq!(device.read(&[theirs.all()], (cookie, 0), flags(pinning)), Err(Errno::EFAULT));
    }
    theirs.protect(0, PAGE, true);
    assert_eq!(device.read(&[(theirs.address, 10)], (cookie, 0), PLAIN), Ok(FAILED));
    assert_eq!(device.write(&[(theirs.address, 10)], (cookie, 0), PLAIN), Ok(SUCCESS));
    assert_eq!(device.request_at(INLINE_COPY, NOWHERE), Err(Errno::EFAULT));
}

#[test]
fn requests_and_descriptors_that_are_none() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let ours = Area::filled(10, 1);
    for number in [0xc020_4b23, 0x8038_4b36, 0x4b10, 0x4010_4b21, 0xc008_4b22] {
        assert_eq!(Device::open().request(number, &mut Struct(vec![0; 64])), Err(Errno::ENOSYS));
    }
    assert_eq!(Device::read_only().create(&[ours.all()], 0, READ), Err(Errno::EBADF));
}

#[test]
fn offload_threads_can_be_bound() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, mask) = (Device::open(), [1_u64]);
    let address = mask.as_ptr().expose_provenance() as u64;
    let bind =
        |flags, bytes, at| device.request(BIND_OFFLOAD, &mut Struct::default().u32(flags).u32(bytes).u64(at));
    assert_eq!(bind(1, 8, address), Ok(()));
    assert_eq!(bind(2, 0, 0), Ok(()));
    assert_eq!(bind(4, 0, 0), Ok(()));
    assert_eq!(bind(1, 8, NOWHERE), Err(Errno::EFAULT));
}
