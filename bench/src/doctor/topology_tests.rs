use super::*;

#[test]
fn a_machine_that_is_not_this_one_is_told_as_such() {
    let found = seen(Machine::synthetic("package:2 l2:2(size=4194304) core:2 pu:1"));
    assert_eq!(found.state, State::Limited);
    assert!(found.meaning.contains("not this machine"), "{found:?}");
    assert!(found.meaning.contains("2 packages"), "{found:?}");
    assert!(found.meaning.contains("4 MiB of L2"), "{found:?}");
}

#[test]
fn what_hwloc_cannot_read_is_blocked() {
    let found = seen(Machine::synthetic("nonsense:x"));
    assert_eq!(found.state, State::Blocked, "{found:?}");
    assert!(found.fix.unwrap().contains("unset HWLOC_SYNTHETIC"));
}
