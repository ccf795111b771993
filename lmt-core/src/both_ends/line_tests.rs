use super::*;

struct Line {
    shared: AtomicU64,
    retired: AtomicU64,
}

impl Line {
    fn new() -> Self {
        Self { shared: AtomicU64::new(0), retired: AtomicU64::new(0) }
    }

    fn words(&self) -> Words<'_> {
        Words { shared: &self.shared, retired: &self.retired }
    }
}

fn opened(line: &Line, generation: u32, units: u32) -> ReceiverEnd {
    let mut front = ReceiverEnd::new(generation, units);
    front.open(line.words());
    front
}

#[test]
fn words_are_taken_apart_as_they_were_put_together() {
    for generation in [0, 1, GENERATIONS - 1] {
        for state in [State::Open, State::Joined, State::Ended, State::Closed] {
            for (front, back) in [(0, MAX_UNITS), (MAX_UNITS, MAX_UNITS), (3, 5)] {
                let shared = Shared { generation, state, front, back };
                assert_eq!(Shared::unpack(shared.pack()), shared);
            }
        }
    }
}

/// Whatever a peer writes, at whatever moment, ends in garbage or in numbers
/// that lie within the message.
#[test]
fn a_spoilt_line_is_noticed_or_harmless() {
    let mut random = 1_u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random
    };
    let (mut noticed, mut unnoticed) = (0, 0);
    for round in 0..200_000_u32 {
        let line = Line::new();
        let (generation, units) = (1 + round % 3, 64);
        let mut front = opened(&line, generation, units);
        let mut back = SenderEnd::new(generation, units);
        assert_eq!(front.claim(line.words(), |_| 8), Ok(8));
        assert_eq!(back.claim(line.words(), |_| 8), Found::Claimed(8));
        // Mostly near the truth, where lies are believed most easily.
        let flip =
            |word: &AtomicU64, bits: u64| word.store(word.load(Ordering::Relaxed) ^ bits, Ordering::Relaxed);
        flip(&line.shared, 1 << (next() >> 58) | (next() & 1) << (next() >> 58));
        flip(&line.retired, next() >> (next() >> 58));
        match back.claim(line.words(), |view| view.left()) {
            Found::Claimed(more) => assert!(more <= 56 && back.back() + more <= 56),
            Found::Ended | Found::Over | Found::Nothing => {}
        }
        match front.claim(line.words(), |view| view.left()) {
            Ok(more) => {
                assert!(8 + more <= units);
                unnoticed += 1;
            }
            Err(Garbage) => noticed += 1,
        }
        let _whole_or_garbage = front.is_whole(line.words());
        front.close(line.words());
        assert!(front.claimed_by_sender() <= units);
        let _left = back.leave(line.words());
    }
    assert!(noticed > 10_000 && unnoticed > 1000, "{noticed} noticed, {unnoticed} not");
}

#[test]
fn a_sender_that_leaves_is_told_by_a_packet() {
    let line = Line::new();
    let mut front = opened(&line, 5, 10);
    let mut back = SenderEnd::new(5, 10);
    assert_eq!(back.look(line.words()), Found::Nothing);
    assert_eq!(back.claim(line.words(), |_| 4), Found::Claimed(4));
    back.retire(line.words());
    assert!(!back.leave(line.words()));
    assert_eq!(back.claim(line.words(), |_| 4), Found::Over, "who has left does not come back");
    assert_eq!(front.claim(line.words(), |view| view.left()), Ok(6));
    assert_eq!(front.is_whole(line.words()), Ok(true));
    assert_eq!(front.end(line.words()), Ok(false));
}

#[test]
fn a_sender_that_is_there_sees_the_end_and_holds_the_line_until_it_leaves() {
    let line = Line::new();
    let mut front = opened(&line, 5, 10);
    let mut back = SenderEnd::new(5, 10);
    assert_eq!(front.claim(line.words(), |view| view.left()), Ok(10));
    assert_eq!(back.claim(line.words(), |_| 4), Found::Nothing);
    assert_eq!(front.end(line.words()), Ok(true));
    assert!(!gone(line.words(), 5));
    assert_eq!(back.claim(line.words(), |_| 4), Found::Ended);
    assert!(back.is_over() && back.leave(line.words()));
    assert!(gone(line.words(), 5) && !gone(line.words(), 6));
}

/// A line that both ends have claimed of, whose sender has copied its part.
fn retired(line: &Line) -> (ReceiverEnd, SenderEnd) {
    let mut front = opened(line, 7, 64);
    let mut back = SenderEnd::new(7, 64);
    assert_eq!(front.claim(line.words(), |_| 8), Ok(8));
    assert_eq!(back.claim(line.words(), |_| 8), Found::Claimed(8));
    back.retire(line.words());
    (front, back)
}

/// The receiver lets go of a message that fails only when its sender copies nothing any
/// more: a word that somebody else has written there must not keep it for ever.
#[test]
fn nobody_waits_for_what_a_spoilt_line_says() {
    // What the sender has copied, as a word of no message that the line ever had.
    for garbage in [0, 0x1234_5678_9abc_def0, 8 << GENERATION_SHIFT] {
        let line = Line::new();
        line.retired.store(6 << GENERATION_SHIFT | 3, Ordering::Relaxed);
        let (mut front, _back) = retired(&line);
        line.retired.store(garbage, Ordering::Relaxed);
        front.close(line.words());
        assert!(front.is_quiescent(line.words()), "{garbage:#x}");
    }
    let claim_more = |line: &Line| {
        let seen = Shared::unpack(line.shared.load(Ordering::Relaxed));
        line.shared.store(Shared { back: seen.back - 16, ..seen }.pack(), Ordering::Relaxed);
    };
    // More than the sender has claimed: it finds that, and leaves.
    let line = Line::new();
    let (mut front, mut back) = retired(&line);
    claim_more(&line);
    assert_eq!(back.claim(line.words(), |_| 8), Found::Over);
    assert!(!back.leave(line.words()));
    front.close(line.words());
    assert!(front.is_quiescent(line.words()), "the sender has left");
    // The same, but the receiver closes before the sender looks.
    let line = Line::new();
    let (mut front, mut back) = retired(&line);
    claim_more(&line);
    front.close(line.words());
    assert!(!front.is_quiescent(line.words()), "the sender may still copy");
    assert!(!back.leave(line.words()));
    assert!(front.is_quiescent(line.words()), "the sender has left");
    // The same when it has left.
    let line = Line::new();
    let (mut front, mut back) = retired(&line);
    assert!(!back.leave(line.words()));
    claim_more(&line);
    front.close(line.words());
    assert!(front.is_quiescent(line.words()), "the sender was not there");
}

/// A claim in flight is waited for, whatever the line was used for before.
#[test]
fn a_claim_in_flight_is_waited_for() {
    let line = Line::new();
    line.retired.store(6 << GENERATION_SHIFT | 64, Ordering::Relaxed);
    let mut front = opened(&line, 7, 64);
    let mut back = SenderEnd::new(7, 64);
    assert_eq!(back.claim(line.words(), |_| 8), Found::Claimed(8));
    front.close(line.words());
    assert!(!front.is_quiescent(line.words()));
    back.retire(line.words());
    assert!(front.is_quiescent(line.words()));
}
