//! Messages by KNEM's DMA engine, through the stand-in of its driver where there
//! is no module: what every mechanism must keep, asked for both ways.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use knem_stand_in::{Options, for_test};
use lmt_core::mechanism::{Lmt, Unavailable};
use lmt_ioat::IoatKnem;
use lmt_ioat::knem::How;

thread_local! {
    /// Held until the test's thread ends.
    static TURN: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Waits for the other tests that are threads of this process: stand-ins answer
/// calls of malloc, and several in one process could wait for each other.
fn take_turn() {
    static TURNS: Mutex<()> = Mutex::new(());
    TURN.with_borrow_mut(|turn| {
        turn.get_or_insert_with(|| TURNS.lock().unwrap_or_else(PoisonError::into_inner));
    });
}

/// The mechanism under a driver with a DMA engine that is late where a copy ends
/// in a small piece: one of up to so many bytes.
fn under_the_stand_in(how: How, small_bytes: u32) -> IoatKnem {
    take_turn();
    // Without a driver the suite says so.
    for_test(Options::default().loses_small_tails().dmamin(Some(small_bytes)));
    IoatKnem::new(how)
}

/// All but the case whose memory stands at many addresses, which comes below.
mod asynchronous {
    use super::*;
    lmt_conformance::suite!(@cases under_the_stand_in(How::Asynchronous, 1024); sizes alignment segments
        both_directions order many_at_once cancel cancel_too_late truncation demotion demotion_for_good
        no_mechanism_left death_of_receivers death_of_senders forked_children child_outlives_its_parent
        two_endpoints_in_one_process);
}
mod one_by_one {
    use super::*;
    lmt_conformance::suite!(@cases under_the_stand_in(How::Asynchronous, 1024).one_by_one(); past_2_gib);
}
lmt_conformance::suite!(synchronous, under_the_stand_in(How::Synchronous, 1024));

/// A module loaded with another dmamin, or one that was written since.
mod larger_pieces_are_small {
    use super::*;
    mod asynchronous {
        use super::*;
        lmt_conformance::suite!(@cases under_the_stand_in(How::Asynchronous, 2000); sizes alignment segments
            truncation);
    }
    mod synchronous {
        use super::*;
        lmt_conformance::suite!(@cases under_the_stand_in(How::Synchronous, 2000); sizes alignment segments
            truncation);
    }
}

/// What the mechanism says of such a driver, asked in a thread of its own, as a
/// stand-in is for good; `None`, with a sentence, where there is no stand-in.
fn refused(options: Options) -> Option<Unavailable> {
    let asked = std::thread::spawn(|| {
        take_turn();
        for_test(options).then(|| IoatKnem::default().hello().unwrap_err())
    });
    let refused = asked.join().expect("it says no");
    if refused.is_none() {
        lmt_conformance::require::skipped("ioat-knem", "only a stand-in can be of this kind");
    }
    refused
}

#[test]
fn a_driver_without_an_engine_is_refused_with_a_sentence() {
    if let Some(refused) = refused(Options::default()) {
        assert!(refused.sentence.contains("no DMA engine"), "{refused}");
    }
}

#[test]
fn an_engine_that_the_module_is_loaded_to_ignore_is_no_lack_of_hardware() {
    if let Some(refused) = refused(Options::default().ignored_flags(1)) {
        assert!(refused.sentence.contains("loaded with dma=0"), "{refused}");
        assert!(!refused.sentence.contains("I/OAT"), "{refused}");
    }
}

#[test]
fn an_engine_that_nothing_may_be_left_to_is_refused_with_a_sentence() {
    if let Some(refused) = refused(Options::default().dma(true).dmamin(None)) {
        assert_eq!(refused.errno, libc::ENOENT);
        assert!(refused.sentence.contains("parameters/dmamin"), "{refused}");
    }
    if let Some(refused) = refused(Options::default().dma(true).dmamin(Some(5000))) {
        assert!(refused.sentence.contains("dmamin is 5000 bytes"), "{refused}");
    }
}

#[test]
fn a_driver_that_is_not_there_is_refused_with_a_sentence() {
    if let Some(refused) = refused(Options::default().open_error(nix::errno::Errno::ENOENT)) {
        assert_eq!(refused.errno, libc::ENOENT);
        assert!(refused.sentence.contains("modprobe knem"), "{refused}");
    }
}
