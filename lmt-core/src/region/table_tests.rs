#![allow(unsafe_code)] // Lends the tests' own memory.

use super::*;
use crate::memory::buffer::Segment;
use crate::region::memory::{LIST_MAX, fetch_list};
use crate::region::{Protection, RemoteTable};
use proptest::prelude::*;

const OWNER: EndpointId = EndpointId::from_bytes([7; 16]);

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.expect("a slice")
}

fn table() -> RegionTable {
    RegionTable::create(OWNER).expect("4 MiB of address space")
}

fn remote(table: &RegionTable) -> RemoteTable {
    RemoteTable::attach(table.descriptor().try_clone().expect("a descriptor"), OWNER).expect("a table")
}

#[test]
fn a_full_table_says_so_and_has_room_again() {
    let mut memory = [0; 4];
    let mut table = table();
    let remote = remote(&table);
    let keys: Vec<RegionKey> = (0..MAX_REGIONS)
        .map(|_| table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room"))
        .collect();
    for key in [keys[0], keys[62], keys[63], keys[64], keys[500], keys[MAX_REGIONS as usize - 1]] {
        assert!(remote.look_up(&key).is_ok(), "{key:?}");
    }
    let error = table.declare(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!(error, Err(RegionError::TooMany(MAX_REGIONS)));
    assert!(table.destroy(&keys[500]).expect("it is declared").is_some(), "the memory comes back");
    assert_eq!(table.destroy(&keys[500]).err(), Some(RegionError::NotRegistered));
    let again = table.allocate(10, Protection::READ).expect("room");
    assert_eq!(
        (again.index(), remote.look_up(&keys[500]).err()),
        (keys[500].index(), Some(RegionError::NotRegistered))
    );
    assert!(table.shared_descriptor(&again).is_some() && table.shared_descriptor(&keys[0]).is_none());
    assert!(table.destroy(&again).expect("it is declared").is_none());
}

#[test]
fn only_the_pages_of_regions_that_were_there_are_taken() {
    let mut memory = [0; 4];
    let mut table = table();
    let remote = remote(&table);
    let pages =
        |table: &RegionTable| nix::sys::stat::fstat(table.descriptor()).expect("a memfd").st_blocks / 8;
    assert_eq!(pages(&table), 1);
    // A key that was made up makes nobody touch more.
    for index in 0..=u16::MAX {
        let handle = 1 << INDEX_BITS | u64::from(index);
        assert_eq!(remote.look_up(&RegionKey::new(OWNER, handle, 4)).err(), Some(RegionError::NotRegistered));
    }
    assert_eq!(pages(&table), 1);
    for _ in 0..1000 {
        let key = table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room");
        table.destroy(&key).expect("it is declared");
    }
    assert_eq!(pages(&table), 1, "one region at a time takes one line");
    (0..200).for_each(|_| {
        table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room");
    });
    assert_eq!(pages(&table), 4);
}

#[test]
fn another_owners_table_is_refused() {
    let table = table();
    let descriptor = || table.descriptor().try_clone().expect("a descriptor");
    let stranger = EndpointId::from_bytes([8; 16]);
    let refused = RemoteTable::attach(descriptor(), stranger).expect_err("it is another's").to_string();
    assert!(refused.contains("another owner's"), "{refused}");
    let (_, empty) = SharedMemory::create("a test", "none", TABLE_BYTES, false).expect("address space");
    assert!(RemoteTable::attach(empty, OWNER).is_err(), "no table at all");
    let remote = RemoteTable::attach(descriptor(), OWNER).expect("his own");
    let head = RegionKey::new(OWNER, remote.head_bytes()[0].into(), 0);
    assert_eq!(remote.look_up(&head).err(), Some(RegionError::NotRegistered), "the head is no entry");
}

#[test]
fn a_region_of_single_use_serves_the_first_copy_that_begins() {
    let mut memory = [1; 4];
    let mut table = table();
    let remote = remote(&table);
    let declare = |table: &mut RegionTable, memory: &mut [u8]| {
        table.declare(lend(memory, Access::Write), Protection::READ.single_use()).expect("room")
    };
    let begin = |key: &RegionKey, direction, offset, bytes| {
        crate::region::RegionAccess::begin(&remote, key, direction, offset, bytes)
    };
    let key = declare(&mut table, &mut memory);
    let forbidden = begin(&key, Direction::Put, 0, 4).expect_err("it is for reading");
    assert_eq!(forbidden, RegionError::Forbidden(Direction::Put));
    assert!(matches!(begin(&key, Direction::Get, 1, 4), Err(RegionError::OutOfBounds { .. })));
    assert!(remote.look_up(&key).is_ok(), "what was refused has used nothing up");
    let first = begin(&key, Direction::Get, 4, 0).expect("a copy of no bytes");
    assert_eq!(begin(&key, Direction::Get, 0, 4).expect_err("it is used up"), RegionError::UsedUp);
    assert_eq!(begin(&key, Direction::Put, 0, 4).expect_err("it is used up"), RegionError::UsedUp);
    let mut other = [0; 4];
    let own = table.copy_own(&key, Direction::Get, 0, &mut lend(&mut other, Access::Write));
    assert_eq!(own, Err(RegionError::UsedUp), "nor may the owner by its key");
    table.copy_as_owner(&key, Direction::Get, 0, &mut lend(&mut other, Access::Write)).expect("as its owner");
    assert_eq!(other, [1; 4]);
    drop(first);
    table.destroy(&key).expect("its owner destroys it all the same");
    assert_eq!(remote.look_up(&key).err(), Some(RegionError::NotRegistered));
    let key = declare(&mut table, &mut memory);
    table.copy_own(&key, Direction::Get, 0, &mut lend(&mut other, Access::Write)).expect("the first");
    assert_eq!(begin(&key, Direction::Get, 0, 4).expect_err("it is used up"), RegionError::UsedUp);
}

/// What peers write into the table makes them fail, and nothing else.
#[test]
fn an_owner_believes_nothing_of_what_stands_in_its_table() {
    let mut memory = [1; 4];
    let mut table = table();
    let remote = remote(&table);
    let key = table.declare(lend(&mut memory, Access::Write), Protection::READ_WRITE).expect("room");
    let lie = Description {
        total_bytes: 1 << 40,
        protection: Protection::READ_WRITE,
        single_use: false,
        place: Place::One(Segment { address: 0, bytes: 1 << 40 }),
    };
    words(&table.memory, key.index()).expect("an entry").describe(key.generation(), &lie);
    let long = RegionKey::new(OWNER, key.handle(), 1 << 40);
    assert!(remote.look_up(&long).is_ok(), "the lie is there");
    let mut other = [7; 8];
    for direction in [Direction::Get, Direction::Put] {
        let copy = table.copy_own(&long, direction, 0, &mut lend(&mut other, Access::Write));
        assert_eq!(copy, Err(RegionError::NotRegistered));
        let copy = table.copy_as_owner(&key, direction, 0, &mut lend(&mut other, Access::Write));
        assert!(matches!(copy, Err(RegionError::OutOfBounds { total_bytes: 4, .. })), "{copy:?}");
    }
    table.destroy(&key).expect("its owner knows it");
    assert_eq!(memory, [1; 4]);
}

#[test]
fn no_right_or_length_is_taken_from_what_stands_in_ones_own_table() {
    let (mut memory, mut other) = ([1; 4], [7; 4]);
    let mut table = table();
    let lie = |table: &RegionTable, key: &RegionKey, protection, total_bytes| {
        let place = Place::One(Segment { address: 0, bytes: 1 });
        let lie = Description { total_bytes, protection, single_use: false, place };
        words(&table.memory, key.index()).expect("an entry").describe(key.generation(), &lie);
    };
    let key = table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room");
    lie(&table, &key, Protection::WRITE, 1);
    assert_eq!(table.protection_of(&key), Ok(Protection::READ));
    let put = table.copy_own(&key, Direction::Put, 0, &mut lend(&mut other, Access::Write));
    assert_eq!(put, Err(RegionError::Forbidden(Direction::Put)));
    let long = table.begin_own(&key, Direction::Get, 1, 4).expect_err("it is too far");
    assert_eq!(long, RegionError::OutOfBounds { offset: 1, bytes: 4, total_bytes: 4 });
    table.copy_own(&key, Direction::Get, 0, &mut lend(&mut other, Access::Write)).expect("it is for reading");
    assert_eq!(other, [1; 4]);
    let once = Protection::READ.single_use();
    let key = table.declare(lend(&mut memory, Access::Write), once).expect("room");
    lie(&table, &key, Protection::READ, 4);
    let many = table.copy_own(&key, Direction::Get, 0, &mut lend(&mut other, Access::Write));
    assert_eq!(many, Err(RegionError::NotRegistered), "single use is not lifted");
}

#[test]
fn memory_lent_for_reading_is_never_written() {
    let mut memory = [1; 4];
    let mut table = table();
    let refused = table.declare(lend(&mut memory, Access::Read), Protection::WRITE);
    assert_eq!(refused, Err(RegionError::ReadOnlyMemory));
    let key = table.declare(lend(&mut memory, Access::Read), Protection::READ).expect("room");
    let mut other = [2; 4];
    let put = table.copy_as_owner(&key, Direction::Put, 0, &mut lend(&mut other, Access::Read));
    assert_eq!(put, Err(RegionError::ReadOnlyMemory));
    drop(table);
    assert_eq!(memory, [1; 4]);
}

#[test]
fn peers_see_nothing_of_a_table_that_is_gone() {
    let mut memory = [0; 4];
    let mut table = table();
    let remote = remote(&table);
    let key = table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room");
    assert!(remote.look_up(&key).is_ok());
    drop(table);
    assert_eq!(remote.look_up(&key).err(), Some(RegionError::NotRegistered));
}

#[test]
fn a_list_that_lies_about_its_length_is_refused() {
    let words = crate::region::entry::Words::new();
    let lies = |count| {
        let place = Place::List { address: 0x1000, count };
        let (protection, single_use) = (Protection::READ, false);
        words.describe(1, &Description { total_bytes: 100, protection, single_use, place });
        words.read(1).expect("it was just described")
    };
    let fill = |_: Segment, into: &mut Buffer| -> Result<(), RegionError> {
        let ones = vec![1; into.total_bytes() as usize];
        into.write_at(0, &ones);
        Ok(())
    };
    for count in [0, 1, 7, LIST_MAX, LIST_MAX + 1, u64::MAX] {
        assert_eq!(fetch_list(&lies(count), fill), Err(RegionError::NotRegistered), "{count}");
    }
}

#[derive(Clone, Debug)]
enum Act {
    Declare { bytes: usize, write: bool },
    Allocate { bytes: usize },
    Destroy { which: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..200usize, any::<bool>()).prop_map(|(bytes, write)| Act::Declare { bytes, write }),
        (0..200usize).prop_map(|bytes| Act::Allocate { bytes }),
        any::<usize>().prop_map(|which| Act::Destroy { which }),
    ]
}

proptest! {
    /// Whatever was declared and destroyed before: the keys that are current
    /// name their regions, and no other bytes name anything.
    #[test]
    fn only_current_keys_name_something(
        acts in prop::collection::vec(act(), 1..60),
        forged in prop::collection::vec(any::<[u8; RegionKey::BYTES]>(), 20),
        flips in prop::collection::vec((any::<usize>(), 0..RegionKey::BYTES * 8), 20),
    ) {
        let mut memory = [0; 200];
        let mut table = table();
        let remote = remote(&table);
        let (mut current, mut past) = (Vec::new(), Vec::new());
        for act in acts {
            match act {
                Act::Declare { bytes, write } => {
                    let buffer = lend(&mut memory[..bytes], Access::Write);
                    current.push(table.declare(buffer, Protection { read: true, write })?);
                }
                Act::Allocate { bytes } => current.push(table.allocate(bytes, Protection::READ)?),
                Act::Destroy { which } if !current.is_empty() => {
                    let key = current.swap_remove(which % current.len());
                    table.destroy(&key)?;
                    past.push(key);
                }
                Act::Destroy { .. } => {}
            }
        }
        for key in &current {
            let entry = remote.look_up(&RegionKey::from_bytes(key.to_bytes()))?;
            prop_assert_eq!(entry.total_bytes, key.total_bytes());
            prop_assert!(entry.allows(Direction::Get).is_ok());
            prop_assert!(entry.holds(0, key.total_bytes()).is_ok());
            prop_assert!(entry.holds(1, key.total_bytes()).is_err());
            prop_assert_eq!(table.key_of(key.handle())?, *key);
            prop_assert_eq!(remote.key_of(key.handle())?, *key);
        }
        let forged = forged.iter().map(|bytes| RegionKey::from_bytes(*bytes));
        let all: Vec<RegionKey> = current.iter().chain(&past).copied().collect();
        let flipped = flips.iter().filter(|_| !all.is_empty()).map(|(which, bit)| {
            let mut bytes = all[which % all.len()].to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            RegionKey::from_bytes(bytes)
        });
        for key in forged.chain(flipped).chain(past.iter().copied()) {
            if !current.contains(&key) {
                let gone = Some(RegionError::NotRegistered);
                prop_assert_eq!(table.begin_own(&key, Direction::Get, 0, 0).err(), gone.clone());
                prop_assert_eq!(remote.look_up(&key).err(), gone);
            }
        }
    }
}
