//! Messages by KNEM's DMA engine, through the stand-in of its driver where there
//! is no module: what every mechanism must keep, asked for both ways.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use knem_stand_in::{Options, ensure};
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

/// The mechanism under a driver with a DMA engine that loses small tails.
fn under_the_stand_in(how: How) -> IoatKnem {
    take_turn();
    if let Err(why) = ensure(Options::default().loses_small_tails()) {
        // The suite then finds no driver, and says so.
        eprintln!("{why}");
    }
    IoatKnem::new(how)
}

/// All but the case whose memory stands at many addresses, which comes below.
mod asynchronous {
    use super::*;
    lmt_conformance::suite!(@cases under_the_stand_in(How::Asynchronous); sizes alignment segments
        both_directions order many_at_once cancel cancel_too_late truncation demotion demotion_for_good
        no_mechanism_left death_of_receivers death_of_senders forked_children child_outlives_its_parent
        two_endpoints_in_one_process);
}
mod one_by_one {
    use super::*;
    lmt_conformance::suite!(@cases under_the_stand_in(How::Asynchronous).one_by_one(); past_2_gib);
}
lmt_conformance::suite!(synchronous, under_the_stand_in(How::Synchronous));

/// What the mechanism says of such a driver, asked in a thread of its own, as a
/// stand-in is for good; `None`, with a sentence, where there can be no stand-in.
fn refused(options: Options) -> Option<Unavailable> {
    let asked = std::thread::spawn(|| {
        take_turn();
        ensure(options).map(|()| IoatKnem::default().hello().unwrap_err())
    });
    match asked.join().expect("it says no") {
        Ok(refused) => Some(refused),
        Err(why) => {
            lmt_conformance::require::skipped("ioat-knem", &why.to_string());
            None
        }
    }
}

#[test]
fn a_driver_without_an_engine_is_refused_with_a_sentence() {
    if let Some(refused) = refused(Options::default()) {
        assert!(refused.sentence.contains("no DMA engine"), "{refused}");
    }
}

#[test]
fn a_driver_that_is_not_there_is_refused_with_a_sentence() {
    if let Some(refused) = refused(Options::default().open_error(nix::errno::Errno::ENOENT)) {
        assert_eq!(refused.errno, libc::ENOENT);
        assert!(refused.sentence.contains("modprobe knem"), "{refused}");
    }
}
