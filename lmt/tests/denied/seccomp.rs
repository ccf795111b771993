//! A seccomp filter that refuses process_vm_readv and process_vm_writev, as
//! containers' profiles do, with one errno or another.

use lmt_conformance::denials::{Confinement, possible};
use lmt_conformance::test_name;
use lmt_core::selection::{Source, Why};
use nix::libc::{ENOSYS, EPERM};

use crate::common::{folder, write};
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

/// With rules, and no list of mechanisms: what the user's rule names first is
/// denied, so the next that it names is taken, by that rule's word.
#[test]
fn a_rule_of_the_users_goes_on_to_its_next_way() {
    let filtered = Confinement::new().copies_refused(EPERM);
    if !possible("seccomp", &[&filtered]) {
        return;
    }
    let folder = folder(test_name!());
    let file = folder.join("lmt/lmt.toml");
    write(&file, "[[rule]]\nabove = \"4 KiB\"\ntake = [\"cma\", \"vmsplice\"]\n");
    two(test_name!(), &filtered, &filtered).run(|group| {
        let mut party = Party::with(group, |_| {});
        party.exchange();
        for mechanism in DENIED {
            party.is_denied(mechanism, EPERM, &WORDS);
        }
        assert_eq!(party.used(), [("vmsplice", LARGE)]);
        let explanation = party.endpoint.explain(party.peer, 1 << 20).expect("the peer is known");
        assert_eq!(explanation.source, Source::File { path: file.display().to_string(), line: 1 });
        let shm = explanation.not_taken.iter().find(|other| other.mechanism == "shm");
        assert_eq!(shm.expect("it is told of").why, Why::Later, "{explanation}");
        group.barrier();
    });
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
