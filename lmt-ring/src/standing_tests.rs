use super::*;
use crate::sys::tests::lend;
use lmt_core::buffer::Access;
use lmt_core::mechanism::{Interval, Model, Role};

/// As short as what stands wherever the peer's core is.
const BYTES: u64 = 100_000;

fn whole() -> Plan {
    Plan::new(Role::Sender, Model::Stream, Interval { start: 0, end: BYTES })
}

fn begin(standing: &mut Standing, byte: u8) -> bool {
    let mut message = vec![byte; BYTES as usize];
    let all = whole();
    lend(&mut [&mut message], Access::Read, |data| standing.begin(data, &all, true))
}

/// Sends it, with so much of it written; whether it went by the place.
fn send(standing: &mut Standing, byte: u8, written: Option<u64>) -> bool {
    if !begin(standing, byte) {
        return false;
    }
    standing.set_out();
    standing.end(BYTES, written);
    assert!(!begin(standing, byte), "one at a time, until its receiver closes");
    standing.is_over();
    true
}

#[test]
fn what_comes_often_stays_in_its_place() {
    let mut standing = Standing::default();
    assert!(!send(&mut standing, 1, Some(0)) && !send(&mut standing, 1, Some(0)));
    assert!(send(&mut standing, 1, Some(BYTES)), "all of it is written the first time");
    assert!((0..10).all(|_| send(&mut standing, 1, Some(0)) && standing.stands()));
    assert!(!send(&mut standing, 2, Some(0)) && !standing.stands(), "another one");
}

#[test]
fn what_is_short_does_not_stand() {
    let mut standing = Standing::default();
    let mut short = vec![1; Mark::BYTES - 1];
    let all = whole();
    for _ in 0..10 {
        assert!(!lend(&mut [&mut short], Access::Read, |data| standing.begin(data, &all, true)));
    }
}

#[test]
fn what_has_changed_or_did_not_arrive_stands_no_more() {
    for written in [Some(BYTES), None] {
        let mut standing = Standing::default();
        let until = |standing: &mut Standing| (1..1000).find(|_| send(standing, 1, Some(0))).unwrap();
        assert_eq!(until(&mut standing), 3);
        send(&mut standing, 1, written);
        assert!(!standing.stands());
        assert!(until(&mut standing) > 3, "it is waited for longer");
    }
}

#[test]
fn what_is_too_long_ends_what_stands() {
    let mut standing = Standing::default();
    for _ in 0..4 {
        send(&mut standing, 1, Some(0));
    }
    assert!(standing.stands());
    let mut long = vec![1; BYTES as usize];
    let all = whole();
    assert!(!lend(&mut [&mut long], Access::Read, |data| standing.begin(data, &all, false)));
    assert!(!standing.stands());
}
