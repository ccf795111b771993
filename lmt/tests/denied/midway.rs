//! Processes that become not dumpable between messages: what worked before does
//! not any more.

use lmt_conformance::denials::Confinement;
use lmt_conformance::test_name;
use nix::libc::EPERM;
use nix::sys::prctl::set_dumpable;

use crate::party::{ALL, LARGE, LARGE_BYTES, Party, Whom, two};

const WORDS: [&str; 3] = ["in the middle", "not dumpable", "PR_SET_DUMPABLE"];

/// Exchanges before and after the two of `whom` close themselves; then `check`.
fn close_midway(name: &str, whom: Whom, check: impl FnOnce(&mut Party<'_>)) {
    let plain = Confinement::new();
    two(name, &plain, &plain).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        assert_eq!(party.used(), [("cma", LARGE)]);
        group.barrier();
        if whom.includes(group.rank()) {
            set_dumpable(false).expect("prctl allows it");
        }
        group.barrier();
        party.exchange();
        check(&mut party);
        group.barrier();
    });
}

/// The closed process still reaches the other, so it copies in both directions.
#[test]
fn one_process_closes_and_copies_from_then_on() {
    close_midway(test_name!(), Whom::Second, |party| {
        let cma = party.counters("cma");
        let standing = party.standing("cma");
        if party.group.rank() == 0 {
            assert!(!standing.ours.read, "{standing:?}");
            let reason = standing.reason.expect("it was refused");
            assert_eq!(reason.errno, EPERM);
            assert!(WORDS.iter().all(|word| reason.sentence.contains(word)), "{reason}");
            // Half of the first exchange by either, and one attempt.
            assert_eq!((cma.bytes, cma.demotions), (LARGE_BYTES, 1));
        } else {
            assert_eq!(standing.ours, ALL);
            assert!(!standing.theirs.read, "{standing:?}");
            assert_eq!((cma.bytes, cma.demotions), (3 * LARGE_BYTES, 0));
        }
        assert_eq!(party.used(), [("cma", 2 * LARGE)]);
        assert_eq!(party.would_take(), "cma");
    });
}

/// Then neither reaches the other, and another mechanism takes over.
#[test]
fn both_processes_close_and_another_mechanism_takes_over() {
    close_midway(test_name!(), Whom::Both, |party| {
        party.is_denied("cma", EPERM, &WORDS);
        assert_eq!(party.counters("cma").bytes, LARGE_BYTES);
        assert_eq!(party.used(), [("cma", LARGE), ("shm", LARGE)]);
        assert_eq!(party.would_take(), "shm");
        let demotions = party.counters("cma").demotions;
        party.exchange();
        assert_eq!(party.used(), [("cma", LARGE), ("shm", 2 * LARGE)]);
        assert_eq!(party.counters("cma").demotions, demotions, "it is not tried again");
    });
}
