use super::*;
use crate::rival::FIRST_PAUSE;

const BYTES: u64 = 1 << 20;

/// Single messages are not timed, and a window without an end is cut.
#[test]
fn a_window_is_timed_from_the_message_that_makes_it_one() {
    let mut rivals = Rivals::default();
    for messages in 1..STREAMS_AT_ONCE {
        rivals.begin(messages);
        assert!(rivals.timed.is_none());
    }
    rivals.end(STREAMS_AT_ONCE - 2, BYTES);
    let left = |rivals: &Rivals| rivals.orders.of(BYTES).left;
    assert_eq!(left(&rivals), FIRST_PAUSE);
    rivals.begin(STREAMS_AT_ONCE);
    (0..MOST_MESSAGES).for_each(|_| rivals.end(10, BYTES));
    assert_eq!(left(&rivals), FIRST_PAUSE - 1);
    assert!(rivals.timed.is_some(), "the next begins where it was cut");
    rivals.end(0, BYTES);
    assert_eq!(left(&rivals), FIRST_PAUSE - 2);
    assert!(rivals.timed.is_none());
    assert!(rivals.are_streams_first(BYTES), "nothing was faster");
}
