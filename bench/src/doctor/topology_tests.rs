use super::*;

#[test]
fn a_machine_that_is_not_this_one_is_told_as_such() {
    let found = seen(Machine::synthetic("package:2 l2:2(size=4194304) core:2 pu:1"), None);
    assert_eq!(found.state, State::Limited);
    assert!(found.meaning.contains("not this machine"), "{found:?}");
    assert!(found.meaning.contains("2 packages"), "{found:?}");
    assert!(found.meaning.contains("4 MiB of L2"), "{found:?}");
}

#[test]
fn what_hwloc_cannot_read_is_blocked() {
    let found = seen(Machine::synthetic("nonsense:x"), None);
    assert_eq!(found.state, State::Blocked, "{found:?}");
    assert!(found.fix.unwrap().contains("unset HWLOC_SYNTHETIC"));
}

#[test]
fn a_machine_without_hwloc_is_told_with_what_to_install() {
    let missing =
        WithoutHwloc { reason: "libhwloc.so.15: no such file".to_owned(), remedy: "install hwloc 2" };
    let found = seen(Machine::load(), Some(&missing));
    assert_eq!(found.state, State::Limited);
    assert!(found.meaning.contains("by the kernel's files, for libhwloc.so.15"), "{found:?}");
    assert_eq!(found.fix.as_deref(), Some("install hwloc 2"));
}
