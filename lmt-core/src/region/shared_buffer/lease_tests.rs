use super::*;

#[test]
fn what_was_closed_is_never_taken() {
    let word = LeaseWord::new();
    assert!(!word.take(1), "never opened");
    word.open(1);
    assert!(!word.take(2), "another generation");
    assert_eq!(word.close(1), LeaseUse::Yes);
    assert!(!word.take(1));
    word.open(2);
    assert!(!word.take(1), "one of before");
    assert!(word.take(2));
    assert!(!word.take(2), "once only");
}

#[test]
fn what_was_taken_is_busy_until_it_is_done() {
    let word = LeaseWord::new();
    word.open(7);
    assert!(word.take(7));
    assert_eq!(word.close(7), LeaseUse::No);
    assert!(!word.is_done(7));
    word.done(7);
    assert!(word.is_done(7));
    assert_eq!(word.close(7), LeaseUse::Yes);
}

#[test]
fn nonsense_keeps_the_memory() {
    let word = LeaseWord::new();
    word.open(7);
    word.0.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(word.close(7), LeaseUse::No);
    assert!(!word.is_done(7));
}
