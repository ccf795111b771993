use std::sync::mpsc::Receiver;

use lmt_core::buffer::Access;
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Direction;
use lmt_core::region::Protection;

use super::super::copying::to_cookie;
use super::*;
use crate::types::{InlineCopy, Length};

#[test]
fn a_copy_that_panics_has_failed() {
    let failed = end_of(|| panic!("this panic is part of the test"));
    assert!(matches!(failed, Err(KnemError::CopyFailed)), "{failed:?}");
    assert_eq!(end_of(|| Ok(Copied { bytes: 3, local: None })).expect("it ends well").bytes, 3);
}

/// A copy of no bytes, begun.
fn work(regions: &Regions) -> Work {
    let key = lock(&regions.table).allocate(8, Protection::READ).expect("memory");
    let (direction, region, length) = (Direction::Get, to_cookie(&key), Length::ToTheEnd);
    let copy = InlineCopy { direction, region, region_offset: 0, local_offset: 0, length };
    let local = Buffer::empty(Access::Write);
    Work::Inline(regions.begin_inline(&local, &copy).expect("it is one's own"), local)
}

#[test]
fn what_a_thread_that_has_ended_was_given_has_failed() {
    let regions = Arc::new(Regions::new(EndpointId::from_bytes([1; 16])).expect("address space"));
    let mut offload = Offload::new(Arc::clone(&regions));
    let (jobs, todo): (_, Receiver<(u32, Work)>) = channel();
    let (leave, left) = channel::<()>();
    let thread = std::thread::spawn(move || assert!(left.recv().is_err()));
    offload.helper = Some(Helper { jobs, id: gettid(), thread });
    let id = offload.hand_over(work(&regions));
    assert!(matches!(offload.poll(id), Ok(None)), "the thread may still make it");
    drop(leave);
    let failed = loop {
        match offload.poll(id) {
            Ok(None) => std::thread::yield_now(),
            ended => break ended,
        }
    };
    assert!(matches!(failed, Err(KnemError::CopyFailed)), "{failed:?}");
    drop(todo);
    // Nobody takes it, so it is made here.
    let id = offload.hand_over(work(&regions));
    assert_eq!(offload.poll(id).expect("it ends well").expect("it has ended").bytes, 0);
}

/// Which signals a thread of this process blocks, as the kernel shows them.
fn blocked(thread: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a line for it");
    u64::from_str_radix(line.trim(), 16).expect("a mask")
}

#[test]
fn the_thread_takes_no_signals_and_the_caller_takes_what_it_took() {
    let regions = Arc::new(Regions::new(EndpointId::from_bytes([1; 16])).expect("address space"));
    let mut offload = Offload::new(regions);
    let before = blocked(gettid());
    offload.wake().expect("a thread");
    assert_eq!(blocked(gettid()), before);
    let id = offload.helper.as_ref().expect("it was made").id;
    let terminate = 1u64 << (nix::libc::SIGTERM - 1);
    assert_eq!(blocked(id) & terminate, terminate);
}
