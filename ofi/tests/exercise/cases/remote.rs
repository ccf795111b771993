//! fi_mr(3), fi_rma(3): memory of the other process.
#![allow(unsafe_code)] // Maps memory and takes rights away.

use lmt_fi::abi::{Errno, flags};

use super::{finish, pattern};
use crate::link::Link;
use crate::side::{Ask, Remote, Side, There, close};

const ACCESS: u64 = flags::REMOTE_READ | flags::REMOTE_WRITE;

const PAGES_BYTES: usize = 16 << 10;

/// Pages of their own, which last.
fn pages() -> &'static mut [u8] {
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), PAGES_BYTES, rights, kind, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: the mapping, which nobody else has.
    unsafe { std::slice::from_raw_parts_mut(base.cast(), PAGES_BYTES) }
}

fn set_rights(pages: &mut [u8], rights: i32) {
    // SAFETY: whole pages, which the test does not touch meanwhile.
    assert_eq!(unsafe { libc::mprotect(pages.as_mut_ptr().cast(), pages.len(), rights) }, 0);
}

fn tell(side: &Side, there: There) -> There {
    side.say(&format!("{} {}", there.address, there.key));
    let told = side.hear();
    let (address, key) = told.split_once(' ').expect("two numbers");
    There { address: address.parse().expect("a number"), key: key.parse().expect("a number") }
}

/// Every call that reads or writes, of some lengths.
pub fn forms(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut memory = vec![0_u8; 1 << 20];
    let (mr, own) = side.register(&mut memory, ACCESS);
    let there = tell(&side, own);
    let writes = [Remote::Write, Remote::WriteVector, Remote::WriteMessage, Remote::Inject];
    let reads = [Remote::Read, Remote::ReadVector, Remote::ReadMessage];
    if side.is_first() {
        for bytes in [1, 1000, 1 << 20] {
            let (text, mut into) = (pattern(bytes), vec![0; bytes]);
            for write in writes {
                // What may be injected is short.
                let mut from =
                    if write == Remote::Inject { text[..bytes.min(1000)].to_vec() } else { text.clone() };
                side.begin(|| side.remote(write, &mut from, there, 1));
                if write != Remote::Inject {
                    let told = side.wait();
                    assert_eq!((told.number, told.flags & flags::WRITE), (1, flags::WRITE), "{write:?}");
                }
            }
            for read in reads {
                into.fill(0);
                side.begin(|| side.remote(read, &mut into, there, 2));
                let told = side.wait();
                assert_eq!((told.number, told.flags & flags::READ), (2, flags::READ));
                assert!(into == text, "{read:?} of {bytes} bytes");
            }
        }
        side.say("written");
    } else {
        assert_eq!(side.hear(), "written");
    }
    side.meet();
    assert_eq!(close(mr), 0);
    assert!(side.is_first() || memory == pattern(1 << 20));
    finish(side)
}

/// What is not there, or not allowed, is an error of the operation.
pub fn errors(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut memory = vec![7_u8; 64];
    let (mr, own) = side.register(&mut memory, flags::REMOTE_READ);
    let there = tell(&side, own);
    if side.is_first() {
        let mut into = [0; 64];
        side.begin(|| side.remote(Remote::Read, &mut into, there, 1));
        assert_eq!((side.wait().number, &into), (1, &[7; 64]));
        side.begin(|| side.remote(Remote::Write, &mut into, there, 1));
        assert_eq!(side.wait_error().1.err, Errno::ACCES.0, "it may be read only");
        let nowhere = There { key: there.key ^ 0x55, ..there };
        side.begin(|| side.remote(Remote::Read, &mut into, nowhere, 1));
        let error = side.wait_error().1.err;
        assert!([Errno::NOKEY.0, Errno::ACCES.0].contains(&error), "{error}");
    }
    side.meet();
    assert_eq!((close(mr), memory), (0, vec![7; 64]));
    finish(side)
}

/// Memory that was registered and is read-only by now is not written, whose owner lives on;
/// and its other regions need no more of it than before.
pub fn fault(mut side: Side) -> Link {
    side.open(Ask::default());
    let (odd, mut plain) = (pages(), vec![7_u8; 1 << 16]);
    let (odd_mr, own_odd) = side.register(odd, ACCESS);
    let (plain_mr, own_plain) = side.register_as(78, &mut plain, ACCESS);
    let there = [tell(&side, own_odd), tell(&side, own_plain)];
    let mut here = vec![1; PAGES_BYTES];
    side.begin(|| side.remote(Remote::Read, &mut here, there[1], 1));
    assert_eq!(side.wait().number, 1);
    set_rights(odd, libc::PROT_READ);
    side.meet();
    if side.is_first() {
        side.begin(|| side.remote(Remote::Write, &mut here, there[0], 2));
        let (number, failure) = side.wait_error();
        assert!([Errno::FAULT.0, Errno::IO.0].contains(&failure.err), "{}", failure.err);
        assert_eq!(number, 2);
        side.say("written");
        here.fill(0);
        side.begin(|| side.remote(Remote::Read, &mut here, there[1], 3));
        assert_eq!((side.wait().number, here[0]), (3, 7));
        side.say("read");
    } else {
        assert_eq!(side.hear(), "written");
        // No progress is made here, as by who computes.
        assert_eq!(side.hear_only(), "read");
    }
    side.meet();
    set_rights(odd, libc::PROT_READ | libc::PROT_WRITE);
    assert_eq!((close(odd_mr), close(plain_mr)), (0, 0));
    finish(side)
}
