use std::io::Read;
use std::os::unix::fs::FileExt;

use super::super::device::test_support::{FakeTree, open};
use super::*;
use crate::dsa::portal::Instruction;
use crate::dsa::sysfs::Mode;

/// Any descriptor: what receives it here does nothing with it.
fn submit(queue: &mut DeviceQueue, descriptor: &Descriptor) -> Submitted {
    // SAFETY: what takes it is a file, which follows no address.
    unsafe { queue.submit(descriptor) }
}

fn bytes(descriptor: &Descriptor) -> [u8; 64] {
    zerocopy::transmute!(*descriptor)
}

#[test]
fn a_dedicated_queue_gets_whole_descriptors_line_by_line() {
    if Instruction::of(Mode::Dedicated).is_none() {
        lmt_conformance::require::skipped("ioat-dsa", "the CPU has no MOVDIR64B");
        return;
    }
    let tree = FakeTree::new("portal");
    let file = tree.queue("wq0.0", "dedicated").file(4096);
    let mut queue = open(&tree).unwrap();
    let sent: Vec<_> = (1..=3).map(|n| Descriptor::memmove(0, n * 32, n << 12, n << 20, 77)).collect();
    for descriptor in &sent {
        assert_eq!(submit(&mut queue, descriptor), Submitted::Accepted);
    }
    for (at, descriptor) in sent.iter().enumerate() {
        let mut line = [0; 64];
        file.read_exact_at(&mut line, 64 * at as u64).unwrap();
        assert_eq!(line, bytes(descriptor));
    }
    // The page is used round and round.
    for _ in 0..62 {
        assert_eq!(submit(&mut queue, &sent[0]), Submitted::Accepted);
    }
    let mut line = [0; 64];
    file.read_exact_at(&mut line, 0).unwrap();
    assert_eq!(line, bytes(&sent[0]));
    queue.stop();
    assert_eq!(submit(&mut queue, &sent[0]), Submitted::Refused { errno: libc::EBADF });
}

#[test]
fn where_mapping_is_refused_descriptors_are_written() {
    let tree = FakeTree::new("written");
    let mut reader = tree.queue("wq0.0", "shared").pipe();
    let mut queue = open(&tree).unwrap();
    assert_eq!(queue.limits().max_batch, 1, "the driver takes no batches by write");
    let descriptor = Descriptor::noop(96);
    assert_eq!(submit(&mut queue, &descriptor), Submitted::Accepted);
    let mut got = [0; 64];
    reader.read_exact(&mut got).unwrap();
    assert_eq!(got, bytes(&descriptor));
    // A full pipe answers as a full queue does.
    let full = (0..2000).map(|_| submit(&mut queue, &descriptor)).find(|it| *it != Submitted::Accepted);
    assert_eq!(full, Some(Submitted::Full));
}

#[test]
fn a_forked_child_submits_nothing() {
    if Instruction::of(Mode::Dedicated).is_none() {
        lmt_conformance::require::skipped("ioat-dsa", "the CPU has no MOVDIR64B");
        return;
    }
    let tree = FakeTree::new("child");
    let _file = tree.queue("wq0.0", "dedicated").file(4096);
    let mut queue = open(&tree).unwrap();
    // SAFETY: the child only makes a comparison and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = submit(&mut queue, &Descriptor::noop(32)) == Submitted::Refused { errno: libc::EPERM };
        drop(queue);
        // SAFETY: ends the child at once, as intended.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above, and writes to `status` only.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(submit(&mut queue, &Descriptor::noop(32)), Submitted::Accepted);
}
