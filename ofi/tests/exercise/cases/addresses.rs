//! fi_av(3): address vectors.

use std::ffi::{CStr, c_int};

use lmt_fi::abi::fabric::{AV_MAP, AV_TABLE};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::{any, finish, tagged};
use crate::link::Link;
use crate::side::{Ask, Side, call, close};

/// The indices of a table are the order of insertion, over several calls.
pub fn table(mut side: Side) -> Link {
    side.open(Ask { av_type: AV_TABLE, ..Ask::default() });
    assert_eq!((side.own, side.peer), (0, 1));
    // Each address may be inserted once, so there are more endpoints.
    let more = [0, 1].map(|_| side.open_bound());
    let names = more.map(|ep| side.name_of(ep));
    let (inserted, numbers) = side.insert_into(side.av, &names, 0);
    assert_eq!((inserted, numbers), (2, vec![2, 3]));
    let mut last = 3;
    assert_eq!(call!(side.av, ops ! remove(&raw mut last, 1, 0)), 0);
    assert_eq!(side.insert_into(side.av, &names[1..], 0), (1, vec![3]), "the lowest index that is free");
    assert_eq!(more.map(close), [0, 0]);
    side.begin(|| side.send(tagged(b"table", 1, 1)));
    let mut into = [0; 5];
    side.begin(|| side.receive(&mut into, any(1, 2)));
    let told = [side.wait().number, side.wait().number];
    assert!(told.contains(&1) && told.contains(&2) && &into == b"table");
    finish(side)
}

pub fn map(mut side: Side) -> Link {
    side.open(Ask { av_type: AV_MAP, ..Ask::default() });
    assert_ne!(side.own, side.peer);
    side.begin(|| side.send(tagged(b"map", 1, 1)));
    let mut into = [0; 3];
    side.begin(|| side.receive(&mut into, any(1, 2)));
    let told = [side.wait(), side.wait()];
    let received = told.iter().find(|told| told.number == 2).expect("a receive");
    assert_eq!((received.source, &into), (side.peer, b"map"));
    finish(side)
}

pub fn look_up(mut side: Side) -> Link {
    side.open(Ask::default());
    let name = side.name();
    let (found, bytes, whole) = side.look_up(side.own, name.len() + 9);
    assert_eq!((found, bytes, &whole), (0, name.len(), &name));
    let (_, bytes, part) = side.look_up(side.own, 4);
    assert_eq!((bytes, &part[..3]), (name.len(), &name[..3]));
    finish(side)
}

pub fn strings(mut side: Side) -> Link {
    side.open(Ask::default());
    let (name, mut text, mut bytes) = (side.name(), [0_u8; 256], 256);
    call!(side.av, ops ! straddr(name.as_ptr().cast(), text.as_mut_ptr().cast(), &raw mut bytes));
    let string = CStr::from_bytes_until_nul(&text).expect("a string").to_str().expect("text");
    assert!(string.contains("://") && bytes > string.len());
    let (mut short, mut room) = ([7_u8; 8], 5);
    call!(side.av, ops ! straddr(name.as_ptr().cast(), short.as_mut_ptr().cast(), &raw mut room));
    assert_eq!((&short[..4], &short[5..], room), (&text[..4], &[7; 3][..], bytes));
    finish(side)
}

/// With `FI_SYNC_ERR` each insertion's error is written to the context.
pub fn sync_errors(mut side: Side) -> Link {
    side.open(Ask::default());
    let (name, mut numbers, mut errors) = (side.name(), [7, 7], [7 as c_int, 7]);
    let nobody = vec![0xff; name.len()];
    let list = [name, nobody].concat();
    let inserted = call!(
        side.av,
        ops ! insert(list.as_ptr().cast(), 2, numbers.as_mut_ptr(), flags::SYNC_ERR, errors.as_mut_ptr().cast())
    );
    assert_eq!((inserted, errors[0], numbers[1]), (1, 0, ADDR_UNSPEC));
    assert_eq!(errors[1], Errno::INVAL.0);
    assert_eq!(close(side.av), Errno::BUSY.returned_int());
    finish(side)
}
