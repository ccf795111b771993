//! The suite, tested on mechanisms that must not pass it.

#[path = "common/panics.rs"]
mod panics;

use std::panic::catch_unwind;

use lmt_conformance::suite::{self, Under};
use lmt_conformance::{require, test_name};
use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{
    Abilities, Cookie, Description, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Probed, Step,
    Unavailable,
};

use panics::panic_of;

/// Says that it has moved everything, and moves nothing; or, refused, says that
/// it cannot.
struct Liar {
    refused: bool,
}

impl Lmt for Liar {
    type Peer = ();
    type Transfer = Interval;

    fn description(&self) -> Description {
        Description::new("liar", &[Model::Get])
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        if self.refused {
            return Err(Unavailable { errno: 1, sentence: "nobody lets it".to_owned() });
        }
        Ok(Probed::new((), Abilities { read: true, ..Abilities::default() }))
    }

    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<(Interval, Cookie), Fault> {
        Ok((plan.interval, Cookie::empty()))
    }

    fn start(&mut self, (): &mut (), kept: &mut Interval, _: &Cookie, it: Interval) -> Result<(), Fault> {
        *kept = it;
        Ok(())
    }

    fn step(&mut self, (): &mut (), it: &mut Interval, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        Ok(Step { bytes: it.bytes(), done: true })
    }

    fn finish(&mut self, (): &mut (), _: Interval) {}
}

#[test]
fn a_mechanism_that_moves_nothing_fails() {
    let text = panic_of(|| suite::sizes(&Under::new(test_name!(), || Liar { refused: false })));
    assert!(text.contains("byte 0 of 1 of message"), "{text}");
}

#[test]
fn two_endpoints_notice_it_too() {
    let run = || suite::two_endpoints_in_one_process(&Under::new(test_name!(), || Liar { refused: false }));
    assert!(catch_unwind(run).is_err());
}

#[test]
fn a_mechanism_that_is_refused_is_skipped() {
    suite::sizes(&Under::new(test_name!(), || Liar { refused: true }));
    suite::demotion(&Under::new(test_name!(), || Liar { refused: true }));
}

#[test]
fn a_skip_of_what_is_required_fails() {
    require::skipped_under("shm,cma", "liar", "nobody lets it");
    let text = panic_of(|| require::skipped_under("shm, liar", "liar", "nobody lets it"));
    assert_eq!(text, "liar is required (LMT_REQUIRE=shm, liar) and does not work: nobody lets it");
}
