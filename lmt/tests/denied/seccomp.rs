//! A seccomp filter that refuses process_vm_readv and process_vm_writev, as
//! containers' profiles do, with one errno or another; or a call without which
//! there is no endpoint.

use lmt_conformance::denials::{Call, Confinement, possible};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;
use lmt_core::selection::{Source, Why};
use nix::libc::{self, ENOSYS, EPERM};

use crate::common::{LIMIT, folder, write};
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

/// Calls without which there is no endpoint, as the sentence names them.
fn needed() -> [(&'static str, Call); 7] {
    let any = |number| Call { number, argument: None };
    let with = |number, at, value: i32| Call { number, argument: Some((at, value as u32)) };
    [
        ("memfd_create", any(libc::SYS_memfd_create)),
        ("ftruncate", any(libc::SYS_ftruncate)),
        ("fallocate", any(libc::SYS_fallocate)),
        ("fcntl(F_ADD_SEALS)", with(libc::SYS_fcntl, 1, libc::F_ADD_SEALS)),
        ("madvise(MADV_DONTFORK)", with(libc::SYS_madvise, 2, libc::MADV_DONTFORK)),
        ("eventfd2", any(libc::SYS_eventfd2)),
        ("epoll_create1", any(libc::SYS_epoll_create1)),
    ]
}

/// What is said of a refused call is that it is refused, and not that something is
/// short.
fn no_endpoint_without(name: &str, errno: i32, word: &str) {
    let needed = needed();
    let confined: Vec<_> =
        needed.iter().map(|(_, call)| Confinement::new().call_refused(*call, errno)).collect();
    if !possible("seccomp", &confined.iter().collect::<Vec<_>>()) {
        return;
    }
    let group = Test::new(name, confined.len() as u32).time_limit(LIMIT);
    let group = (0..).zip(&confined).fold(group, |group, (rank, one)| group.confine(rank, one));
    group.run(|group| {
        let call = needed[group.rank() as usize].0;
        let said = lmt::Endpoint::new().map(|_| ()).expect_err(call).to_string();
        assert!(said.contains(call) && said.contains(word) && said.contains("seccomp filter"), "{said}");
        for shortage in ["free memory", "available", "RLIMIT", "ulimit"] {
            assert!(!said.contains(shortage), "{said}");
        }
        group.barrier();
    });
}

#[test]
fn a_call_that_a_filter_refuses_is_told_as_refused() {
    no_endpoint_without(test_name!(), EPERM, "allow");
}

#[test]
fn a_call_that_is_not_there_is_told_as_such() {
    no_endpoint_without(test_name!(), ENOSYS, "this kernel has no");
}
