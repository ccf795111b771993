//! The conformance suite over the mechanism `knem-ioctl`.

use lmt_conformance::suite::{self, Under};
use lmt_knem::KnemIoctl;

/// What a case's name begins with.
pub const PREFIX: &str = "suite-";

type Make = fn() -> KnemIoctl;
type Case = fn(&Under<Make>);

macro_rules! cases {
    ($($case:ident $name:literal;)+) => {
        /// All cases: as a line has them, and as a function.
        pub const CASES: &[(&str, Case)] = &[$(($name, suite::$case::<KnemIoctl, Make>)),+];
    };
}

cases! {
    sizes "suite-sizes";
    alignment "suite-alignment";
    segments "suite-segments";
    both_directions "suite-both-directions";
    order "suite-order";
    many_at_once "suite-many-at-once";
    past_2_gib "suite-past-2-gib";
    cancel "suite-cancel";
    cancel_too_late "suite-cancel-too-late";
    truncation "suite-truncation";
    demotion "suite-demotion";
    demotion_for_good "suite-demotion-for-good";
    no_mechanism_left "suite-no-mechanism-left";
    death_of_receivers "suite-death-of-receivers";
    death_of_senders "suite-death-of-senders";
    forked_children "suite-forked-children";
    child_outlives_its_parent "suite-child-outlives-its-parent";
    two_endpoints_in_one_process "suite-two-endpoints-in-one-process";
}

/// Runs a case, or a rank of one. Panics when it fails.
pub fn run(name: &str) -> bool {
    let Some((name, case)) = CASES.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    case(&Under::new(name, KnemIoctl::new));
    true
}
