#![allow(unsafe_code)] // loom cells stand for the buffers.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;

const TAG: u64 = 5;

struct Lane<D> {
    produced: AtomicU64,
    consumed: AtomicU64,
    slot: AtomicU64,
    buffers: [D; 2],
}

impl<D> Lane<D> {
    fn new(buffers: [D; 2]) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self { produced: zero(), consumed: zero(), slot: zero(), buffers })
    }

    fn words(&self) -> Words<'_> {
        Words { produced: &self.produced, consumed: &self.consumed }
    }
}

fn tag(number: u64) -> Tag {
    Tag::new(number).expect("a tag")
}

/// One producer, one consumer, three chunks through two buffers: no access to a
/// buffer races with another, and every chunk arrives.
#[test]
fn two_buffers_wrap_without_a_race() {
    three_chunks(1);
}

/// The same where both sides copy in the background: two buffers are filled
/// before the first is published, two emptied before the first is given back.
#[test]
fn two_buffers_under_way_at_once_do_not_race() {
    three_chunks(2);
}

fn three_chunks(most_under_way: u64) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let lane = Lane::new([UnsafeCell::new(0u64), UnsafeCell::new(0)]);
        let there = Arc::clone(&lane);
        let receiver = thread::spawn(move || receive_three(&there, most_under_way));
        let mut end = Producer::open(lane.words(), tag(TAG), 2);
        announce(&lane.slot, tag(TAG), 3);
        let mut filling = 0;
        while end.produced() < 3 {
            end.refresh(lane.words()).expect("counters that can be");
            let chunk = end.produced() + filling;
            let may_fill = filling < most_under_way && chunk < 3;
            match end.free_buffer(filling).filter(|_| may_fill) {
                Some(buffer) => {
                    lane.buffers[buffer as usize].with_mut(|p| {
                        // SAFETY: what the model checks: nobody reads it now.
                        unsafe { *p = 100 + chunk }
                    });
                    filling += 1;
                }
                None if filling > 0 => {
                    end.publish(lane.words());
                    filling -= 1;
                }
                None => thread::yield_now(),
            }
        }
        receiver.join().expect("the receiver ends");
        end.refresh(lane.words()).expect("counters that can be");
        assert_eq!(end.consumed(), 3);
    });
}

fn receive_three(there: &Lane<UnsafeCell<u64>>, most_under_way: u64) {
    let found = loop {
        match look(&there.slot, tag(TAG)) {
            Some(found) => break found,
            None => thread::yield_now(),
        }
    };
    assert_eq!(found, 3);
    let mut end = Consumer::new(tag(TAG), 2);
    let mut emptying = 0;
    while end.taken() < 3 {
        end.refresh(there.words()).expect("counters that can be");
        match end.full_buffer(emptying).filter(|_| emptying < most_under_way) {
            Some(buffer) => {
                let value = there.buffers[buffer as usize].with(|p| {
                    // SAFETY: what the model checks: nobody writes it now.
                    unsafe { *p }
                });
                assert_eq!(value, 100 + end.taken() + emptying);
                emptying += 1;
            }
            None if emptying > 0 => {
                assert!(end.release(there.words()), "nobody closes the lane");
                emptying -= 1;
            }
            None => thread::yield_now(),
        }
    }
}

/// The receiver of an aborted transfer goes on while the lane carries the next
/// one: it never counts a chunk that is not its own, and the next transfer's
/// receiver still gets all of its own.
#[test]
fn a_stale_consumer_neither_counts_nor_disturbs() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        // Atomic data: the stale receiver may read while the next transfer
        // writes, and must not count what it read.
        let lane = Lane::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let mut old = Producer::open(lane.words(), tag(TAG), 2);
        announce(&lane.slot, tag(TAG), 0);
        lane.buffers[0].store(1, Ordering::Relaxed);
        old.publish(lane.words());

        let there = Arc::clone(&lane);
        let stale = thread::spawn(move || {
            let mut end = Consumer::new(tag(TAG), 2);
            end.refresh(there.words()).expect("counters that can be");
            if let Some(buffer) = end.full_buffer(0) {
                let value = there.buffers[buffer as usize].load(Ordering::Relaxed);
                if end.release(there.words()) {
                    assert_eq!(value, 1, "a chunk of the next transfer was counted");
                }
            }
        });

        Producer::close(lane.words());
        withdraw(&lane.slot);
        let mut new = Producer::open(lane.words(), tag(TAG + 1), 2);
        announce(&lane.slot, tag(TAG + 1), 0);
        lane.buffers[0].store(2, Ordering::Relaxed);
        new.publish(lane.words());
        let mut end = Consumer::new(tag(TAG + 1), 2);
        end.refresh(lane.words()).expect("counters that can be");
        assert_eq!(end.full_buffer(0), Some(0));
        assert!(end.release(lane.words()), "the stale receiver disturbed the counter");
        new.refresh(lane.words()).expect("counters that can be");
        assert_eq!(new.consumed(), 1);
        stale.join().expect("the stale receiver ends");
        new.refresh(lane.words()).expect("undisturbed counters");
        assert_eq!(new.consumed(), 1);
    });
}

/// What the receiver counted before the lane was closed it also had read by
/// then: the sender's next writes to that buffer do not race with it.
#[test]
fn what_was_counted_was_read_before_the_close() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let lane = Lane::new([UnsafeCell::new(0u64), UnsafeCell::new(0)]);
        let mut end = Producer::open(lane.words(), tag(TAG), 2);
        end.publish(lane.words());
        let there = Arc::clone(&lane);
        let receiver = thread::spawn(move || {
            there.buffers[0].with(|p| {
                // SAFETY: what the model checks: nobody writes it now.
                unsafe { *p }
            });
            let mut end = Consumer::new(tag(TAG), 2);
            end.refresh(there.words()).expect("counters that can be");
            // Whether it is in time or late, it is an answer and no more.
            let _ = end.release(there.words());
        });
        if Producer::close(lane.words()) == tag(TAG).with(1) {
            lane.buffers[0].with_mut(|p| {
                // SAFETY: what the model checks: nobody reads it now.
                unsafe { *p = 1 }
            });
        }
        receiver.join().expect("the receiver ends");
    });
}
