//! What a client of the driver must see to, with real system calls.
#![cfg(not(loom))]
#![allow(missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use knem_stand_in::Options;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::mechanism::Direction;
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;
use lmt_knem::ioctl::{Device, IoctlDriver, StatusArray, abi};
use lmt_knem::*;
use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

const PAGE: usize = 4096;

/// Memory from the kernel, page by page, for the rest of the process.
fn pages(count: usize) -> &'static mut [u8] {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping replaces nothing.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), count * PAGE, both, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: just mapped, zeroed, never unmapped as a whole, nobody else's.
    unsafe { std::slice::from_raw_parts_mut(base.cast(), count * PAGE) }
}

fn counting(count: usize) -> &'static mut [u8] {
    let memory = pages(count);
    memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    memory
}

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: it is never freed, and the tests look at it only when nothing
    // copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.unwrap()
}

/// Two openings of the driver, the second of which knows the first, or nothing
/// where there is none.
fn pair(options: Options) -> Option<(Knem, Knem)> {
    knem_stand_in::for_test(options);
    let open =
        || Knem::ioctl().map_err(|why| lmt_conformance::require::skipped("knem-ioctl", &why.to_string()));
    let (mut owner, mut other) = (open().ok()?, open().ok()?);
    let here = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    other.meet(here, owner.introduce().unwrap()).unwrap();
    Some((owner, other))
}

fn get(region: RegionCookie, bytes: usize) -> InlineCopy {
    let length = Length::Bounded(bytes as u64);
    InlineCopy { direction: Direction::Get, region, region_offset: 0, local_offset: 0, length }
}

/// Waits for a copy, with a limit.
fn end(knem: &mut Knem, copy: CopyId) -> Result<Copied, KnemError> {
    let begun = Instant::now();
    loop {
        if let Some(copied) = knem.poll(copy)? {
            return Ok(copied);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the copy does not end");
        std::thread::yield_now();
    }
}

/// Pieces of a test's memory, from each offset so many bytes.
fn lend_pieces(memory: &mut [u8], pieces: &[(usize, usize)], access: Access) -> Buffer {
    let segments: Vec<Segment> =
        pieces.iter().map(|(first, bytes)| Segment::of_mut(&mut memory[*first..first + bytes])).collect();
    // SAFETY: as in `lend`; the pieces lie side by side.
    unsafe { Buffer::new(&segments, access) }.unwrap()
}

fn gathered(memory: &[u8], pieces: &[(usize, usize)]) -> Vec<u8> {
    pieces.iter().flat_map(|(first, bytes)| &memory[*first..first + bytes]).copied().collect()
}

/// Segments that end in pieces of many lengths.
const PIECES: [&[(usize, usize)]; 9] = [
    &[(0, 4 * PAGE)],
    &[(0, 4 * PAGE + 1)],
    &[(100, 2 * PAGE)],
    &[(0, 1024)],
    &[(7, 3 * PAGE + 1017)],
    &[(0, PAGE), (2 * PAGE, 1500)],
    &[(0, PAGE), (2 * PAGE, 100), (3 * PAGE, PAGE)],
    &[(0, 2 * PAGE), (3 * PAGE, PAGE + 1024)],
    &[(0, 3 * PAGE), (4 * PAGE, 2500)],
];

/// Copies by DMA between all of [`PIECES`] and one segment, both ways, and looks
/// at each when it has ended and when another has come behind it.
fn all_arrive_in_time(owner: &mut Knem, other: &mut Knem) {
    let both = Protection::READ_WRITE;
    let (source, flush) = (counting(6), pages(2));
    let settle = owner.create_region(lend(pages(1), Access::Read), Protection::READ, Uses::Many).unwrap();
    for flags in [CopyFlags::DMA, CopyFlags::DMA | CopyFlags::DMA_ASYNC_COMPLETION] {
        for pieces in PIECES {
            let bytes: usize = pieces.iter().map(|(_, bytes)| bytes).sum();
            for (there, here) in [(pieces, &[(0, bytes)][..]), (&[(0, bytes)][..], pieces)] {
                for direction in [Direction::Get, Direction::Put] {
                    let target = pages(6);
                    let (region, local, from, to) = match direction {
                        Direction::Get => (
                            lend_pieces(source, there, Access::Write),
                            lend_pieces(target, here, Access::Write),
                            there,
                            here,
                        ),
                        Direction::Put => (
                            lend_pieces(target, there, Access::Write),
                            lend_pieces(source, here, Access::Write),
                            here,
                            there,
                        ),
                    };
                    let region = owner.create_region(region, both, Uses::Many).unwrap();
                    let copy = InlineCopy { direction, ..get(region, bytes) };
                    let id = other.start_inline_copy(local, &copy, flags).unwrap();
                    assert_eq!(end(other, id).unwrap().bytes, bytes as u64);
                    let what = format!("{direction:?} of {there:?} and {here:?}");
                    assert!(gathered(target, to) == gathered(source, from), "{what}");
                    owner.destroy_region(&region).unwrap();
                    // What were late would come now.
                    target.fill(9);
                    let id = other.start_inline_copy(lend(flush, Access::Write), &get(settle, PAGE), flags);
                    end(other, id.unwrap()).unwrap();
                    assert!(target.iter().all(|byte| *byte == 9), "{what}: late");
                }
            }
        }
    }
}

fn arrives_under(options: Options) {
    let Some((mut owner, mut other)) = pair(options) else { return };
    if !other.info().has_dma() {
        return lmt_conformance::require::skipped("knem-ioctl", "the driver has no DMA engine");
    }
    all_arrive_in_time(&mut owner, &mut other);
}

#[test]
fn a_dma_engine_that_is_late_behind_small_tails_is_left_none() {
    arrives_under(Options::default().loses_small_tails());
}

#[test]
fn what_is_small_is_the_modules_to_say() {
    for small_bytes in [2000, 4095, 5000] {
        let under = move || arrives_under(Options::default().loses_small_tails().dmamin(Some(small_bytes)));
        std::thread::spawn(under).join().unwrap();
    }
}

#[test]
fn where_it_does_not_say_the_engine_copies_nothing() {
    arrives_under(Options::default().loses_small_tails().dmamin(None));
}

#[test]
fn what_is_small_may_change_while_the_driver_is_open() {
    let Some((mut owner, mut other)) = pair(Options::default().loses_small_tails()) else { return };
    let parameter = "/sys/module/knem/parameters/dmamin";
    if std::env::var_os(knem_stand_in::ENV_REAL).is_some() {
        return lmt_conformance::require::skipped(
            "knem-ioctl",
            "a test leaves the module's parameters alone",
        );
    }
    for small_bytes in ["1024", "3000", "1500"] {
        std::fs::write(parameter, small_bytes).unwrap();
        all_arrive_in_time(&mut owner, &mut other);
    }
}

#[test]
fn asynchronous_copies_end_in_their_slots_or_at_once() {
    let Some((mut owner, mut other)) = pair(Options::default()) else { return };
    let source = counting(4);
    let region = owner.create_region(lend(source, Access::Read), Protection::READ, Uses::Many).unwrap();
    let mut in_flight = Vec::new();
    for bytes in [0, 1, 64, 65, 2 * PAGE, 4 * PAGE] {
        let target = pages(4);
        let local = lend(&mut target[..bytes], Access::Write);
        let id = other.start_inline_copy(local, &get(region, bytes), CopyFlags::MEMCPY_THREAD).unwrap();
        in_flight.push((bytes, target, id));
    }
    for (bytes, target, id) in in_flight {
        assert_eq!(end(&mut other, id).unwrap().bytes, bytes as u64);
        assert!(target[..bytes] == source[..bytes] && target[bytes..].iter().all(|byte| *byte == 0));
        assert!(matches!(other.poll(id), Err(KnemError::NoSuchCopy)));
    }
    let target = pages(1);
    let waited =
        other.inline_copy(&mut lend(target, Access::Write), &get(region, PAGE), CopyFlags::MEMCPY_THREAD);
    assert_eq!((waited.unwrap(), target[PAGE - 1]), (PAGE as u64, source[PAGE - 1]));
}

#[test]
fn regions_of_others_are_copied_into_each_other_in_the_background() {
    let Some((mut owner, mut other)) = pair(Options::default()) else { return };
    let (source, target) = (counting(3), pages(3));
    let from = owner.create_region(lend(source, Access::Read), Protection::READ, Uses::Single).unwrap();
    let to = owner.create_region(lend(target, Access::Write), Protection::WRITE, Uses::Single).unwrap();
    let copy = RegionCopy {
        source: RegionPlace { region: from, offset: 10 },
        target: RegionPlace { region: to, offset: 20 },
        length: Length::ToTheEnd,
    };
    let id = other.start_region_copy(&copy, CopyFlags::MEMCPY_THREAD).unwrap();
    assert_eq!(end(&mut other, id).unwrap().bytes, 3 * PAGE as u64 - 20);
    assert!(target[20..] == source[10..3 * PAGE - 10] && target[..20].iter().all(|byte| *byte == 0));
    let again = other.region_copy(&copy, CopyFlags::NONE);
    assert!(matches!(again, Err(KnemError::NotRegistered)), "{again:?}");
}

#[test]
fn memory_that_cannot_be_accessed_is_told() {
    let Some((mut owner, mut other)) = pair(Options::default()) else { return };
    let source = counting(4);
    let both = Protection::READ_WRITE;
    let region = owner.create_region(lend(source, Access::Write), both, Uses::Many).unwrap();
    let bad = pages(4);
    // SAFETY: one page of the test's own mapping, which is not touched again.
    let closed = unsafe { libc::mprotect(bad[2 * PAGE..].as_mut_ptr().cast(), PAGE, libc::PROT_NONE) };
    assert_eq!(closed, 0);
    let mut local = lend(bad, Access::Write);
    for (direction, flags) in [
        (Direction::Get, CopyFlags::NONE),
        (Direction::Get, CopyFlags::PIN_LOCAL),
        (Direction::Put, CopyFlags::NONE),
    ] {
        let copy = InlineCopy { direction, ..get(region, 4 * PAGE) };
        let refused = other.inline_copy(&mut local, &copy, flags);
        assert!(matches!(refused, Err(KnemError::BadMemory("local memory"))), "{direction:?} {refused:?}");
    }
    let refused = other.create_region(local, both, Uses::Many);
    assert!(matches!(refused, Err(KnemError::BadMemory("region"))), "{refused:?}");
}

#[test]
fn what_the_owner_writes_later_is_seen_though_the_memory_was_fresh() {
    let Some((mut owner, mut other)) = pair(Options::default()) else { return };
    let source = pages(2);
    let region = owner.create_region(lend(source, Access::Write), Protection::READ, Uses::Many).unwrap();
    source.fill(6);
    let target = pages(2);
    other.inline_copy(&mut lend(target, Access::Write), &get(region, 2 * PAGE), CopyFlags::NONE).unwrap();
    assert!(target.iter().all(|byte| *byte == 6));
}

/// A forked child that is killed when the test ends, however it does.
struct Child(i32);

impl Drop for Child {
    fn drop(&mut self) {
        let child = Pid::from_raw(self.0);
        nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
        assert!(matches!(waitpid(child, None), Ok(WaitStatus::Signaled(..))));
    }
}

#[test]
fn a_child_that_holds_the_descriptor_keeps_no_region() {
    let Some((mut owner, mut other)) = pair(Options::default()) else { return };
    let source = counting(1);
    let region = owner.create_region(lend(source, Access::Read), Protection::READ, Uses::Many).unwrap();
    // The array is mapped, which keeps regions too.
    let to_itself =
        owner.start_inline_copy(lend(pages(1), Access::Write), &get(region, PAGE), CopyFlags::MEMCPY_THREAD);
    end(&mut owner, to_itself.unwrap()).unwrap();
    // SAFETY: the child only waits for its end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: no memory is involved.
            unsafe { libc::pause() };
        }
    }
    assert!(child > 0, "a child can be forked");
    let _child = Child(child);
    drop(owner);
    let target = pages(1);
    let refused = other.inline_copy(&mut lend(target, Access::Write), &get(region, PAGE), CopyFlags::NONE);
    assert!(matches!(refused, Err(KnemError::NotRegistered)), "{refused:?}");
}

#[test]
fn there_is_one_status_array_and_no_use_before_it() {
    if pair(Options::default()).is_none() {
        return;
    }
    let device = Device::open(Path::new("/dev/knem")).unwrap();
    let mut copy = abi::CopyBounded { flags: abi::FLAG_MEMCPYTHREAD, ..abi::CopyBounded::default() };
    assert_eq!(device.copy(&mut copy), Err(Errno::EINVAL));
    let array = StatusArray::map(&device).unwrap();
    assert_eq!(StatusArray::map(&device).map(drop), Err(Errno::EBUSY));
    assert_eq!((array.load(0), array.load(4095), array.load(4096)), (0, 0, abi::STATUS_FAILED));
    // Taken, so the driver has none to give.
    let mut driver = IoctlDriver::with_device(device, Path::new("/dev/knem")).unwrap();
    let region = driver.create_region(lend(counting(1), Access::Read), Protection::READ, Uses::Many).unwrap();
    let local = lend(pages(1), Access::Write);
    let refused = driver.start_inline_copy(local, &get(region, PAGE), CopyFlags::MEMCPY_THREAD);
    assert!(matches!(refused, Err(KnemError::System { errno: Errno::EBUSY, .. })), "{refused:?}");
}

/// Why a driver of this kind is refused, unless there can be none of it here.
fn refusal(options: Options) -> Option<KnemError> {
    if knem_stand_in::for_test(options) {
        return Some(Knem::ioctl().map(drop).unwrap_err());
    }
    lmt_conformance::require::skipped("knem-ioctl", "only a stand-in can be of this kind");
    None
}

#[test]
fn another_version_of_the_interface_is_refused() {
    let Some(why) = refusal(Options::default().abi(0xc)) else { return };
    assert!(why.to_string().contains("0xc") && why.to_string().contains("0xd"), "{why}");
}

#[test]
fn a_device_that_may_not_be_opened_is_named() {
    let Some(why) = refusal(Options::default().open_error(Errno::EACCES)) else { return };
    assert!(why.to_string().contains("/dev/knem may not be opened") && why.errno() == libc::EACCES, "{why}");
}

#[test]
fn binding_takes_masks_and_words() {
    let Some((mut owner, _)) = pair(Options::default()) else { return };
    for binding in [Binding::Current, Binding::CurrentReversed, Binding::Custom(vec![1])] {
        owner.bind_offload(&binding).unwrap();
    }
}
