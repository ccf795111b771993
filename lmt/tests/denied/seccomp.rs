//! A seccomp filter that refuses process_vm_readv and process_vm_writev, as
//! containers' profiles do, with one errno or another.

use lmt_conformance::denials::{Confinement, possible};
use lmt_conformance::test_name;
use nix::libc::{ENOSYS, EPERM};

use crate::party::{ALL, DENIED, LARGE, LARGE_BYTES, Party, Whom, two};

const WORDS: [&str; 3] = ["seccomp", "process_vm_readv", "profile"];

fn refused_to(name: &str, whom: Whom, errno: i32) {
    let filtered = Confinement::new().copies_refused(errno);
    let of = |rank| if whom.includes(rank) { filtered.clone() } else { Confinement::new() };
    if !possible("seccomp", &[&filtered]) {
        return;
    }
    two(name, &of(0), &of(1)).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        check(&party, whom, errno);
        group.barrier();
    });
}

/// Who is refused the calls says so; who is not copies in both directions.
fn check(party: &Party<'_>, refused: Whom, errno: i32) {
    let cma = party.counters("cma");
    if refused.includes(party.group.rank()) {
        for mechanism in DENIED {
            party.is_denied(mechanism, errno, &WORDS);
        }
        assert_eq!(cma.bytes, 0);
    } else {
        assert_eq!((party.standing("cma").ours, party.standing("cma").reason), (ALL, None));
        assert_eq!(cma.bytes, 2 * LARGE_BYTES);
    }
    match refused {
        Whom::Both => assert_eq!(party.used(), [("shm", LARGE)]),
        _ => assert_eq!(party.used(), [("cma", LARGE)]),
    }
    assert_eq!(cma.demotions, 0);
}

#[test]
fn in_the_first_process_the_second_copies() {
    refused_to(test_name!(), Whom::First, EPERM);
}

#[test]
fn in_the_second_process_the_first_copies() {
    refused_to(test_name!(), Whom::Second, ENOSYS);
}

#[test]
fn with_eperm_in_both_another_mechanism_takes_over() {
    refused_to(test_name!(), Whom::Both, EPERM);
}

#[test]
fn with_enosys_in_both_another_mechanism_takes_over() {
    refused_to(test_name!(), Whom::Both, ENOSYS);
}
