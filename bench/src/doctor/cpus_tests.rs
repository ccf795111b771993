use super::super::fixture::{Files, named};
use super::*;

fn machine(list: &str) -> Files {
    Files::new("cpus").with("proc/self/status", &format!("Cpus_allowed_list:\t{list}\n"))
}

#[test]
fn more_ranks_than_cpus_sleep() {
    let files = machine("0-3");
    assert_eq!(named(&findings(&files.host(), 4), "ranks and CPUs").state, State::Good);
    let many = findings(&files.host(), 5);
    let many = named(&many, "ranks and CPUs");
    assert_eq!(many.state, State::Limited);
    assert!(many.meaning.contains("sleep almost at once"), "{many:?}");
    assert!(many.fix.as_ref().unwrap().contains("at most 4 ranks"), "{many:?}");
    assert_eq!(findings(&Files::new("no-cpus").host(), 2)[0].state, State::Unknown);
}

#[test]
fn a_quota_of_either_generation_is_seen() {
    let two = machine("0-3")
        .with("proc/self/cgroup", "0::/job\n")
        .with("sys/fs/cgroup/job/cpu.max", "150000 100000\n")
        .with("sys/fs/cgroup/cpu.max", "max 100000\n");
    let found = findings(&two.host(), 4);
    let quota = named(&found, "CPU quota");
    assert_eq!(quota.state, State::Limited);
    assert!(quota.meaning.contains("1.5 CPUs"), "{quota:?}");
    assert_eq!(named(&findings(&two.host(), 1), "CPU quota").state, State::Good);
    drop(two);
    let one = machine("0-3")
        .with("proc/self/cgroup", "3:cpu,cpuacct:/job\n")
        .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n")
        .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_eq!(findings(&one.host(), 4).len(), 1);
}
