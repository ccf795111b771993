//! fi_eq(3): event queues.
#![allow(unsafe_code)] // Reads strings of C.

use std::ffi::{CStr, c_int};
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::eq::{
    AV_COMPLETE, EqAttr, EqEntry, EqErrEntry, FidEq, NOTIFY, WAIT_FD, WAIT_NONE, WAIT_UNSPEC,
};
use lmt_fi::abi::fabric::AV_MAP;
use lmt_fi::abi::fid::{CONTROL_GETWAIT, Fid};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::waiting::is_readable;
use crate::link::Link;
use crate::side::{Ask, Side, call, close, zeroed};

const AGAIN: isize = Errno::AGAIN.returned();
const ENTRY_BYTES: usize = size_of::<EqEntry>();

fn open(side: &Side, wait_object: c_int, flags: u64) -> *mut FidEq {
    let mut attr: EqAttr = zeroed();
    (attr.wait_obj, attr.flags) = (wait_object, flags);
    let mut eq = ptr::null_mut();
    assert_eq!(
        call!(side.fabric, ops ! eq_open(&raw mut attr, &raw mut eq, ptr::null_mut())),
        0,
        "fi_eq_open"
    );
    eq
}

/// `fi_eq_read`, or `fi_eq_sread` with a time: what it returns, the event and the entry.
fn read(eq: *mut FidEq, room_bytes: usize, flags: u64, timeout_ms: Option<c_int>) -> (isize, u32, EqEntry) {
    let (mut number, mut entry): (u32, EqEntry) = (99, zeroed());
    let room = (&raw mut entry).cast();
    let read = match timeout_ms {
        None => call!(eq, ops ! read(&raw mut number, room, room_bytes, flags)),
        Some(timeout_ms) => call!(eq, ops ! sread(&raw mut number, room, room_bytes, timeout_ms, flags)),
    };
    (read, number, entry)
}

pub fn queue(side: Side) -> Link {
    let eq = open(&side, WAIT_UNSPEC, flags::WRITE);
    assert_eq!(read(eq, ENTRY_BYTES, 0, None).0, AGAIN);
    let mut failed: EqErrEntry = zeroed();
    assert_eq!(call!(eq, ops ! readerr(&raw mut failed, 0)), AGAIN);
    let ours = EqEntry { fid: eq.cast::<Fid>(), context: eq.cast(), data: 42 };
    let written = call!(eq, ops ! write(NOTIFY, (&raw const ours).cast(), ENTRY_BYTES, 0));
    assert_eq!(written, ENTRY_BYTES as isize);
    for flags in [flags::PEEK, 0] {
        let (got, number, entry) = read(eq, ENTRY_BYTES, flags, None);
        assert_eq!((got, number, entry.fid, entry.data), (ENTRY_BYTES as isize, NOTIFY, ours.fid, 42));
    }
    assert_eq!(read(eq, ENTRY_BYTES, 0, None).0, AGAIN);
    let text = call!(eq, ops ! strerror(Errno::INVAL.0, ptr::null(), ptr::null_mut(), 0));
    // SAFETY: a string that lasts.
    assert!(!unsafe { CStr::from_ptr(text) }.is_empty());
    assert_eq!(close(side.fabric), Errno::BUSY.returned_int(), "the fabric has an event queue");
    assert_eq!(close(eq), 0);
    side.close()
}

pub fn wait(side: Side) -> Link {
    let eq = open(&side, WAIT_FD, flags::WRITE);
    let start = Instant::now();
    assert_eq!(read(eq, ENTRY_BYTES, 0, Some(50)).0, AGAIN);
    assert!(start.elapsed() >= Duration::from_millis(45));
    let mut descriptor: c_int = -1;
    assert_eq!(side.control(eq, CONTROL_GETWAIT, &raw mut descriptor), 0);
    let mut fids = [eq.cast::<Fid>()];
    assert_eq!(call!(side.fabric, ops ! trywait(fids.as_mut_ptr(), 1)), 0);
    assert!(!is_readable(descriptor, 10));
    let address = eq.expose_provenance();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        let entry: EqEntry = zeroed();
        let eq = ptr::with_exposed_provenance_mut::<FidEq>(address);
        call!(eq, ops ! write(NOTIFY, (&raw const entry).cast(), ENTRY_BYTES, 0))
    });
    assert!(is_readable(descriptor, 20_000));
    assert_eq!(call!(side.fabric, ops ! trywait(fids.as_mut_ptr(), 1)), Errno::AGAIN.returned_int());
    assert_eq!(read(eq, ENTRY_BYTES, 0, Some(20_000)).0, ENTRY_BYTES as isize);
    assert_eq!(writer.join().expect("no panic"), ENTRY_BYTES as isize);
    let quiet = open(&side, WAIT_NONE, 0);
    assert_eq!((close(quiet), close(eq)), (0, 0));
    side.close()
}

/// Of a vector that was opened with `FI_EVENT` insertions are told by events.
pub fn insertions(mut side: Side) -> Link {
    side.open(Ask::default());
    let name = side.name();
    let av = side.open_av(AV_MAP, flags::EVENT).expect("an address vector");
    let no_queue = side.insert_into(av, std::slice::from_ref(&name), 0).0;
    assert_eq!(no_queue, Errno::NOEQ.returned_int());
    let eq = open(&side, WAIT_UNSPEC, 0);
    assert_eq!(call!(av.cast::<Fid>(), ops ! bind(eq.cast(), 0)), 0);
    let names = [name.clone(), vec![0xff; name.len()]];
    let (inserted, numbers) = side.insert_into(av, &names, 0);
    assert_eq!(inserted, 0);
    assert_eq!(read(eq, ENTRY_BYTES, 0, Some(20_000)).0, Errno::AVAIL.returned());
    let mut failed: EqErrEntry = zeroed();
    assert_eq!(call!(eq, ops ! readerr(&raw mut failed, 0)), size_of::<EqErrEntry>() as isize);
    assert_eq!((failed.fid, failed.context, failed.data), (av.cast(), side.context(1), 1));
    assert_eq!(failed.err, Errno::INVAL.0);
    let (got, number, entry) = read(eq, ENTRY_BYTES, 0, Some(20_000));
    assert_eq!((got, number), (ENTRY_BYTES as isize, AV_COMPLETE));
    assert_eq!((entry.fid, entry.context, entry.data), (av.cast(), side.context(1), 1));
    assert!(numbers[0] != ADDR_UNSPEC && numbers[1] == ADDR_UNSPEC);
    assert_eq!(close(eq), Errno::BUSY.returned_int(), "the vector is bound to it");
    assert_eq!((close(av), close(eq)), (0, 0));
    super::finish(side)
}
