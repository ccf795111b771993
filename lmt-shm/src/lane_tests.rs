use super::*;

struct Lane(AtomicU64, AtomicU64);

impl Lane {
    fn new() -> Self {
        Self(AtomicU64::new(0), AtomicU64::new(0))
    }

    fn words(&self) -> Words<'_> {
        Words { produced: &self.0, consumed: &self.1 }
    }
}

fn tag(number: u64) -> Tag {
    Tag::new(number).unwrap()
}

#[test]
fn tags_wrap_past_zero() {
    let last = tag((1 << 40) - 1);
    assert_eq!(last.next(), tag(1));
    assert_eq!(Tag::new(0), None);
    assert_eq!(Tag::new(1 << 40), None);
}

#[test]
fn counts_wrap_unnoticed() {
    let lane = Lane::new();
    let mut sender = Producer::open(lane.words(), tag(3), 2);
    let mut receiver = Consumer::new(tag(3), 2);
    for chunk in 0..COUNT_MASK + 5 {
        assert_eq!(sender.free_buffer(0), Some((chunk % 2) as u32));
        sender.publish(lane.words());
        receiver.refresh(lane.words()).unwrap();
        assert_eq!(receiver.full_buffer(0), Some((chunk % 2) as u32));
        assert!(receiver.release(lane.words()));
        assert_eq!(receiver.full_buffer(0), None);
        sender.refresh(lane.words()).unwrap();
    }
    assert_eq!(sender.consumed(), COUNT_MASK + 5);
}

#[test]
fn counters_that_cannot_be_are_noticed() {
    let lane = Lane::new();
    let mut sender = Producer::open(lane.words(), tag(3), 2);
    let mut receiver = Consumer::new(tag(3), 2);
    for word in [0, 1, tag(3).with(1), tag(3).with(COUNT_MASK), tag(4).with(0), u64::MAX] {
        lane.1.store(word, Ordering::Relaxed);
        assert_eq!(sender.refresh(lane.words()), Err(Garbage), "{word:#x}");
    }
    for word in [tag(3).with(3), tag(3).with(COUNT_MASK)] {
        lane.0.store(word, Ordering::Relaxed);
        assert_eq!(receiver.refresh(lane.words()), Err(Garbage), "{word:#x}");
    }
    lane.0.store(tag(4).with(2), Ordering::Relaxed);
    assert_eq!(receiver.refresh(lane.words()), Ok(()));
    assert_eq!(receiver.full_buffer(0), None);
}
