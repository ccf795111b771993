use lmt_core::buffer::Access;

use super::super::regions::Regions;
use super::super::test_double::{Double, lend, lend_pieces};
use crate::types::Uses;

use super::*;

const ON: PinCacheConfig = PinCacheConfig { max_regions: 2, max_bytes: 20_000 };

struct Owner {
    double: Double,
    device: Device,
    regions: Regions,
}

impl Owner {
    fn new(keeping: PinCacheConfig) -> Self {
        let double = Double::new();
        let device = double.device();
        let mut regions = Regions::new().expect("a table");
        regions.keep(&device, keeping);
        Self { double, device, regions }
    }

    /// Declares memory and takes it back; returns the line and generation.
    fn once(&mut self, memory: Buffer, protection: Protection) -> (u32, u32) {
        let (index, generation) =
            self.regions.create(&self.device, memory, protection, Uses::Many).expect("room");
        self.regions.destroy(&self.device, index, generation).expect("declared");
        (index, generation)
    }

    fn created(&self) -> u32 {
        self.double.state().created
    }

    fn pinned(&self) -> usize {
        self.double.state().regions.len()
    }
}

#[test]
fn nothing_is_kept_unless_asked_for() {
    let mut memory = vec![0; 4096];
    let mut owner = Owner::new(PinCacheConfig::default());
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!((owner.created(), owner.pinned()), (2, 0));
}

#[test]
fn the_same_memory_is_pinned_once_under_ever_new_generations() {
    let mut memory = vec![0; 9000];
    let mut owner = Owner::new(ON);
    let first = owner.once(lend(&mut memory, Access::Read), Protection::READ);
    let second = owner.once(lend(&mut memory, Access::Read), Protection::READ);
    assert_eq!((owner.created(), owner.pinned()), (1, 1));
    assert_ne!(first.1, second.1);
    assert!(owner.regions.look_up(first.0, first.1).is_none(), "what is kept has no line");
    // Another protection, or other pieces, are another region.
    owner.once(lend(&mut memory, Access::Write), Protection::WRITE);
    assert_eq!((owner.created(), owner.pinned()), (2, 2));
    owner.once(lend_pieces(&mut memory, &[(0, 8999)]), Protection::READ);
    assert_eq!((owner.created(), owner.pinned()), (3, 2), "the one used longest ago makes room");
    owner.once(lend(&mut memory, Access::Write), Protection::WRITE);
    assert_eq!(owner.created(), 3);
    owner.once(lend(&mut memory, Access::Read), Protection::READ);
    assert_eq!(owner.created(), 4);
    // A region for one use is never kept, nor made of one that is.
    let used = owner
        .regions
        .create(&owner.device, lend(&mut memory, Access::Read), Protection::READ, Uses::Single)
        .expect("room");
    assert_eq!(owner.created(), 5);
    owner.regions.destroy(&owner.device, used.0, used.1).expect("declared");
    assert_eq!(owner.pinned(), 2);
}

#[test]
fn bytes_are_bounded_too() {
    let mut memory = vec![0; 50_000];
    let mut owner = Owner::new(ON);
    owner.once(lend(&mut memory[..15_000], Access::Write), Protection::READ);
    owner.once(lend(&mut memory[20_000..26_000], Access::Write), Protection::READ);
    assert_eq!(owner.pinned(), 1);
    owner.once(lend(&mut memory[..30_000], Access::Write), Protection::READ);
    assert_eq!(owner.pinned(), 0, "too long for itself");
    owner.once(lend(&mut memory[..10_000], Access::Write), Protection::READ);
    owner.regions.keep(&owner.device, PinCacheConfig::default());
    assert_eq!(owner.pinned(), 0);
}

#[test]
fn what_is_forgotten_is_pinned_anew() {
    let mut memory = vec![0; 50_000];
    let base = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
    let address = memory.as_ptr().addr() + base;
    let mut owner = Owner::new(ON);
    let mut once = |owner: &mut Owner| {
        owner.once(lend(&mut memory[base + 4096..base + 3 * 4096], Access::Write), Protection::READ);
        owner.created()
    };
    assert_eq!(once(&mut owner), 1);
    let elsewhere = [(address, 4096), (address + 3 * 4096, 9000), (address + 5000, 0), (0, 1)];
    for (start, bytes) in elsewhere {
        owner.regions.forget_range(&owner.device, start, bytes);
        assert_eq!(once(&mut owner), 1, "{bytes} bytes at {start:#x} are other memory");
    }
    for (start, bytes) in
        [(address + 4096, 1), (address + 3 * 4096 - 1, 1), (0, usize::MAX), (address, 50_000)]
    {
        let before = owner.created();
        owner.regions.forget_range(&owner.device, start, bytes);
        assert_eq!(owner.pinned(), 0);
        assert_eq!(once(&mut owner), before + 1);
    }
}

#[test]
fn a_handle_tells_from_another_thread_however_often() {
    let mut memory = vec![0; 9000];
    let mut owner = Owner::new(ON);
    let kept = PinCache::new();
    owner.regions.listen(kept.clone());
    let address = memory.as_ptr().addr();
    let mut once = |owner: &mut Owner| owner.once(lend(&mut memory, Access::Write), Protection::READ);
    once(&mut owner);
    kept.forget_range(address, 0);
    kept.forget_range(address + 50_000, 1);
    once(&mut owner);
    assert_eq!(owner.created(), 1, "nothing was said of it");
    let (clone, last) = (kept.clone(), address + 8999);
    std::thread::spawn(move || clone.forget_range(last, 1)).join().expect("it ends");
    once(&mut owner);
    assert_eq!(owner.created(), 2);
    // More than are remembered one by one.
    for range in 0..100 {
        kept.forget_range(if range == 50 { address } else { 1 << 46 }, usize::MAX / 2);
    }
    once(&mut owner);
    assert_eq!(owner.created(), 3);
    // While it is declared.
    let buffer = lend(&mut memory, Access::Write);
    let (index, generation) =
        owner.regions.create(&owner.device, buffer, Protection::READ, Uses::Many).expect("room");
    assert_eq!(owner.created(), 3);
    kept.forget_range(address, 1);
    owner.regions.destroy(&owner.device, index, generation).expect("declared");
    assert_eq!(owner.pinned(), 0);
}

#[test]
fn memory_that_changes_while_it_is_declared_is_not_kept_afterwards() {
    let mut memory = vec![0; 9000];
    let mut owner = Owner::new(ON);
    let address = memory.as_ptr().addr();
    let buffer = lend(&mut memory, Access::Write);
    let (index, generation) =
        owner.regions.create(&owner.device, buffer, Protection::READ, Uses::Many).expect("room");
    owner.regions.forget_range(&owner.device, address, 1);
    owner.regions.destroy(&owner.device, index, generation).expect("declared");
    assert_eq!(owner.pinned(), 0);
}

#[test]
fn a_fork_voids_what_was_pinned_before() {
    let mut memory = vec![0; 9000];
    let mut owner = Owner::new(ON);
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!(owner.created(), 1);
    super::super::test_double::fork_and_wait();
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!((owner.created(), owner.pinned()), (2, 1));
    // And while it is declared.
    let buffer = lend(&mut memory, Access::Write);
    let (index, generation) =
        owner.regions.create(&owner.device, buffer, Protection::READ, Uses::Many).expect("room");
    super::super::test_double::fork_and_wait();
    owner.regions.destroy(&owner.device, index, generation).expect("declared");
    owner.once(lend(&mut memory, Access::Write), Protection::READ);
    assert_eq!(owner.created(), 3);
}
