use loom::sync::Arc;
use loom::thread;

use super::*;

fn entry(cookie: u64) -> Entry {
    let shape = Shape { contiguous: cookie == 1, offset_in_page: cookie as u32, last_piece_bytes: 0 };
    Entry { cookie, total_bytes: cookie * 10, read: true, write: cookie == 2, single: true, shape }
}

/// A reader that looks while the line goes from one region to another sees one
/// of them whole, and only by its own generation.
#[test]
fn loom_a_line_is_seen_whole_or_not_at_all() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        slot.publish(1, &entry(1));
        let there = Arc::clone(&slot);
        let owner = thread::spawn(move || {
            there.withdraw();
            there.publish(2, &entry(2));
        });
        for generation in [1, 2] {
            if let Some(seen) = slot.look_up(generation) {
                assert_eq!(seen.entry, entry(u64::from(generation)));
            }
        }
        owner.join().expect("it ends");
        assert_eq!(slot.look_up(1), None);
        assert_eq!(slot.look_up(2).expect("published").entry, entry(2));
    });
}

/// Memory is given to another use once its region is withdrawn; who reads the
/// later content finds out by looking again.
#[test]
fn loom_later_bytes_are_never_taken_for_the_regions() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        let memory = Arc::new(AtomicU64::new(5));
        slot.publish(1, &entry(1));
        let (owners_slot, owners_memory) = (Arc::clone(&slot), Arc::clone(&memory));
        let owner = thread::spawn(move || {
            owners_slot.withdraw();
            // Relaxed: stands for the application's ordinary write.
            owners_memory.store(9, Ordering::Relaxed);
        });
        if let Some(seen) = slot.look_up(1) {
            // Relaxed: stands for the driver's copy.
            let copied = memory.load(Ordering::Relaxed);
            assert!(!slot.revalidate(&seen) || copied == 5, "later bytes were taken for the region's");
        }
        owner.join().expect("it ends");
    });
}

/// Of two that use a region up, one wins; of one that races with the owner's
/// withdrawal, none uses the next region up.
#[test]
fn loom_a_single_use_is_won_by_one() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        slot.publish(1, &entry(1));
        let there = Arc::clone(&slot);
        let use_it = |slot: &Slot| slot.look_up(1).is_some_and(|mut seen| slot.use_up(&mut seen));
        let other = thread::spawn(move || use_it(&there));
        let here = use_it(&slot);
        let there = other.join().expect("it ends");
        assert!(here ^ there, "{here} {there}");
    });
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        slot.publish(1, &entry(1));
        let there = Arc::clone(&slot);
        let user = thread::spawn(move || {
            let seen = there.look_up(1);
            seen.is_some_and(|mut seen| there.use_up(&mut seen) && there.revalidate(&seen));
        });
        slot.withdraw();
        slot.publish(2, &entry(2));
        user.join().expect("it ends");
        assert!(slot.look_up(2).is_some(), "a stale use hit the next region");
    });
}
