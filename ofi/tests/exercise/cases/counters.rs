//! fi_cntr(3): counters.

use std::time::{Duration, Instant};

use lmt_fi::abi::Errno;
use lmt_fi::abi::eq::WAIT_UNSPEC;

use super::{any, finish, tagged};
use crate::link::{Link, TIME_LIMIT};
use crate::side::{Ask, Side, call, close};

pub fn numbers(mut side: Side) -> Link {
    side.open(Ask::default());
    let cntr = side.open_cntr(WAIT_UNSPEC);
    let both = || (call!(cntr, ops ! read()), call!(cntr, ops ! readerr()));
    assert_eq!(both(), (0, 0));
    assert_eq!((call!(cntr, ops ! add(5)), call!(cntr, ops ! adderr(2))), (0, 0));
    assert_eq!(both(), (5, 2));
    assert_eq!((call!(cntr, ops ! set(100)), call!(cntr, ops ! seterr(7))), (0, 0));
    assert_eq!(both(), (100, 7));
    assert_eq!(close(cntr), 0);
    let mut into = [0; 4];
    side.begin(|| side.receive(&mut into, any(1, 1)));
    side.begin(|| side.send(tagged(b"once", 1, 2)));
    let (limit_ms, start) = (TIME_LIMIT.as_millis() as i32, Instant::now());
    for counter in [side.sends, side.receives] {
        assert_eq!(call!(counter, ops ! wait(1, limit_ms)), 0);
        assert_eq!(call!(counter, ops ! read()), 1);
    }
    assert!(start.elapsed() < TIME_LIMIT);
    finish(side)
}

pub fn wait(mut side: Side) -> Link {
    side.open(Ask::default());
    let start = Instant::now();
    assert_eq!(call!(side.receives, ops ! wait(1, 60)), Errno::TIMEDOUT.returned_int());
    assert!(start.elapsed() >= Duration::from_millis(55));
    side.meet();
    let mut into = [[0_u8; 4]; 10];
    if side.is_first() {
        for number in 0..10 {
            std::thread::sleep(Duration::from_millis(3));
            side.begin(|| side.send(tagged(b"tick", number, number as usize)));
        }
        side.wait_count(side.sends, 10);
    } else {
        for (number, into) in into.iter_mut().enumerate() {
            side.begin(|| side.receive(into, any(number as u64, number)));
        }
        assert_eq!(call!(side.receives, ops ! wait(10, TIME_LIMIT.as_millis() as i32)), 0);
        assert_eq!((call!(side.receives, ops ! read()), into[9]), (10, *b"tick"));
    }
    finish(side)
}

/// A change of the error value unblocks who waits.
pub fn errors(mut side: Side) -> Link {
    side.open(Ask::default());
    let cntr = side.open_cntr(WAIT_UNSPEC).expose_provenance();
    let of = |address: usize| std::ptr::with_exposed_provenance_mut::<lmt_fi::abi::eq::FidCntr>(address);
    let teller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        call!(of(cntr), ops ! adderr(1))
    });
    let start = Instant::now();
    assert_eq!(call!(of(cntr), ops ! wait(1, 20_000)), Errno::AVAIL.returned_int());
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!((teller.join().expect("no panic"), close(of(cntr))), (0, 0));
    finish(side)
}
