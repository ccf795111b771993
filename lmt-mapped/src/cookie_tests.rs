use lmt_core::mechanism::{Model, Plan, Role};
use lmt_core::shared_buffer::HEAD_BYTES;

use super::*;

const HEAD: Head = Head { arena: 7, line: 3, generation: 9, count: 1, start: 0, list_arena: 0, unused: 0 };

fn cookie(head: Head, parts: &[WirePart]) -> Cookie {
    Cookie::new(&[head.as_bytes(), parts.as_bytes()].concat()).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let parts = [[1, 2], [3, 4], [5, 6], [7, 8]];
    for count in 1..=INLINE_PARTS {
        let head = Head { count: count as u32, ..HEAD };
        let described = parse(&cookie(head, &parts[..count])).unwrap();
        assert_eq!(described.head, head);
        assert_eq!(described.inline[..count], parts[..count]);
    }
    let listed = Head { count: 100, list_arena: 8, ..HEAD };
    assert!(parse(&cookie(listed, &[[65536, 1600]])).is_some());
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(parse(&Cookie::empty()).is_none());
    assert!(parse(&cookie(Head { count: 0, ..HEAD }, &[])).is_none());
    assert!(parse(&cookie(Head { count: 2, ..HEAD }, &[[1, 2]])).is_none());
    assert!(parse(&cookie(HEAD, &[[1, 2], [3, 4]])).is_none());
    assert!(parse(&cookie(Head { count: u32::MAX, ..HEAD }, &[[1, 2]])).is_none());
    let listed = Head { count: 100, list_arena: 8, ..HEAD };
    assert!(parse(&cookie(listed, &[[65536, 1599]])).is_none(), "a list of another length");
    assert!(
        parse(&cookie(Head { count: MAX_PARTS + 1, ..listed }, &[[65536, 16 * (u64::from(MAX_PARTS) + 1)]]))
            .is_none()
    );
}

#[test]
fn pieces_must_lie_in_the_arena_and_hold_the_interval() {
    let first = HEAD_BYTES as u64;
    let whole = Interval { start: 10, end: 30 };
    let end = first + 100;
    assert!(covers(10, &[[first, 20]], whole, end));
    assert!(covers(0, &[[first, 15], [first + 50, 50]], whole, end));
    assert!(!covers(10, &[[first, 19]], whole, end), "too short");
    assert!(!covers(11, &[[first, 90]], whole, end), "begins too late");
    assert!(!covers(10, &[[first - 1, 20]], whole, end), "a lease");
    assert!(!covers(10, &[[first + 81, 20]], whole, end), "past the end");
    assert!(!covers(10, &[[u64::MAX - 1, 20]], whole, end), "wraps around");
    assert!(!covers(10, &[[first, 20], [first, u64::MAX]], whole, end));
}

#[test]
fn a_receivers_cookie_in_the_both_model_leaves_room_for_a_name() {
    let plan = Plan::new(Role::Receiver, Model::Both, Interval { start: 0, end: 6 });
    let parts = [[65536, 2], [70000, 4]];
    for count in 1..=INLINE_PARTS {
        let head = Head { count: count as u32, start: 9, ..HEAD };
        let cookie = joined([&head.as_bytes()[..SHORT_HEAD_BYTES], parts[..count].as_bytes()]);
        assert!(cookie.as_bytes().len() <= plan.cookie_bytes());
        let described = parse_short(&cookie).unwrap();
        assert_eq!((described.head, &described.inline[..count]), (head, &parts[..count]));
        // Cut anywhere, it is none.
        for bytes in 0..cookie.as_bytes().len() {
            assert!(parse_short(&Cookie::new(&cookie.as_bytes()[..bytes]).unwrap()).is_none(), "{bytes}");
        }
    }
}
