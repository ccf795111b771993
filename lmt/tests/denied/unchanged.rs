//! What is denied and changes nothing: the same mechanisms are available and
//! used as without.

use std::time::Duration;

use lmt_conformance::denials::{Confinement, UNPRIVILEGED, inside, is_inside, possible};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

use crate::common::LIMIT;
use crate::party::{Party, text_of, two};

/// In which the copy finds what the group without the denial reported.
const ENV_WITHOUT: &str = "LMT_TEST_WITHOUT";

const DEV_SHM_BYTES: u64 = 1 << 20;
const LOCKED_BYTES: u64 = 64 << 10;

fn tiny() -> Confinement {
    Confinement::new().dev_shm(DEV_SHM_BYTES).locked_memory(LOCKED_BYTES)
}

/// What a group without any of it reports.
fn without(name: &str) -> String {
    let plain = Confinement::new();
    let all = two(name, &plain, &plain).run(|group| {
        let mut party = Party::new(group);
        party.exchange();
        party.report();
        group.barrier();
    });
    text_of(&all)
}

/// The same, by ranks that find themselves in what [`tiny`] says.
fn with(test: Test) -> String {
    let all = test.run(|group| {
        let shm = nix::sys::statvfs::statvfs("/dev/shm").expect("it is mounted");
        assert_eq!(shm.blocks() * shm.fragment_size(), DEV_SHM_BYTES);
        let locked = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK);
        assert_eq!(locked, Ok((LOCKED_BYTES, LOCKED_BYTES)));
        let mut party = Party::new(group);
        party.exchange();
        party.report();
        group.barrier();
    });
    text_of(&all)
}

fn check(without: &str, with: &str) {
    assert!(without.contains("used [(\"cma\", 6)]"), "{without}");
    assert_eq!(without, with);
}

#[test]
fn by_a_tiny_dev_shm_and_little_locked_memory() {
    if !possible("mountns", &[&tiny()]) {
        return;
    }
    let without = without(test_name!());
    check(&without, &with(two(test_name!(), &tiny(), &tiny())));
}

#[test]
fn by_one_user_namespace_for_both() {
    let shared = tiny().user_namespace(UNPRIVILEGED);
    if !possible("userns", &[&shared]) {
        return;
    }
    let plain = if is_inside() { String::new() } else { without(test_name!()) };
    let limit = LIMIT + Duration::from_secs(20);
    if inside(test_name!(), &shared, &[(ENV_WITHOUT, &plain)], limit) {
        let map = std::fs::read_to_string("/proc/self/uid_map").expect("procfs");
        assert_eq!(map.split_whitespace().last(), Some("1"), "the copy is in a namespace of one user");
        let with = with(Test::new(test_name!(), 2).time_limit(LIMIT));
        check(&std::env::var(ENV_WITHOUT).expect("the original has set it"), &with);
    }
}
