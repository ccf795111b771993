//! A process that is not dumpable (PR_SET_DUMPABLE in prctl(2)): no other may
//! read or write its memory.

use lmt_conformance::denials::Confinement;
use lmt_conformance::test_name;
use nix::libc::EPERM;
use nix::sys::prctl::set_dumpable;

use crate::party::{ALL, LARGE, LARGE_BYTES, NONE, Party, Whom, two};

const WORDS: [&str; 2] = ["not dumpable", "PR_SET_DUMPABLE"];

fn denied_to(name: &str, whom: Whom) {
    let plain = Confinement::new();
    two(name, &plain, &plain).run(|group| {
        if whom.includes(group.rank()) {
            set_dumpable(false).expect("prctl allows it");
        }
        let mut party = Party::new(group);
        party.exchange();
        check(&party, whom);
        // Nobody is gone before all has been looked at.
        group.barrier();
    });
}

/// Who cannot reach the other says so; who can copies in both directions.
fn check(party: &Party<'_>, closed: Whom) {
    let rank = party.group.rank();
    let cma = party.counters("cma");
    if closed.includes(1 - rank) {
        for mechanism in ["cma", "knem-user", "ioat-software"] {
            party.is_denied(mechanism, EPERM, &WORDS);
        }
        assert_eq!(cma.bytes, 0);
    } else {
        assert_eq!((party.standing("cma").ours, party.standing("cma").reason), (ALL, None));
        assert_eq!(cma.bytes, 2 * LARGE_BYTES);
    }
    match closed {
        Whom::Both => assert_eq!(party.used(), [("shm", LARGE)]),
        _ => assert_eq!(party.used(), [("cma", LARGE)]),
    }
    assert_eq!(cma.demotions, 0);
}

#[test]
fn of_the_first_process_the_first_copies() {
    denied_to(test_name!(), Whom::First);
}

#[test]
fn of_the_second_process_the_second_copies() {
    denied_to(test_name!(), Whom::Second);
}

#[test]
fn of_both_processes_another_mechanism_takes_over() {
    denied_to(test_name!(), Whom::Both);
}

#[test]
fn of_neither_process_all_is_well() {
    let plain = Confinement::new();
    two(test_name!(), &plain, &plain).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        assert_eq!(party.used(), [("cma", LARGE)]);
        let standing = party.standing("cma");
        assert_eq!((standing.ours, standing.theirs, standing.reason), (ALL, ALL, None));
        assert_ne!(standing.ours, NONE);
        group.barrier();
    });
}
