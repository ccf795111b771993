use super::super::test_double::{Double, OPENING, counting, get, lend, lend_pieces, pair};
use super::*;
use crate::driver::Driver;
use crate::types::CopyFlags;

#[test]
fn shapes_tell_the_pieces_that_a_driver_sees() {
    let mut memory = vec![0; 20_000];
    let page = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
    let shape = shape_of(&lend(&mut memory[page + 10..page + 4096 + 30], Access::Read));
    assert_eq!(shape, Shape { contiguous: true, offset_in_page: 10, last_piece_bytes: 30 });
    let shape = shape_of(&lend(&mut memory[page + 10..page + 40], Access::Read));
    assert_eq!(shape, Shape { contiguous: true, offset_in_page: 10, last_piece_bytes: 30 });
    let shape = shape_of(&lend(&mut memory[page..page + 8192], Access::Read));
    assert_eq!(shape, Shape { contiguous: true, offset_in_page: 0, last_piece_bytes: 4096 });
    let shape = shape_of(&lend_pieces(&mut memory, &[(page + 5, 100), (0, 0), (page + 5000, 7), (9, 0)]));
    assert_eq!(shape, Shape { contiguous: false, offset_in_page: 5, last_piece_bytes: 7 });
    let shape = shape_of(&lend_pieces(&mut memory, &[(3, 0), (page + 5, 100), (9, 0)]));
    assert_eq!(shape, Shape { contiguous: true, offset_in_page: 5, last_piece_bytes: 100 });
    assert_eq!(shape_of(&Buffer::empty(Access::Read)).last_piece_bytes, 0);
}

/// Whether a page is there, and no other process or mapping has it too
/// (/proc/PID/pagemap, bits 63 and 56). The page of zeros is never exclusive.
fn is_own_page(address: usize) -> bool {
    use std::os::unix::fs::FileExt;
    let map = std::fs::File::open("/proc/self/pagemap").expect("proc is mounted");
    let mut word = [0; 8];
    map.read_exact_at(&mut word, address as u64 / PAGE_BYTES * 8).expect("an address");
    let word = u64::from_ne_bytes(word);
    word >> 63 & 1 == 1 && word >> 56 & 1 == 1
}

#[test]
fn memory_never_written_gets_pages_of_its_own_before_it_is_pinned() {
    // Fresh from the kernel, and looked at: the page of zeros is behind it.
    let memory = memmap_anonymous(16 * 4096);
    let address = memory.as_ptr().addr();
    assert!(memory.iter().all(|byte| *byte == 0));
    assert!(!is_own_page(address + 4096), "nothing was to be seen to here");
    let driver = super::super::test_double::Double::new();
    let mut regions = Regions::new().expect("a table");
    let device = driver.device();
    let buffer = lend(&mut memory[4096 + 5..3 * 4096 + 1], Access::Write);
    regions.create(&device, buffer, Protection::READ, Uses::Many).expect("a region");
    assert!((1..4).all(|page| is_own_page(address + page * 4096)));
    assert!(!is_own_page(address) && !is_own_page(address + 4 * 4096));
    assert!(memory.iter().all(|byte| *byte == 0));
    // So does memory that is lent for reading.
    let buffer = lend(&mut memory[8 * 4096..9 * 4096], Access::Read);
    regions.create(&device, buffer, Protection::READ, Uses::Many).expect("a region");
    assert!(is_own_page(address + 8 * 4096) && !is_own_page(address + 9 * 4096));
    // What cannot be written has no other pages to get.
    static BYTES: [u8; 8192] = [3; 8192];
    let buffer = super::super::test_double::lend_for_good(&BYTES);
    regions.create(&device, buffer, Protection::READ, Uses::Many).expect("a region");
}

#[test]
fn a_line_that_has_had_all_generations_is_not_used_again() {
    let double = super::super::test_double::Double::new();
    let device = double.device();
    let mut regions = Regions::new().expect("a table");
    let mut memory = [0; 4];
    let mut once = |regions: &mut Regions| {
        let buffer = lend(&mut memory, Access::Read);
        let (index, generation) =
            regions.create(&device, buffer, Protection::READ, Uses::Many).expect("room");
        regions.destroy(&device, index, generation).expect("declared");
        (index, generation)
    };
    assert_eq!((once(&mut regions), once(&mut regions)), ((0, 1), (0, 2)));
    regions.generations[0] = u32::MAX - 1;
    assert_eq!(once(&mut regions), (0, u32::MAX));
    assert_eq!((once(&mut regions), once(&mut regions)), ((1, 1), (1, 2)));
    // When there is no other line.
    regions.own.resize_with(REGIONS as usize, || None);
    regions.free.clear();
    let none = regions.create(&device, lend(&mut memory, Access::Read), Protection::READ, Uses::Many);
    assert!(matches!(none, Err(KnemError::NumbersExhausted)), "{none:?}");
}

/// Memory straight from the kernel, for the rest of the test's process.
fn memmap_anonymous(bytes: usize) -> &'static mut [u8] {
    let flags = nix::sys::mman::MapFlags::MAP_PRIVATE | nix::sys::mman::MapFlags::MAP_ANONYMOUS;
    super::super::test_double::map(bytes, flags)
}

#[test]
fn a_full_table_says_so_and_has_room_again() {
    let double = super::super::test_double::Double::new();
    let device = double.device();
    let mut regions = Regions::new().expect("a table");
    let mut memory = [0; 4];
    let mut create = |regions: &mut Regions| {
        regions.create(&device, lend(&mut memory, Access::Read), Protection::READ, Uses::Many)
    };
    let all: Vec<(u32, u32)> = (0..REGIONS).map(|_| create(&mut regions).expect("room")).collect();
    let full = create(&mut regions);
    assert!(matches!(full, Err(KnemError::TooMany { most: REGIONS, .. })), "{full:?}");
    assert_eq!(double.state().created, REGIONS);
    let (index, generation) = all[700];
    regions.destroy(&device, index, generation).expect("declared");
    assert!(matches!(regions.destroy(&device, index, generation), Err(KnemError::NotRegistered)));
    let again = create(&mut regions).expect("room");
    assert!(again.0 == 700 && again.1 != generation);
    regions.destroy_all(&device);
    assert!(double.state().regions.is_empty());
}

#[test]
fn the_number_of_a_used_up_region_is_never_destroyed_for_another() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let used = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Single).unwrap();
    other.inline_copy(&mut lend(&mut local, Access::Write), &get(used, 0, 10), CopyFlags::NONE).unwrap();
    let mut second = vec![7; 10];
    let next = owner.create_region(lend(&mut second, Access::Read), Protection::READ, Uses::Many).unwrap();
    owner.destroy_region(&used).unwrap();
    other.inline_copy(&mut lend(&mut local, Access::Write), &get(next, 0, 10), CopyFlags::NONE).unwrap();
    assert_eq!(local, [7; 10]);
}

/// A peer that holds a cookie takes the region away by a copy that says it is
/// the last.
fn take_away(double: &Double) {
    let (device, mut local) = (double.device(), vec![0; 1]);
    let number = *double.state().regions.keys().next().expect("there is one");
    let mut copy = abi::InlineCopyBounded {
        remote_cookie: u64::from(number) << 32 | abi::COOKIE_SINGLE_USE | OPENING,
        length: 1,
        ..abi::InlineCopyBounded::default()
    };
    let local = lend(&mut local, Access::Write);
    sys::inline_copy(&device, &local, 0, &mut copy).unwrap();
    assert!(!double.state().regions.contains_key(&number), "it is gone");
}

#[test]
fn the_number_of_a_region_that_was_taken_away_is_never_destroyed_for_another() {
    for keeping in [PinCacheConfig::default(), PinCacheConfig { max_regions: 4, max_bytes: 4096 }] {
        let double = Double::new();
        let (mut owner, mut other) = pair(&double);
        owner.enable_pin_cache(keeping);
        let (mut memory, mut local) = (counting(10), vec![0; 10]);
        let lost =
            owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
        take_away(&double);
        let mut second = vec![7; 10];
        let next =
            owner.create_region(lend(&mut second, Access::Read), Protection::READ, Uses::Many).unwrap();
        let refused =
            other.inline_copy(&mut lend(&mut local, Access::Write), &get(lost, 0, 10), CopyFlags::NONE);
        assert!(matches!(refused, Err(KnemError::NotRegistered)), "it leads to another: {refused:?}");
        assert_eq!(owner.destroy_region(&lost).unwrap().total_bytes(), 10);
        other.inline_copy(&mut lend(&mut local, Access::Write), &get(next, 0, 10), CopyFlags::NONE).unwrap();
        assert_eq!(local, [7; 10]);
        // Also of one that is kept.
        owner.destroy_region(&next).unwrap();
        if keeping.max_regions > 0 {
            take_away(&double);
        }
        let mut third = vec![8; 10];
        let last = owner.create_region(lend(&mut third, Access::Read), Protection::READ, Uses::Many).unwrap();
        owner.enable_pin_cache(PinCacheConfig::default());
        other.inline_copy(&mut lend(&mut local, Access::Write), &get(last, 0, 10), CopyFlags::NONE).unwrap();
        assert_eq!(local, [8; 10]);
    }
}
