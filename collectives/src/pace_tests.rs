use super::*;

const PIECE_BYTES: u64 = 32 << 10;
const FAST: Duration = Duration::from_nanos(PIECE_BYTES / 30);
const SLOWLY: Duration = Duration::from_nanos(PIECE_BYTES / 2);

/// How many of the next pieces go past the caches before one does not.
fn past(pace: &Pace) -> u32 {
    (0..).find(|_| !pace.goes_past()).expect("some time")
}

#[test]
fn what_is_fast_goes_through_the_caches() {
    let pace = Pace::default();
    for _ in 0..100 {
        assert!(!pace.goes_past());
        pace.took(PIECE_BYTES, FAST);
    }
}

#[test]
fn what_is_slow_goes_past_them_longer_and_longer() {
    let pace = Pace::default();
    let mut runs = Vec::new();
    for _ in 0..9 {
        pace.took(PIECE_BYTES, SLOWLY);
        runs.push(past(&pace));
    }
    assert_eq!(runs, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
    pace.took(PIECE_BYTES, FAST);
    assert_eq!(past(&pace), 0);
    pace.took(PIECE_BYTES, SLOWLY);
    assert_eq!(past(&pace), 16, "it was fast in between");
}

#[test]
fn after_a_fast_piece_some_are_not_timed() {
    let pace = Pace::default();
    pace.took(PIECE_BYTES, FAST);
    let sleepy = |_| std::thread::sleep(Duration::from_millis(1));
    for _ in 0..UNTIMED {
        pace.copy(PIECE_BYTES, sleepy);
        assert!(!pace.goes_past(), "nobody has looked");
    }
    pace.copy(PIECE_BYTES, sleepy);
    assert_eq!(past(&pace), 16);
    pace.copy(PIECE_BYTES, sleepy);
    assert_eq!(past(&pace), 32, "after a slow one the next is");
}

#[test]
fn short_pieces_are_not_timed() {
    let pace = Pace::default();
    let sleepy = |_| std::thread::sleep(Duration::from_millis(1));
    pace.copy(TIMED_BYTES - 1, sleepy);
    assert!(!pace.goes_past());
    pace.copy(TIMED_BYTES, sleepy);
    assert!(pace.goes_past());
    assert!(!pace.copy(TIMED_BYTES - 1, |goes_past| goes_past), "nor do they go past");
    assert!(pace.copy(TIMED_BYTES, |goes_past| goes_past));
}
