//! fi_cq(3): completion queues.
#![allow(unsafe_code)] // Reads strings of C.

use std::ffi::CStr;
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::eq::{
    CQ_FORMAT_CONTEXT, CQ_FORMAT_DATA, CQ_FORMAT_MSG, CQ_FORMAT_TAGGED, CqTaggedEntry, WAIT_NONE, WAIT_UNSPEC,
};
use lmt_fi::abi::{Errno, flags};

use super::{any, finish, tagged, with};
use crate::link::{Link, TIME_LIMIT};
use crate::side::{Ask, Form, Sent, Side, call, zeroed};

const AGAIN: isize = Errno::AGAIN.returned();

/// Of each format an entry has so many bytes and no more.
pub fn formats(mut side: Side) -> Link {
    let formats = [(CQ_FORMAT_CONTEXT, 8), (CQ_FORMAT_MSG, 24), (CQ_FORMAT_DATA, 40), (CQ_FORMAT_TAGGED, 48)];
    for (format, bytes) in formats {
        side.open(Ask { format, ..Ask::default() });
        let mut into = [0; 9];
        if side.is_first() {
            side.begin(|| side.send(Sent { form: Form::Data, data: 0x1234, ..tagged(b"formatted", 9, 1) }));
        } else {
            side.begin(|| side.receive(&mut into, any(9, 1)));
        }
        let mut entry = [0xee_u8; 64];
        let start = Instant::now();
        while call!(side.cq, ops ! read(entry.as_mut_ptr().cast(), 1)) == AGAIN {
            assert!(start.elapsed() < TIME_LIMIT);
        }
        assert!(entry[bytes..].iter().all(|byte| *byte == 0xee), "{entry:?}");
        let word = |at: usize| u64::from_ne_bytes(entry[8 * at..][..8].try_into().expect("8 bytes"));
        assert_eq!(word(0), side.context(1).addr() as u64);
        let kind = if side.is_first() { flags::SEND } else { flags::RECV | flags::REMOTE_CQ_DATA };
        if bytes > 8 {
            assert_eq!(word(1) & (kind | flags::TAGGED), kind | flags::TAGGED);
        }
        if !side.is_first() {
            assert!(bytes <= 8 || word(2) == 9, "its length");
            assert!(bytes <= 24 || word(4) == 0x1234, "its number");
            assert!(bytes <= 40 || word(5) == 9, "its tag");
        }
        side.meet();
        side.close_endpoint();
    }
    side.close()
}

/// A queue bound for selective completions tells of what asks for it.
pub fn selective(mut side: Side) -> Link {
    side.open(Ask { queue_flags: flags::SELECTIVE_COMPLETION, ..Ask::default() });
    let (mut first, mut second) = ([0; 1], [0; 1]);
    side.begin(|| side.receive(&mut first, any(1, 1)));
    side.begin(|| side.receive(&mut second, with(2, 2, flags::COMPLETION)));
    side.meet();
    side.begin(|| side.send(tagged(b"a", 1, 3)));
    let message = Sent { form: Form::Message, flags: flags::COMPLETION, ..tagged(b"b", 2, 4) };
    side.begin(|| side.send(message));
    let mut told = [side.wait().number, side.wait().number];
    told.sort_unstable();
    assert_eq!((told, &first, &second), ([2, 4], b"a", b"b"));
    side.meet();
    assert_eq!(side.read().err(), Some(AGAIN));
    finish(side)
}

/// Reading an empty queue, its errors and their text.
pub fn errors(mut side: Side) -> Link {
    side.open(Ask::default());
    assert_eq!(side.read().err(), Some(AGAIN));
    assert_eq!(side.read_error().err(), Some(AGAIN));
    let mut text = [7_u8; 64];
    let number = Errno::TRUNC.0;
    let same = call!(side.cq, ops ! strerror(number, ptr::null(), text.as_mut_ptr().cast(), 64));
    assert!(!same.is_null());
    let lasting = call!(side.cq, ops ! strerror(number, ptr::null(), ptr::null_mut(), 0));
    // SAFETY: a string that lasts.
    assert!(!unsafe { CStr::from_ptr(lasting) }.is_empty());
    finish(side)
}

/// Several completions by one read.
pub fn many(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut into = [[0_u8; 4]; 8];
    for (number, into) in into.iter_mut().enumerate() {
        side.begin(|| side.receive(into, any(number as u64, number)));
    }
    side.meet();
    for number in 0..8 {
        let message = Sent { form: Form::Inject, ..tagged(b"many", number, 0) };
        side.begin(|| side.send(message));
    }
    let (mut seen, start) = (Vec::new(), Instant::now());
    while seen.len() < 8 {
        let mut entries: [CqTaggedEntry; 5] = [zeroed(); 5];
        let read = call!(side.cq, ops ! read(entries.as_mut_ptr().cast(), 5));
        assert!(read == AGAIN || (1..=5).contains(&read), "{read}");
        let read = usize::try_from(read).unwrap_or_default();
        seen.extend(entries[..read].iter().map(|entry| side.told(entry).number));
        assert!(start.elapsed() < TIME_LIMIT);
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
    finish(side)
}

/// `fi_cq_sread` gives up when its time is over, and not before.
pub fn timeout(mut side: Side) -> Link {
    side.open(Ask::default());
    let (mut entry, start): (CqTaggedEntry, _) = (zeroed(), Instant::now());
    let used = processor_time();
    let read = call!(side.cq, ops ! sread((&raw mut entry).cast(), 1, ptr::null(), 400));
    assert_eq!(read, AGAIN);
    let slept = start.elapsed();
    assert!((Duration::from_millis(390)..Duration::from_secs(5)).contains(&slept), "{slept:?}");
    let used = processor_time() - used;
    assert!(used < Duration::from_millis(100), "it took the processor for {used:?} of {slept:?}");
    side.meet();
    assert!(side.open_cq(CQ_FORMAT_TAGGED, WAIT_NONE).is_ok_and(|cq| crate::side::close(cq) == 0));
    finish(side)
}

/// What this process has used of the processor.
fn processor_time() -> Duration {
    let mut time: libc::timespec = zeroed();
    // SAFETY: room for a time.
    let got = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(got, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `fi_cq_sread` and `fi_cq_sreadfrom` wake for a message of the other process.
pub fn wait(mut side: Side) -> Link {
    side.open(Ask { wait_object: WAIT_UNSPEC, ..Ask::default() });
    for round in 0..20_u64 {
        let mut into = [0; 4];
        if side.is_first() == (round % 2 == 0) {
            std::thread::sleep(Duration::from_millis(round));
            side.begin(|| side.send(Sent { form: Form::Inject, ..tagged(b"wake", round, 1) }));
        } else {
            side.begin(|| side.receive(&mut into, any(round, 2)));
            let (mut entry, mut source): (CqTaggedEntry, _) = (zeroed(), 0);
            let limit_ms = TIME_LIMIT.as_millis() as i32;
            let read = call!(side.cq, ops ! sreadfrom((&raw mut entry).cast(), 1, &raw mut source, ptr::null(), limit_ms));
            assert_eq!((read, source, &into), (1, side.peer, b"wake"));
        }
    }
    finish(side)
}

/// `fi_cq_signal` unblocks the thread that waits.
pub fn signal(mut side: Side) -> Link {
    side.open(Ask::default());
    let cq = side.cq.expose_provenance();
    let signaller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        let cq = ptr::with_exposed_provenance_mut::<lmt_fi::abi::eq::FidCq>(cq);
        call!(cq, ops ! signal())
    });
    let (mut entry, start): (CqTaggedEntry, _) = (zeroed(), Instant::now());
    let read = call!(side.cq, ops ! sread((&raw mut entry).cast(), 1, ptr::null(), 20_000));
    assert_eq!(read, AGAIN);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(signaller.join().expect("no panic"), 0);
    finish(side)
}
