use super::super::fixture::{Files, named};
use super::*;

fn status(text: &str) -> Files {
    Files::new("rights").with("proc/self/status", text)
}

#[test]
fn old_kernels_are_told_from_new_ones() {
    for (release, state) in [
        ("6.18.44-fc-v595", State::Good),
        ("5.3.0", State::Good),
        ("5.2.21", State::Limited),
        ("4.19.0-6-amd64", State::Limited),
        ("3.17", State::Limited),
        ("3.10.0-1160.el7", State::Blocked),
        ("2.6.32", State::Blocked),
        ("mine", State::Unknown),
    ] {
        let files = Files::new("kernel").with("proc/sys/kernel/osrelease", &format!("{release}\n"));
        assert_eq!(kernel(&files.host()).state, state, "{release}");
    }
    assert_eq!(kernel(&Files::new("no-kernel").host()).state, State::Unknown);
}

#[test]
fn seccomp_is_told_in_all_its_modes() {
    let of = |text: &str| seccomp(&status(text).host());
    assert_eq!(of("Seccomp:\t0\nNoNewPrivs:\t0\n").meaning, "no filter");
    assert!(of("Seccomp:\t0\nNoNewPrivs:\t1\n").meaning.contains("NoNewPrivs"));
    assert_eq!(of("Seccomp:\t1\n").state, State::Blocked);
    let filtered = of("Seccomp:\t2\nSeccomp_filters:\t3\n");
    assert_eq!(filtered.state, State::Good);
    assert!(filtered.meaning.contains("in force: 3"), "{filtered:?}");
    assert_eq!(of("Name:\tx\n").state, State::Unknown);
}

#[test]
fn namespaces_that_are_not_the_initial_ones_are_a_limit() {
    let initial = status("NSpid:\t7\n")
        .with("proc/self/uid_map", "         0          0 4294967295\n")
        .linked("proc/self/ns/user", INITIAL_USER)
        .linked("proc/self/ns/pid", INITIAL_PID);
    let found = findings(&initial.host());
    assert_eq!(named(&found, "user namespace").state, State::Good);
    assert_eq!(named(&found, "pid namespace").state, State::Good);
    drop(initial);
    let other = status("NSpid:\t7\t1\n")
        .with("proc/self/uid_map", "0 1000 1\n1 100000 65536\n")
        .linked("proc/self/ns/user", "user:[4026532000]")
        .linked("proc/self/ns/pid", "pid:[4026532001]");
    let found = findings(&other.host());
    let user = named(&found, "user namespace");
    assert_eq!(user.state, State::Limited);
    assert!(user.meaning.contains("0 1000 1, 1 100000 65536"), "{user:?}");
    assert_eq!(named(&found, "pid namespace").state, State::Limited);
}

#[test]
fn without_the_links_the_map_of_users_decides() {
    let whole = Files::new("map").with("proc/self/uid_map", "0 0 4294967295\n");
    assert_eq!(user_namespace(&whole.host()).state, State::Good);
    assert_eq!(pid_namespace(&whole.host()).state, State::Unknown);
    let empty = whole.with("proc/self/uid_map", "");
    assert!(user_namespace(&empty.host()).meaning.contains("uid_map: nothing"));
}

#[test]
fn children_in_another_pid_namespace_are_told() {
    let of = |children: &str| {
        let files = Files::new("children")
            .linked("proc/self/ns/pid", INITIAL_PID)
            .linked("proc/self/ns/pid_for_children", children);
        pid_namespace(&files.host())
    };
    assert_eq!(of(INITIAL_PID).state, State::Good);
    let other = of("pid:[4026532001]");
    assert_eq!(other.state, State::Limited);
    assert!(other.fix.unwrap().contains("--fork"));
}

#[test]
fn capabilities_are_listed_by_name() {
    let some = capabilities(&status("CapEff:\t0000000001004000\n").host());
    assert!(some.meaning.contains("CAP_IPC_LOCK") && some.meaning.contains("CAP_SYS_RESOURCE"), "{some:?}");
    assert!(!some.meaning.contains("CAP_SYS_PTRACE"), "{some:?}");
    let none = capabilities(&status("CapEff:\t0000000000000000\n").host());
    assert!(none.meaning.starts_with("none"), "{none:?}");
    assert_eq!(capabilities(&Files::new("no-caps").host()).state, State::Unknown);
}
