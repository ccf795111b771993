//! The conformance suite over the mechanism `knem-ioctl`.

use lmt_conformance::suite::{self, Under};
use lmt_knem::KnemIoctl;

use crate::client::Client;
use crate::verdict::{Stop, Verdict, holds, skip};

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

/// Runs a case, or a rank of one; nothing where there is none of this name.
/// Panics when it fails.
pub fn run(name: &str) -> Option<Verdict> {
    let (name, case) = CASES.iter().find(|(known, _)| *known == name)?;
    Some(for_this_driver(name).and_then(|()| {
        case(&Under::new(name, KnemIoctl::new));
        holds()
    }))
}

/// Skips what this driver is loaded to have lmt not do.
fn for_this_driver(name: &str) -> Result<(), Stop> {
    let client = Client::bare()?;
    if client.always_uses_dma()? {
        return skip(
            "this driver is loaded so that a DMA engine makes every copy, to which lmt leaves no messages",
        );
    }
    if name == "suite-death-of-senders" && client.is_always_asynchronous()? {
        return skip(
            "this driver is loaded so that every copy is asynchronous, and then only the receiver copies",
        );
    }
    Ok(())
}
