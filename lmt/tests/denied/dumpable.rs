//! A process that is not dumpable (PR_SET_DUMPABLE in prctl(2)): no other may
//! read or write its memory.

use lmt::{Source, TagMatch};
use lmt_conformance::denials::Confinement;
use lmt_conformance::test_name;
use nix::libc::EPERM;
use nix::sys::prctl::set_dumpable;

use crate::common::{join, pattern, receive_and_check};
use crate::party::{ALL, DENIED, LARGE, LARGE_BYTES, NONE, Party, Whom, two};

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
        for mechanism in DENIED {
            party.is_denied(mechanism, EPERM, &WORDS);
        }
        assert_eq!(cma.bytes, 0);
    } else {
        assert_eq!((party.standing("cma").ours, party.standing("cma").reason), (ALL, None));
        assert_eq!(cma.bytes, 2 * LARGE_BYTES);
        assert!(party.notes().contains("only this process can copy"), "{}", party.notes());
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

/// Who allows no other mechanism gets an error that says what the kernel refused; what
/// needs no mechanism arrives.
#[test]
fn of_both_processes_without_an_alternative_ends_in_an_error() {
    let plain = Confinement::new();
    two(test_name!(), &plain, &plain).run(|group| {
        set_dumpable(false).expect("prctl allows it");
        let (endpoint, peers) = join(group, |config| config.mechanisms = Some(vec!["cma".to_owned()]));
        let peer = peers[1 - group.rank() as usize];
        let error = if group.rank() == 0 {
            endpoint.send(peer, 1, &pattern(1, 1 << 20)).expect_err("there is no way").to_string()
        } else {
            let mut into = vec![0; 1 << 20];
            let received = endpoint.receive(Source::Peer(peer), TagMatch::any(), &mut into);
            received.expect_err("there is no way").to_string()
        };
        assert!(WORDS.iter().all(|word| error.contains(word)), "{error}");
        assert!(error.contains("no mechanism"), "{error}");
        if group.rank() == 0 {
            endpoint.send(peer, 2, &pattern(2, 4000)).expect("it is sent");
        } else {
            receive_and_check(&endpoint, peer, 2, 2, 4000);
        }
        group.barrier();
    });
}

/// Whatever rules and calibrations prefer: what is denied is not among it.
#[test]
fn of_both_processes_the_rules_do_without_the_denied() {
    let plain = Confinement::new();
    two(test_name!(), &plain, &plain).run(|group| {
        set_dumpable(false).expect("prctl allows it");
        let mut party = Party::with(group, |_| {});
        party.exchange();
        for mechanism in DENIED {
            party.is_denied(mechanism, EPERM, &WORDS);
        }
        let used = party.used();
        assert!(used.iter().all(|(name, _)| !DENIED.contains(name)), "{used:?}");
        assert_eq!(used.iter().map(|(_, messages)| messages).sum::<u64>(), LARGE);
        assert!(!DENIED.contains(&party.would_take().as_str()));
        group.barrier();
    });
}
