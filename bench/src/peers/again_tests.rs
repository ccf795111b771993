use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// How often an attempt that never succeeds is made.
fn made(limit: Duration, pause: Duration, wanted: bool) -> u32 {
    let mut made = 0;
    let result: Result<(), u32> = tried(
        limit,
        pause,
        || wanted,
        |_| {
            made += 1;
            Err(made)
        },
    );
    assert_eq!(result, Err(made), "the last one's reason");
    made
}

#[test]
fn a_failure_is_tried_again_a_few_times() {
    assert_eq!(made(LIMIT, Duration::ZERO, true), ATTEMPTS);
}

#[test]
fn nothing_is_tried_again_that_is_not_wanted_or_too_late() {
    assert_eq!(made(LIMIT, Duration::ZERO, false), 1);
    assert_eq!(made(Duration::ZERO, Duration::ZERO, true), 1);
    assert_eq!(made(LIMIT, LIMIT, true), 1);
}

#[test]
fn a_success_is_the_end() {
    let mut lefts = Vec::new();
    let result: Result<(), ()> = tried(
        LIMIT,
        Duration::ZERO,
        || true,
        |left_s| {
            lefts.push(left_s);
            Ok(())
        },
    );
    assert_eq!((result, lefts.as_slice()), (Ok(()), &[60][..]));
}
