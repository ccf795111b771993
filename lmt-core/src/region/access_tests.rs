#![allow(unsafe_code)] // Lends the tests' own memory.

use super::*;
use crate::region::{Protection, RegionOptions, attach_shared};
use crate::vocabulary::identity::EndpointId;

/// A process whose private memory is this one's, behind a table of its own.
struct Owner {
    table: RegionTable,
    remote: RemoteTable,
}

impl Owner {
    fn new(id: u8) -> Self {
        let id = EndpointId::from_bytes([id; 16]);
        let table = RegionTable::create(id).expect("address space");
        let descriptor = table.descriptor().try_clone().expect("a descriptor");
        let remote = RemoteTable::attach(descriptor, id).expect("a table");
        Self { table, remote }
    }

    fn declare(&mut self, memory: &mut [u8], options: impl Into<RegionOptions>) -> RegionKey {
        self.table.declare(lend(&[Segment::of_mut(memory)]), options).expect("room")
    }

    fn ways(&self) -> Here<'_> {
        Here { table: &self.table, mapped: None, reads: 0 }
    }
}

fn lend(segments: &[Segment]) -> Buffer {
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { Buffer::new(segments, Access::Write) }.expect("slices")
}

fn lend_one(memory: &mut [u8]) -> Buffer {
    lend(&[Segment::of_mut(memory)])
}

/// Reaches this process's own memory as if it were another's.
struct Here<'a> {
    table: &'a RegionTable,
    mapped: Option<Arc<SharedMemory>>,
    reads: u32,
}

impl OwnerMemory for Here<'_> {
    type Error = RegionError;

    fn copy(&mut self, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, RegionError> {
        self.reads += 1;
        let theirs = lend(copy.remote);
        let (offset, at) = (copy.remote_offset, copy.local_offset);
        Ok(crate::region::memory::copy_lent(&theirs, copy.direction, offset, local, at, copy.max_bytes))
    }

    fn mapping(&mut self, key: &RegionKey, _: &Entry) -> Result<Option<Arc<SharedMemory>>, RegionError> {
        if self.mapped.is_none() {
            let descriptor = self.table.shared_descriptor(key).ok_or(RegionError::NotRegistered)?;
            let copy = descriptor.try_clone().expect("a descriptor");
            self.mapped = attach_shared(copy, key).ok().map(Arc::new);
            return Ok(None);
        }
        Ok(self.mapped.clone())
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Copies all of one region to another by pieces of at most 100 bytes.
fn copy_all<'a>(
    mut from: Part<'_, Here<'a>>,
    mut to: Part<'_, Here<'a>>,
    bytes: u64,
) -> Result<(), RegionError> {
    let (mut done, mut bounce) = (0, [0; 64]);
    let mut awaited = 0;
    while done < bytes {
        let piece = (bytes - done).min(100);
        match copy_piece(&mut from, done, &mut to, done, piece, &mut bounce)? {
            0 => {
                awaited += 1;
                assert!(awaited < 3, "each mapping is awaited once");
            }
            some => done += some,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    OwnLent,
    OwnAllocated,
    Private,
    Allocated,
}

const KINDS: [Kind; 4] = [Kind::OwnLent, Kind::OwnAllocated, Kind::Private, Kind::Allocated];

#[test]
fn every_kind_of_region_copies_to_every_kind() {
    for (source, target) in KINDS.iter().flat_map(|s| KINDS.map(|t| (*s, t))) {
        let (mut one, mut other) = (Owner::new(1), Owner::new(2));
        let (mut from, mut into) = (pattern(1000), vec![0; 1000]);
        let make = |kind, owner: &mut Owner, memory: &mut [u8], protection| match kind {
            Kind::OwnLent | Kind::Private => {
                let halves = memory.split_at_mut(333);
                let pieces = [Segment::of_mut(halves.0), Segment::of_mut(halves.1)];
                owner.table.declare(lend(&pieces), protection).expect("room")
            }
            Kind::OwnAllocated | Kind::Allocated => owner.table.allocate(1000, protection).expect("memory"),
        };
        let source_key = make(source, &mut one, &mut from, Protection::READ);
        let target_key = make(target, &mut other, &mut into, Protection::WRITE);
        if matches!(source, Kind::OwnAllocated | Kind::Allocated) {
            let filled =
                one.table.copy_as_owner(&source_key, Direction::Put, 0, &mut lend_one(&mut pattern(1000)));
            filled.expect("its owner writes it");
        }
        let mut get =
            RegionAccess::begin(&one.remote, &source_key, Direction::Get, 0, 1000).expect("allowed");
        let mut put =
            RegionAccess::begin(&other.remote, &target_key, Direction::Put, 0, 1000).expect("allowed");
        let from_part = match source {
            Kind::OwnLent | Kind::OwnAllocated => Part::Own { table: &one.table, key: &source_key },
            _ => Part::Remote { table: &one.remote, access: &mut get, ways: one.ways() },
        };
        let to_part = match target {
            Kind::OwnLent | Kind::OwnAllocated => Part::Own { table: &other.table, key: &target_key },
            _ => Part::Remote { table: &other.remote, access: &mut put, ways: other.ways() },
        };
        copy_all(from_part, to_part, 1000).unwrap_or_else(|e| panic!("{source:?} to {target:?}: {e}"));
        let mut seen = vec![0; 1000];
        let read = other.table.copy_as_owner(&target_key, Direction::Get, 0, &mut lend_one(&mut seen));
        read.expect("its owner reads it");
        assert!(seen == pattern(1000), "{source:?} to {target:?}");
    }
}

#[test]
fn a_region_may_be_copied_within_itself() {
    let mut owner = Owner::new(1);
    let mut memory = pattern(1000);
    let key = owner.declare(&mut memory, Protection::READ_WRITE);
    let mut from: Part<'_, Here<'_>> = Part::Own { table: &owner.table, key: &key };
    let mut to: Part<'_, Here<'_>> = Part::Own { table: &owner.table, key: &key };
    let copied = copy_piece(&mut from, 0, &mut to, 10, 990, &mut [0; 100]);
    assert_eq!(copied, Ok(100), "no more than fit into the bounce buffer");
    drop(owner);
    assert_eq!(memory[10..110], pattern(1000)[..100]);
}

/// Both ways show the same mapping, as a cache of mappings does: at no time
/// may one copy read and write the same bytes.
#[test]
fn another_owners_allocated_region_may_be_copied_within_itself() {
    let mut owner = Owner::new(1);
    let key = owner.table.allocate(1000, Protection::READ_WRITE).expect("memory");
    let filled = owner.table.copy_as_owner(&key, Direction::Put, 0, &mut lend_one(&mut pattern(1000)));
    filled.expect("its owner writes it");
    let descriptor = owner.table.shared_descriptor(&key).expect("it is shared").try_clone();
    let mapping = attach_shared(descriptor.expect("a descriptor"), &key).ok().map(Arc::new);
    let begin = |direction| RegionAccess::begin(&owner.remote, &key, direction, 0, 1000).expect("allowed");
    // The offsets, and how many bytes go at once of 400: 100 is what the
    // bounce buffer holds.
    for (from_at, to_at, at_once) in [(0, 10, 100), (10, 0, 100), (5, 5, 100), (0, 400, 400), (600, 200, 400)]
    {
        let (mut get, mut put) = (begin(Direction::Get), begin(Direction::Put));
        let ways = || Here { table: &owner.table, mapped: mapping.clone(), reads: 0 };
        let mut from = Part::Remote { table: &owner.remote, access: &mut get, ways: ways() };
        let mut to = Part::Remote { table: &owner.remote, access: &mut put, ways: ways() };
        let mut seen = vec![0; 1000];
        let look = |seen: &mut [u8]| {
            owner
                .table
                .copy_as_owner(&key, Direction::Get, 0, &mut lend_one(seen))
                .expect("its owner reads it");
        };
        look(&mut seen);
        seen.copy_within(from_at..from_at + at_once, to_at);
        let expected = seen.clone();
        let copied = copy_piece(&mut from, from_at as u64, &mut to, to_at as u64, 400, &mut [0; 100])
            .expect("it is there");
        assert_eq!(copied, at_once as u64, "from {from_at} to {to_at}");
        look(&mut seen);
        assert!(seen == expected, "from {from_at} to {to_at}");
    }
}

#[test]
fn a_region_that_is_gone_ends_a_copy_between_any_two_pieces() {
    let mut owner = Owner::new(1);
    let mut memory = pattern(1000);
    for direction in [Direction::Get, Direction::Put] {
        let key = owner.declare(&mut memory, Protection::READ_WRITE);
        let mut access = RegionAccess::begin(&owner.remote, &key, direction, 0, 1000).expect("allowed");
        let (mut local, mut ways) = (vec![0; 1000], owner.ways());
        let mut local = lend_one(&mut local);
        assert_eq!(access.copy(&owner.remote, &mut ways, 0, &mut local, 0, 500), Ok(true));
        owner.table.destroy(&key).expect("it is declared");
        // Its place is another's now.
        let next = owner.declare(&mut memory, Protection::READ_WRITE);
        let gone = access.copy(&owner.remote, &mut owner.ways(), 500, &mut local, 500, 500);
        assert_eq!(gone, Err(RegionError::NotRegistered));
        owner.table.destroy(&next).expect("it is declared");
    }
}

#[test]
fn a_region_destroyed_while_its_bytes_are_read_is_not_taken_for_whole() {
    /// Destroys the region in the middle of the copy.
    struct Midway<'a>(&'a mut RegionTable, RegionKey);
    impl OwnerMemory for Midway<'_> {
        type Error = RegionError;
        fn copy(&mut self, _: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, RegionError> {
            self.0.destroy(&self.1)?;
            Ok(copy.max_bytes)
        }
        fn mapping(&mut self, _: &RegionKey, _: &Entry) -> Result<Option<Arc<SharedMemory>>, RegionError> {
            Ok(None)
        }
    }
    let mut owner = Owner::new(1);
    let (mut memory, mut local) = (pattern(100), vec![0; 100]);
    let key = owner.declare(&mut memory, Protection::READ);
    let mut access = RegionAccess::begin(&owner.remote, &key, Direction::Get, 0, 100).expect("allowed");
    let mut ways = Midway(&mut owner.table, key);
    let copied = access.copy(&owner.remote, &mut ways, 0, &mut lend_one(&mut local), 0, 100);
    assert_eq!(copied, Err(RegionError::NotRegistered));
}

#[test]
fn a_long_list_is_fetched_once() {
    let mut owner = Owner::new(1);
    let mut memory = pattern(1000);
    let pieces: Vec<Segment> = memory.chunks_mut(9).map(Segment::of_mut).collect();
    let key = owner.table.declare(lend(&pieces), Protection::READ).expect("room");
    let mut seen = vec![0; 1000];
    let mut local = lend_one(&mut seen);
    let mut ways = owner.ways();
    let mut first = RegionAccess::begin(&owner.remote, &key, Direction::Get, 0, 500).expect("allowed");
    assert_eq!(first.copy(&owner.remote, &mut ways, 0, &mut local, 0, 300), Ok(true));
    assert_eq!(first.copy(&owner.remote, &mut ways, 300, &mut local, 300, 200), Ok(true));
    assert_eq!(ways.reads, 3, "the list, and two pieces");
    let mut second = RegionAccess::begin(&owner.remote, &key, Direction::Get, 500, 500).expect("allowed");
    second.set_list(Arc::clone(first.list().expect("it was fetched")));
    assert_eq!(second.copy(&owner.remote, &mut ways, 500, &mut local, 500, 500), Ok(true));
    assert_eq!(ways.reads, 4);
    drop(local);
    assert!(seen == pattern(1000));
}

#[test]
fn impossible_ranges_overflow_nothing() {
    let mut owner = Owner::new(1);
    let mut memory = pattern(100);
    let key = owner.declare(&mut memory, Protection::READ);
    for (offset, bytes) in [(u64::MAX, 1), (u64::MAX, u64::MAX), (1, u64::MAX), (101, 0), (100, 1)] {
        let expected = RegionError::OutOfBounds { offset, bytes, total_bytes: 100 };
        let begun = RegionAccess::begin(&owner.remote, &key, Direction::Get, offset, bytes);
        assert_eq!(begun.expect_err("it is too far"), expected);
        let mut access = RegionAccess::begin(&owner.remote, &key, Direction::Get, 0, 0).expect("allowed");
        let mut into = vec![0; 8];
        let copied =
            access.copy(&owner.remote, &mut owner.ways(), offset, &mut lend_one(&mut into), 0, bytes);
        assert_eq!(copied, Err(expected));
    }
}
