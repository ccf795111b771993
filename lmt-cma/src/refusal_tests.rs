use std::path::Path;

use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use super::*;

const STATUS: &str = "Name:\tsolver\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nCapPrm:\t0000000000000000\n\
                      Seccomp:\t0\nSeccomp_filters:\t0\n";

fn alike() -> Seen {
    let one = Credentials::parse(STATUS).expect("it has all lines");
    Seen { ours: one.clone(), theirs: one, ..Seen::default() }
}

/// The only obstacle, which must hold all of these words.
fn only(seen: &Seen, words: &[&str]) {
    let found = seen.obstacles();
    assert_eq!(found.len(), 1, "{found:?}");
    for word in words {
        assert!(found[0].contains(word), "no `{word}` in {found:?}");
    }
}

#[test]
fn a_status_is_read() {
    let read = alike().ours;
    assert_eq!((read.users, read.groups, read.capabilities), (vec![1000; 3], vec![100; 3], 0));
    assert_eq!(Credentials::parse("Uid:\t1\t1\t1\t1\n"), None);
    assert_eq!(Credentials::parse(&STATUS.replace("1000", "x")), None);
    assert_eq!(value(STATUS, "Seccomp"), Some("0"));
    assert_eq!(value(STATUS, "Sec"), None);
}

#[test]
fn each_obstacle_is_told_with_what_helps() {
    assert_eq!(alike().obstacles(), Vec::<String>::new());
    let mut other = alike();
    other.theirs.users[2] = 0;
    only(&other, &["[1000, 1000, 0]", "one user"]);
    let mut other = alike();
    other.theirs.groups[0] = 7;
    only(&other, &["[7, 100, 100]", "one group"]);
    only(&Seen { is_closed: true, ..alike() }, &["not dumpable", "PR_SET_DUMPABLE"]);
    only(&Seen { other_user_namespace: true, ..alike() }, &["another user namespace", "run both in one"]);
    let mut stronger = alike();
    stronger.theirs.capabilities = 1 << 19;
    only(&stronger, &["capabilities", "drop them"]);
    stronger.ours.capabilities = 1 << 19 | 1;
    assert_eq!(stronger.obstacles(), Vec::<String>::new());
    only(&Seen { yama_scope: 1, ..alike() }, &["ptrace_scope is 1", "PR_SET_PTRACER", "lmt run"]);
    only(&Seen { yama_scope: 2, ..alike() }, &["ptrace_scope is 2", "CAP_SYS_PTRACE"]);
    only(&Seen { yama_scope: 3, ..alike() }, &["ptrace_scope is 3", "boot"]);
}

#[test]
fn several_obstacles_are_all_told() {
    let found = Seen { is_closed: true, yama_scope: 2, ..alike() }.obstacles();
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn of_this_process_nothing_is_refused() {
    let own = std::process::id() as i32;
    let seen = Seen::of(Path::new("/proc"), own).expect("procfs shows this process");
    let yama = seen.yama_scope;
    assert_eq!(Seen { yama_scope: 0, ..seen }.obstacles(), Vec::<String>::new(), "{yama}");
    assert_eq!(sys::refused_call(), None);
}

#[test]
fn without_proc_the_candidates_are_named() {
    assert_eq!(Seen::of(Path::new("/nowhere"), 1), None);
    let said = sentence(Errno::EPERM, &PeerProcess::new(0, None));
    for word in ["user namespace", "dumpable", "security module", "EPERM"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    let said = of_the_call("process_vm_readv", Errno::ENOSYS, false);
    assert!(said.contains("CONFIG_CROSS_MEMORY_ATTACH"), "{said}");
    let said = of_the_call("process_vm_readv", Errno::ENOSYS, true);
    assert!(said.contains("seccomp") && !said.contains("CONFIG"), "{said}");
    assert!(of_the_call("process_vm_writev", Errno::EPERM, false).contains("process_vm_writev at all"));
}
