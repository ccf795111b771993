//! Processes in user and pid namespaces of their own, as in two containers that
//! share a network namespace, and so each other's sockets.

use lmt_conformance::denials::{Confinement, UNPRIVILEGED, possible};
use lmt_conformance::test_name;
use nix::libc::{EPERM, ESRCH};

use crate::party::{ALL, LARGE, LARGE_BYTES, Party, two};

/// Neither process can reach the other's memory, for this reason.
fn apart(
    name: &str,
    requirement: &str,
    first: &Confinement,
    second: &Confinement,
    errno: i32,
    words: &[&str],
) {
    if !possible(requirement, &[first.clone(), second.clone()]) {
        return;
    }
    two(name, first, second).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        for mechanism in ["cma", "knem-user", "ioat-software"] {
            party.is_denied(mechanism, errno, words);
        }
        assert_eq!(party.used(), [("shm", LARGE)]);
        assert_eq!((party.counters("cma").bytes, party.counters("cma").demotions), (0, 0));
        group.barrier();
    });
}

#[test]
fn two_user_namespaces_that_know_the_user_alike() {
    let own = Confinement::new().user_namespace(UNPRIVILEGED);
    apart(test_name!(), "userns", &own, &own, EPERM, &["user namespace"]);
}

#[test]
fn two_user_namespaces_that_know_the_user_as_different_numbers() {
    let as_root = Confinement::new().user_namespace(0);
    let as_another = Confinement::new().user_namespace(1000);
    apart(
        test_name!(),
        "userns",
        &as_root,
        &as_another,
        EPERM,
        &["another user namespace", "run both in one"],
    );
}

#[test]
fn two_pid_namespaces() {
    let own = Confinement::new().pid_namespace();
    apart(test_name!(), "pidns", &own, &own, ESRCH, &["pid", "namespace"]);
}

/// From above, the process below has a number; from below, nobody above has.
#[test]
fn a_pid_namespace_below_the_others() {
    let below = Confinement::new().pid_namespace();
    if !possible("pidns", &[below.clone()]) {
        return;
    }
    two(test_name!(), &Confinement::new(), &below).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        let cma = party.counters("cma");
        if group.rank() == 0 {
            assert_eq!((party.standing("cma").ours, party.standing("cma").reason), (ALL, None));
            assert_eq!(cma.bytes, 2 * LARGE_BYTES);
        } else {
            for mechanism in ["cma", "knem-user", "ioat-software"] {
                party.is_denied(mechanism, ESRCH, &["pid", "namespace"]);
            }
            assert_eq!(cma.bytes, 0);
        }
        assert_eq!(party.used(), [("cma", LARGE)]);
        group.barrier();
    });
}

/// Who has made a user namespace may do all in it; who is in it nothing above.
#[test]
fn a_user_namespace_below_the_others() {
    let below = Confinement::new().user_namespace(UNPRIVILEGED);
    if !possible("userns", &[below.clone()]) {
        return;
    }
    two(test_name!(), &Confinement::new(), &below).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        let cma = party.counters("cma");
        if group.rank() == 0 {
            assert_eq!((party.standing("cma").ours, party.standing("cma").reason), (ALL, None));
            assert_eq!(cma.bytes, 2 * LARGE_BYTES);
        } else {
            for mechanism in ["cma", "knem-user", "ioat-software"] {
                party.is_denied(mechanism, EPERM, &["user namespace"]);
            }
            assert_eq!(cma.bytes, 0);
        }
        assert_eq!(party.used(), [("cma", LARGE)]);
        group.barrier();
    });
}
