//! Models of a lease, run by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p lmt-core --release --lib loom`.
#![allow(unsafe_code)] // A loom cell stands for the memory.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A word, and the memory that it is about: loom tells of accesses to the cell
/// that nothing keeps apart.
struct Leased {
    word: LeaseWord,
    memory: UnsafeCell<u64>,
}

/// The peer's part.
fn copies(leased: &Leased, generation: u32) -> bool {
    let taken = leased.word.take(generation);
    if taken {
        leased.memory.with_mut(|memory| {
            // SAFETY: the lease says that nobody else touches it, which is what
            // the model checks.
            unsafe { *memory += 1 }
        });
        leased.word.done(generation);
    }
    taken
}

/// The memory is used by somebody else as soon as the lease is over, whether the
/// peer comes late, early or in between; and the next lease of the same word is
/// not taken by a peer of the last.
#[test]
fn loom_memory_is_reused_when_nobody_copies() {
    loom::model(|| {
        let leased = Arc::new(Leased { word: LeaseWord::new(), memory: UnsafeCell::new(0) });
        leased.word.open(1);
        let peer = {
            let leased = leased.clone();
            thread::spawn(move || copies(&leased, 1))
        };
        let quiet = leased.word.close(1) == LeaseUse::Yes || leased.word.is_done(1);
        if quiet {
            leased.memory.with_mut(|memory| {
                // SAFETY: as above.
                unsafe { *memory = 7 }
            });
            leased.word.open(2);
        }
        let copied = peer.join().unwrap();
        if quiet {
            let left = leased.memory.with(|memory| {
                // SAFETY: the peer has ended.
                unsafe { *memory }
            });
            assert_eq!(left, 7, "a late copy landed in memory that is somebody else's");
            assert!(leased.word.take(2), "the next lease is untouched");
        } else {
            assert!(copied);
            assert!(leased.word.is_done(1));
        }
    });
}
