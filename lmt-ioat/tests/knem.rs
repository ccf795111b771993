//! Messages by KNEM's DMA engine, through the stand-in of its driver where there
//! is no module: what every mechanism must keep, asked for both ways.
#![cfg(not(loom))]

use knem_stand_in::{Options, ensure};
use lmt_core::mechanism::Lmt;
use lmt_ioat::IoatKnem;
use lmt_ioat::knem::How;

/// The mechanism under a driver with a DMA engine that loses small tails.
fn under_the_stand_in(how: How) -> IoatKnem {
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

/// Whether there is no stand-in to be had, which is said.
fn lacks_stand_in(options: Options) -> bool {
    let entered = ensure(options);
    if let Err(why) = &entered {
        lmt_conformance::require::skipped("ioat-knem", &why.to_string());
    }
    entered.is_err()
}

#[test]
fn a_driver_without_an_engine_is_refused_with_a_sentence() {
    if lacks_stand_in(Options::default()) {
        return;
    }
    let refused = IoatKnem::default().hello().unwrap_err();
    assert!(refused.sentence.contains("no DMA engine"), "{refused}");
}

#[test]
fn a_driver_that_is_not_there_is_refused_with_a_sentence() {
    if lacks_stand_in(Options::default().open_error(nix::errno::Errno::ENOENT)) {
        return;
    }
    let refused = IoatKnem::default().hello().unwrap_err();
    assert_eq!(refused.errno, libc::ENOENT);
    assert!(refused.sentence.contains("modprobe knem"), "{refused}");
}
