use proptest::prelude::*;

use super::*;

const OWNER: EndpointId = EndpointId::from_bytes([7; 16]);

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.expect("a slice")
}

fn table() -> RegionTable {
    RegionTable::create(OWNER).expect("64 KiB")
}

#[test]
fn a_full_table_says_so_and_has_room_again() {
    let mut memory = [0; 4];
    let mut table = table();
    let keys: Vec<RegionKey> = (0..REGIONS)
        .map(|_| table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room"))
        .collect();
    let error = table.declare(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!(error, Err(RegionError::TooMany(REGIONS)));
    table.destroy(&keys[500]).expect("it is declared");
    assert_eq!(table.destroy(&keys[500]), Err(RegionError::NotDeclared));
    let again = table.allocate(10, Protection::READ).expect("room");
    assert_eq!((again.index, table.look_up(&keys[500]).err()), (500, Some(RegionError::NotDeclared)));
    assert!(table.shared_descriptor(&again).is_some() && table.shared_descriptor(&keys[0]).is_none());
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
    let remote = RemoteTable::attach(table.descriptor().try_clone().expect("a descriptor")).expect("a table");
    let key = table.declare(lend(&mut memory, Access::Write), Protection::READ).expect("room");
    assert!(remote.look_up(&key).is_ok());
    drop(table);
    assert_eq!(remote.look_up(&key).err(), Some(RegionError::NotDeclared));
}

#[test]
fn a_list_that_lies_about_its_length_is_refused() {
    let lies = |count| Entry {
        total_bytes: 100,
        protection: Protection::READ,
        place: Place::List { address: 0x1000, count },
    };
    let fill = |_: Segment, into: &mut Buffer| -> Result<(), RegionError> {
        let ones = vec![1; into.total_bytes() as usize];
        into.write_at(0, &ones);
        Ok(())
    };
    for count in [0, 1, 7, LIST_MAX, LIST_MAX + 1, u64::MAX] {
        assert_eq!(fetch_list(&lies(count), fill), Err(RegionError::NotDeclared), "{count}");
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
        let remote = RemoteTable::attach(table.descriptor().try_clone()?).expect("a table");
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
            prop_assert!(entry.allows(Direction::Get, 0, key.total_bytes()).is_ok());
            prop_assert!(entry.allows(Direction::Get, 1, key.total_bytes()).is_err());
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
                prop_assert_eq!(table.look_up(&key).err(), Some(RegionError::NotDeclared));
                // The owner's id is what chooses the table.
                let here = RegionKey { owner: OWNER, ..key };
                if !current.contains(&here) {
                    prop_assert_eq!(remote.look_up(&key).err(), Some(RegionError::NotDeclared));
                }
            }
        }
    }
}
