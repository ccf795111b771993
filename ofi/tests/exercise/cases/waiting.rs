//! fi_poll(3): descriptors to wait in, and poll sets.
#![allow(unsafe_code)] // poll(2).

use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::eq::{CqTaggedEntry, FidCq, PollAttr, WAIT_FD};
use lmt_fi::abi::fid::{CONTROL_GETWAIT, CONTROL_GETWAITOBJ, Fid};
use lmt_fi::abi::{Errno, flags};

use super::{any, finish, pattern, tagged};
use crate::link::{Link, TIME_LIMIT};
use crate::side::{Ask, Form, Sent, Side, call, close, zeroed};

const LIMIT_MS: c_int = TIME_LIMIT.as_millis() as c_int;

/// Whether a descriptor becomes readable in so many milliseconds.
pub fn is_readable(descriptor: c_int, timeout_ms: c_int) -> bool {
    let mut polled = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor.
    unsafe { libc::poll(&raw mut polled, 1, timeout_ms) == 1 }
}

fn wait_object<T>(side: &Side, object: *mut T) -> c_int {
    let (mut descriptor, mut kind): (c_int, c_int) = (-1, -1);
    assert_eq!(side.control(object, CONTROL_GETWAITOBJ, &raw mut kind), 0);
    assert_eq!(side.control(object, CONTROL_GETWAIT, &raw mut descriptor), 0);
    assert_eq!(kind, WAIT_FD);
    descriptor
}

fn try_wait<T>(side: &Side, object: *mut T) -> c_int {
    call!(side.fabric, ops ! trywait([object.cast::<Fid>()].as_mut_ptr(), 1))
}

/// The next completion, by blocking in poll(2) whenever that is safe.
fn block(side: &Side, descriptor: c_int) -> crate::side::Told {
    let start = Instant::now();
    loop {
        match side.read() {
            Ok(told) => return told,
            Err(error) => assert_eq!(error, Errno::AGAIN.returned()),
        }
        match try_wait(side, side.cq) {
            0 => assert!(is_readable(descriptor, LIMIT_MS), "nobody wakes it"),
            error => assert_eq!(error, Errno::AGAIN.returned_int()),
        }
        assert!(start.elapsed() < TIME_LIMIT);
    }
}

/// Quiet while nothing comes, and readable when the other process sends something.
pub fn descriptor(mut side: Side) -> Link {
    side.open(Ask { wait_object: WAIT_FD, ..Ask::default() });
    let descriptor = wait_object(&side, side.cq);
    for bytes in [4, 300_000] {
        let (text, mut into) = (pattern(bytes), vec![0; bytes]);
        side.meet();
        if side.is_first() {
            std::thread::sleep(Duration::from_millis(60));
            side.begin(|| side.send(tagged(&text, 1, 1)));
            assert_eq!(block(&side, descriptor).number, 1);
        } else {
            side.begin(|| side.receive(&mut into, any(1, 2)));
            assert_eq!(block(&side, descriptor).bytes, bytes);
            assert!(into == text);
        }
    }
    finish(side)
}

/// No wake is missed in many rounds of messages that come sooner or later.
pub fn rounds(mut side: Side) -> Link {
    side.open(Ask { wait_object: WAIT_FD, ..Ask::default() });
    let descriptor = wait_object(&side, side.cq);
    for round in 0..3000_u64 {
        let mut into = [0; 8];
        side.begin(|| side.receive(&mut into, any(round, 1)));
        if side.is_first() {
            // Sometimes the other is still awake, sometimes it sleeps.
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(round * 37 % 150) {}
            side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(&round.to_ne_bytes(), round, 0) }));
        }
        assert_eq!(block(&side, descriptor).tag, round);
        assert_eq!(into, round.to_ne_bytes());
        if !side.is_first() {
            side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(&into, round, 0) }));
        }
    }
    finish(side)
}

/// The same of a counter.
pub fn counter(mut side: Side) -> Link {
    side.open(Ask::default());
    let cntr = side.open_cntr(WAIT_FD);
    let descriptor = wait_object(&side, cntr);
    // One endpoint more, whose receives it counts.
    let (first, first_own, first_peer) = (side.ep, side.own, side.peer);
    side.ep = side.open_ep();
    assert_eq!(
        (side.bind(side.av, 0), side.bind(side.cq, flags::SEND | flags::RECV), side.bind(cntr, flags::RECV)),
        (0, 0, 0)
    );
    assert_eq!(side.enable(), 0);
    side.say(&crate::side::digits(&side.name()));
    side.peer = side.insert(&crate::side::bytes_of(&side.hear()));
    let mut into = [0; 4];
    side.begin(|| side.receive(&mut into, any(1, 1)));
    side.meet();
    if side.is_first() {
        std::thread::sleep(Duration::from_millis(40));
    }
    side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(b"wake", 1, 0) }));
    let start = Instant::now();
    while call!(cntr, ops ! read()) < 1 {
        if try_wait(&side, cntr) == 0 {
            assert!(is_readable(descriptor, LIMIT_MS), "nobody wakes it");
        }
        assert!(start.elapsed() < TIME_LIMIT);
    }
    assert_eq!(side.wait().number, 1);
    side.meet();
    assert_eq!((close(side.ep), close(cntr)), (0, 0));
    (side.ep, side.own, side.peer) = (first, first_own, first_peer);
    finish(side)
}

/// A thread that sleeps in `fi_cq_sread` is woken by what comes after another thread
/// has moved messages and has taken its doorbell.
pub fn threads(mut side: Side) -> Link {
    side.open(Ask::default());
    const ROUNDS: u64 = 40;
    let (cq, start) = (side.cq.expose_provenance(), Instant::now());
    for round in 0..ROUNDS {
        if side.is_first() {
            assert_eq!(side.hear(), "posted");
            std::thread::sleep(Duration::from_micros(5000 + round * 53));
            side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(b"x", round, 0) }));
            continue;
        }
        let mut into = [0; 1];
        side.begin(|| side.receive(&mut into, any(round, 1)));
        let sleeper = std::thread::spawn(move || {
            let (cq, mut entry): (_, CqTaggedEntry) =
                (ptr::with_exposed_provenance_mut::<FidCq>(cq), zeroed());
            let room = (&raw mut entry).cast::<c_void>();
            call!(cq, ops ! sread(room, 1, ptr::null(), LIMIT_MS))
        });
        side.say("posted");
        std::thread::sleep(Duration::from_millis(2));
        side.progress();
        assert_eq!(sleeper.join().expect("no panic"), 1);
    }
    // Who slept on until a timer would have slept a second each time.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    finish(side)
}

/// A poll set gives the contexts of those that have something.
pub fn poll_set(mut side: Side) -> Link {
    side.open(Ask::default());
    let (mut attr, mut set, mut found) = (PollAttr { flags: 0 }, ptr::null_mut(), [ptr::null_mut(); 4]);
    assert_eq!(call!(side.domain, ops ! poll_open(&raw mut attr, &raw mut set)), 0);
    assert_eq!(call!(set, ops ! poll_add(side.cq.cast(), 0)), 0);
    assert_eq!(call!(set, ops ! poll_add(side.receives.cast(), 0)), 0);
    assert_eq!(call!(set, ops ! poll(found.as_mut_ptr(), 4)), 0);
    let mut into = [0; 4];
    side.begin(|| side.receive(&mut into, any(1, 1)));
    side.meet();
    side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(b"poll", 1, 0) }));
    let (mut contexts, start) = (Vec::new(), Instant::now());
    while contexts.len() < 2 {
        let count = call!(set, ops ! poll(found.as_mut_ptr(), 4));
        let count = usize::try_from(count).expect("no error");
        contexts.extend(
            found[..count]
                .iter()
                .map(|context| context.addr())
                .filter(|at| !contexts.contains(at))
                .collect::<Vec<_>>(),
        );
        assert!(start.elapsed() < TIME_LIMIT);
    }
    contexts.sort_unstable();
    assert_eq!(contexts, [0xc0, 0xc1]);
    assert_eq!(side.wait().number, 1);
    assert_eq!(call!(set, ops ! poll_del(side.cq.cast(), 0)), 0);
    assert_eq!(call!(set, ops ! poll_del(side.receives.cast(), 0)), 0);
    assert_eq!(close(set), 0);
    finish(side)
}
