//! The status array, asynchronous copies, DMA, and how long pages live.
#![deny(unsafe_code)]

mod raw;

use std::io::Read;

use knem_stand_in::Options;
use nix::errno::Errno;
use raw::*;

const BYTES: usize = 2 * PAGE + 100;

#[test]
fn the_status_array_is_needed_and_bounded() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let cookie = device.create(&[ours.all()], 0, READ).expect("good memory");
    let ask = |index| device.read(&[theirs.all()], (cookie, 0), How { flags: MEMCPY_THREAD, index });
    for asynchronous in [ASYNC_DMA_COMPLETE, MEMCPY_THREAD] {
        assert_eq!(device.read(&[], (cookie, 0), flags(asynchronous)), Err(Errno::EINVAL));
    }
    let other = Device::open();
    assert_eq!(other.map(3 * PAGE).map(drop), Err(Errno::EINVAL));
    device.map(PAGE).expect("the first");
    assert_eq!(device.map(PAGE).map(drop), Err(Errno::EBUSY));
    assert_eq!(ask(4096), Err(Errno::EINVAL));
    assert_eq!(ask(4095), Ok(PENDING));
}

#[test]
fn who_reads_the_descriptor_first_maps_no_status_array() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let read = |device: &Device| (&device.0).read(&mut [0; 8]).expect("the stand-in's");
    // By itself, and through another descriptor of the same description.
    let (device, shared) = (Device::open(), Device::open());
    read(&device);
    assert_eq!(device.map(PAGE).map(drop), Err(Errno::EINVAL));
    read(&Device(shared.0.try_clone().expect("a descriptor")));
    assert_eq!(shared.map(PAGE).map(drop), Err(Errno::EINVAL));
    // Others are not concerned, nor are reads afterwards.
    let good = Device::open();
    let (ours, theirs) = (Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let cookie = good.create(&[ours.all()], 0, READ).expect("good memory");
    let slots = good.map(PAGE).expect("the first");
    read(&good);
    assert_eq!(good.read(&[theirs.all()], (cookie, 0), flags(MEMCPY_THREAD)), Ok(PENDING));
    until("completion", || slots.slot(0) == SUCCESS as u8);
}

#[test]
fn asynchronous_copies_are_pending_first() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let device = Device::open();
    let (ours, theirs) = (Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let (cookie, slots) =
        (device.create(&[ours.all()], 0, READ).expect("good memory"), device.map(64).expect("the first"));
    let how = How { flags: MEMCPY_THREAD, index: 7 };
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), how), Ok(PENDING));
    until("completion", || slots.slot(7) == SUCCESS as u8);
    assert!(theirs.bytes() == pattern(1, BYTES));
    assert_eq!(slots.bytes().iter().filter(|status| **status != 0).count(), 1);
}

#[test]
fn asynchronous_copies_outlive_their_region_and_memory() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let device = Device::open();
    let (ours, theirs) = (Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let target = Area::anonymous(BYTES);
    let cookie = device.create(&[ours.all()], SINGLE_USE, READ).expect("good memory");
    let (to, slots) =
        (device.create(&[target.all()], 0, WRITE).expect("good memory"), device.map(64).expect("the first"));
    let how = How { flags: MEMCPY_THREAD, index: 1 };
    assert_eq!(device.copy((cookie, 0), (to, 0), how), Ok(PENDING));
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), PLAIN), Err(Errno::EINVAL));
    ours.unmap();
    until("completion", || slots.slot(1) == SUCCESS as u8);
    assert!(target.bytes() == pattern(1, BYTES));
}

#[test]
fn short_ones_complete_at_once_and_empty_ones_never_in_current_status() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let cookie = device.create(&[ours.all()], 0, READ).expect("good memory");
    let slots = device.map(64).expect("the first");
    let how = |index| How { flags: MEMCPY_THREAD, index };
    assert_eq!(device.read(&[(theirs.address, 10)], (cookie, 0), how(1)), Ok(SUCCESS));
    assert!(theirs.bytes()[..10] == pattern(1, 10));
    assert_eq!(device.read(&[], (cookie, 0), how(2)), Ok(PENDING));
    until("completion", || slots.slot(2) == SUCCESS as u8);
    assert_eq!(slots.slot(1), PENDING as u8);
}

/// Three segments, of a page, a small one and a page, of memory here.
fn scattered(memory: &Area, small_bytes: usize) -> [(u64, usize); 3] {
    [(memory.address, PAGE), (memory.at(PAGE), small_bytes), (memory.at(2 * PAGE), PAGE)]
}

#[test]
fn an_engine_copies() {
    let Some(_alone) = under(Options::default().dma(true)) else { return };
    let (device, ours, theirs) = (Device::open(), Area::filled(BYTES, 1), Area::anonymous(BYTES));
    let halves = [(ours.address, PAGE + 1), (ours.at(PAGE + 1), BYTES - PAGE - 1)];
    let cookie = device.create(&halves, 0, READ).expect("good memory");
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), flags(DMA)), Ok(SUCCESS));
    assert!(theirs.bytes() == pattern(1, BYTES));
    let (slots, theirs) = (device.map(64).expect("the first"), Area::anonymous(BYTES));
    let at_once = flags(DMA | ASYNC_DMA_COMPLETE);
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), at_once), Ok(PENDING));
    until("completion", || slots.slot(0) == SUCCESS as u8);
    assert!(theirs.bytes() == pattern(1, BYTES));
}

/// The bytes that differ from zero after a read by DMA of so many bytes of three
/// segments, the middle one small.
fn arrived(device: &Device, cookie: u64, bytes: usize) -> (Area, Vec<usize>) {
    let theirs = Area::anonymous(bytes);
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), flags(DMA)), Ok(SUCCESS));
    let there = theirs.bytes();
    (theirs, (0..bytes).filter(|at| there[*at] != 0).collect())
}

const SMALL: usize = 1000;

#[test]
fn an_engine_is_late_where_a_copy_over_segments_ends_in_a_small_piece() {
    let Some(_alone) = under(Options::default().loses_small_tails()) else { return };
    let (device, ours) = (Device::open(), Area::anonymous(4 * PAGE));
    ours.fill(&vec![7; 4 * PAGE]);
    let cookie = device.create(&scattered(&ours, SMALL), 0, READ).expect("good memory");
    let all = |range: std::ops::Range<usize>| range.collect::<Vec<_>>();
    for (bytes, there) in [
        // The last piece is the engine's, and what it has of the others.
        (PAGE, all(0..PAGE)),
        (2 * PAGE + SMALL, all(0..2 * PAGE + SMALL)),
        // It is the processor's, and so is nothing else.
        (100, all(0..100)),
        (PAGE + 7, all(PAGE..PAGE + 7)),
        (PAGE + SMALL, all(PAGE..PAGE + SMALL)),
        (PAGE + SMALL + 1, all(PAGE..PAGE + SMALL + 1)),
    ] {
        assert_eq!(arrived(&device, cookie, bytes).1, there, "{bytes} bytes");
    }
    // With one segment on each side nothing is late, however it ends.
    let single = device.create(&[(ours.address, PAGE + 7)], 0, READ).expect("good memory");
    assert_eq!(arrived(&device, single, PAGE + 7).1, all(0..PAGE + 7));
}

#[test]
fn what_is_late_comes_with_the_next_copy_into_what_is_there_then() {
    let Some(_alone) = under(Options::default().loses_small_tails()) else { return };
    let (device, ours) = (Device::open(), Area::filled(4 * PAGE, 1));
    let cookie = device.create(&scattered(&ours, SMALL), 0, READ).expect("good memory");
    let slots = device.map(64).expect("the first");
    for (index, by) in [(0, DMA), (1, DMA | DMA_THREAD), (2, DMA_THREAD), (3, DMA | ASYNC_DMA_COMPLETE)] {
        let (theirs, how) = (Area::anonymous(PAGE + SMALL), How { flags: by, index });
        let ended = device.read(&[theirs.all()], (cookie, 0), how);
        if ended == Ok(PENDING) {
            until("completion", || slots.slot(index as usize) == SUCCESS as u8);
        }
        assert!(theirs.bytes()[..PAGE].iter().all(|byte| *byte == 0), "flags {by}");
        assert!(theirs.bytes()[PAGE..] == pattern(1, 4 * PAGE)[PAGE..PAGE + SMALL], "flags {by}");
        // Other memory is there by then.
        theirs.replace();
        theirs.fill(&[7; PAGE + SMALL]);
        // One without the engine brings nothing, nor does one that is late too.
        assert_eq!(device.read(&[(ours.at(3 * PAGE), 10)], (cookie, 0), PLAIN), Ok(SUCCESS));
        assert_eq!(theirs.bytes(), [7; PAGE + SMALL]);
        let other = Area::anonymous(PAGE);
        in_child(|| {
            let read = Device::open().read(&[other.all()], (cookie, 0), flags(DMA));
            assert_eq!(read, Ok(SUCCESS));
        });
        assert!(theirs.bytes()[..PAGE] == pattern(1, PAGE), "flags {by}");
        assert_eq!(theirs.bytes()[PAGE..], [7; SMALL], "flags {by}");
    }
}

#[test]
fn what_counts_as_small_can_be_read_and_written_meanwhile() {
    let Some(_alone) = under(Options::default().loses_small_tails().dmamin(Some(2000))) else { return };
    let parameter = "/sys/module/knem/parameters/dmamin";
    assert_eq!(std::fs::read_to_string(parameter).expect("it is there"), "2000\n");
    let (device, ours) = (Device::open(), Area::anonymous(4 * PAGE));
    ours.fill(&vec![7; 4 * PAGE]);
    let cookie = device.create(&scattered(&ours, SMALL), 0, READ).expect("good memory");
    let bytes = PAGE + SMALL + 1500;
    assert_eq!(arrived(&device, cookie, bytes).1, (PAGE..bytes).collect::<Vec<_>>());
    let opened = std::fs::File::open(parameter).expect("it is there");
    std::fs::write(parameter, "1499").expect("it can be written");
    let mut text = [0; 8];
    let length = std::os::unix::fs::FileExt::read_at(&opened, &mut text, 0).expect("as often as one likes");
    assert_eq!(&text[..length], b"1499");
    assert_eq!(arrived(&device, cookie, bytes).1, (0..bytes).collect::<Vec<_>>());
}

#[test]
fn a_parameter_can_be_hidden() {
    let Some(_alone) = under(Options::default().dma(true).dmamin(None)) else { return };
    let refused = std::fs::File::open("/sys/module/knem/parameters/dmamin").expect_err("it is not there");
    assert_eq!(refused.raw_os_error(), Some(Errno::ENOENT as i32));
}

#[test]
fn regions_keep_the_pages_that_their_owner_loses() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let device = Device::open();
    type Lose = fn(&Area);
    let ways: [Lose; 3] = [|area| area.unmap(), |area| area.discard(), |area| area.replace()];
    for lose in ways {
        let (ours, theirs) = (Area::filled(BYTES, 1), Area::anonymous(BYTES));
        let cookies = [
            device.create(&[ours.all()], 0, READ | WRITE).expect("good memory"),
            device.create(&[(ours.at(PAGE), 100)], 0, READ).expect("good memory"),
        ];
        lose(&ours);
        assert_eq!(device.read(&[theirs.all()], (cookies[0], 0), PLAIN), Ok(SUCCESS));
        assert!(theirs.bytes() == pattern(1, BYTES));
        // Both regions have the same page.
        let new = Area::filled(100, 2);
        assert_eq!(device.write(&[new.all()], (cookies[0], PAGE as u64), PLAIN), Ok(SUCCESS));
        assert_eq!(device.read(&[theirs.all()], (cookies[1], 0), PLAIN), Ok(SUCCESS));
        assert!(theirs.bytes()[..100] == pattern(2, 100));
    }
}

#[test]
fn untouched_memory_is_zeros_for_good() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let (device, ours, theirs) = (Device::open(), Area::anonymous(BYTES), Area::filled(BYTES, 2));
    ours.fill(&pattern(1, PAGE));
    let cookie = device.create(&[ours.all()], 0, READ).expect("good memory");
    ours.fill(&pattern(3, BYTES));
    assert_eq!(device.read(&[theirs.all()], (cookie, 0), PLAIN), Ok(SUCCESS));
    assert!(theirs.bytes()[..PAGE] == pattern(3, PAGE));
    assert!(theirs.bytes()[PAGE..].iter().all(|byte| *byte == 0));
}
