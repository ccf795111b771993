//! Processes of other users, and in user and pid namespaces of their own, as in
//! two containers that share a network namespace, and so each other's sockets.

use std::time::{Duration, Instant};

use lmt::{OperationError, Source, TagMatch};
use lmt_conformance::denials::{Confinement, UNPRIVILEGED, possible};
use lmt_conformance::test_name;
use nix::libc::{EPERM, ESRCH};

use crate::common::join_plain;
use crate::party::{ALL, DENIED, LARGE, LARGE_BYTES, Party, in_order, two};

/// Neither process can reach the other's memory, for this reason.
fn apart(name: &str, requirement: &str, [first, second]: [&Confinement; 2], errno: i32, words: &[&str]) {
    if !possible(requirement, &[first, second]) {
        return;
    }
    let are_two_users = requirement == "users";
    two(name, first, second).run(|group| {
        let mut party = Party::with(group, move |config| {
            config.allow_other_users = are_two_users;
            in_order(config);
        });
        party.exchange();
        for mechanism in DENIED {
            party.is_denied(mechanism, errno, words);
        }
        assert_eq!(party.used(), [("shm", LARGE)]);
        assert_eq!((party.counters("cma").bytes, party.counters("cma").demotions), (0, 0));
        group.barrier();
    });
}

#[test]
fn two_users_that_allow_each_other() {
    let (one, other) = (Confinement::new(), Confinement::new().user(UNPRIVILEGED + 1));
    apart(test_name!(), "users", [&one, &other], EPERM, &["users", "run both as one user"]);
}

#[test]
fn two_user_namespaces_that_know_the_user_alike() {
    let own = Confinement::new().user_namespace(UNPRIVILEGED);
    apart(test_name!(), "userns", [&own, &own], EPERM, &["user namespace"]);
}

#[test]
fn two_user_namespaces_that_know_the_user_as_different_numbers() {
    let as_root = Confinement::new().user_namespace(0);
    let as_another = Confinement::new().user_namespace(1000);
    apart(
        test_name!(),
        "userns",
        [&as_root, &as_another],
        EPERM,
        &["another user namespace", "run both in one"],
    );
}

#[test]
fn two_pid_namespaces() {
    let own = Confinement::new().pid_namespace();
    apart(test_name!(), "pidns", [&own, &own], ESRCH, &["pid", "namespace"]);
}

/// From above, the process below has a number; from below, nobody above has.
#[test]
fn a_pid_namespace_below_the_others() {
    let below = Confinement::new().pid_namespace();
    if !possible("pidns", &[&below]) {
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
            for mechanism in DENIED {
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
    if !possible("userns", &[&below]) {
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
            for mechanism in DENIED {
                party.is_denied(mechanism, EPERM, &["user namespace"]);
            }
            assert_eq!(cma.bytes, 0);
        }
        assert_eq!(party.used(), [("cma", LARGE)]);
        group.barrier();
    });
}

/// A namespace that knows no user shows all of them as one number; the kernel
/// still knows that the two are one.
#[test]
fn two_user_namespaces_that_do_not_know_the_user() {
    let own = Confinement::new().user_namespace_without_users();
    apart(test_name!(), "userns", [&own, &own], EPERM, &["user namespace"]);
}

/// Neither process sends anything to the other.
fn strangers(name: &str, first: &Confinement, second: &Confinement, seen_as: u32) {
    if !possible("users", &[first, second]) {
        return;
    }
    two(name, first, second).run(|group| {
        assert_eq!(nix::unistd::geteuid().as_raw(), seen_as);
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        let error =
            endpoint.send_synchronous(peer, 1, b"secret").expect_err("they are strangers").to_string();
        assert!(error.contains("user"), "{error}");
        group.barrier();
    });
}

/// Two users that look alike, as each is unknown where the other is, are told
/// apart.
#[test]
fn two_users_that_no_namespace_knows_are_strangers() {
    let first = Confinement::new().user_namespace_without_users();
    strangers(test_name!(), &first, &first.clone().user(UNPRIVILEGED + 1), 65_534);
}

#[test]
fn two_users_with_the_same_number_in_their_namespaces_are_strangers() {
    let first = Confinement::new().user_namespace(0);
    strangers(test_name!(), &first, &first.clone().user(UNPRIVILEGED + 1), 0);
}

/// The nobody of a namespace looks like all whom it does not know.
#[test]
fn nobody_and_a_user_that_its_namespace_does_not_know_are_strangers() {
    let first = Confinement::new().user_namespace(65_534);
    strangers(test_name!(), &first, &first.clone().user(UNPRIVILEGED + 1), 65_534);
}

/// A peer without a number here still has a pidfd, which tells of its end.
#[test]
fn a_death_in_another_pid_namespace_is_told() {
    let own = Confinement::new().pid_namespace();
    if !possible("pidns", &[&own]) {
        return;
    }
    two(test_name!(), &own, &own).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        group.barrier();
        if group.rank() == 1 {
            // Says goodbye to nobody.
            std::process::exit(0);
        }
        let begun = Instant::now();
        let error = receive_nothing(&party).to_string();
        assert!(error.contains("died"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    });
}

fn receive_nothing(party: &Party<'_>) -> OperationError {
    let received = party.endpoint.receive(Source::Peer(party.peer), TagMatch::any(), &mut [0]);
    received.expect_err("nobody sends")
}
