use super::super::fixture::{Files, named};
use super::*;

fn soft(bytes: u64) -> Result<Limit, String> {
    Ok(Limit { soft: Some(bytes), hard: None })
}

#[test]
fn the_tightest_cgroup_speaks() {
    let files = Files::new("memory")
        .with("proc/self/cgroup", "0::/outer/inner\n")
        .with("sys/fs/cgroup/outer/inner/memory.max", "max\n")
        .with("sys/fs/cgroup/outer/inner/memory.high", "max\n")
        .with("sys/fs/cgroup/outer/memory.max", "104857600\n")
        .with("sys/fs/cgroup/outer/memory.high", "max\n")
        .with("sys/fs/cgroup/outer/memory.current", "94371840\n");
    let good = cgroup(&files.host(), 2);
    assert_eq!(good.state, State::Good);
    assert!(good.meaning.contains("fs/cgroup/outer: limit 100 MiB"), "{good:?}");
    assert!(good.meaning.contains("10 MiB are left"), "{good:?}");
    let tight = cgroup(&files.host(), 3);
    assert_eq!(tight.state, State::Limited);
    assert!(tight.fix.unwrap().contains("memory.max"));
    let high = files.with("sys/fs/cgroup/outer/memory.high", "94371840\n");
    assert_eq!(cgroup(&high.host(), 2).state, State::Limited);
}

#[test]
fn the_first_generations_huge_number_is_no_limit() {
    let files = Files::new("memory-one")
        .with("proc/self/cgroup", "4:memory:/job\n")
        .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
    assert_eq!(cgroup(&files.host(), 1024).meaning, "none");
    let limited = files
        .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2097152\n")
        .with("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1048576\n");
    assert_eq!(cgroup(&limited.host(), 1).state, State::Limited);
}

#[test]
fn limits_on_memory_are_told_with_what_is_needed() {
    assert_eq!(locked(soft(64 << 10)).state, State::Good);
    assert_eq!(locked(soft(0)).state, State::Limited);
    assert_eq!(locked(Ok(Limit { soft: None, hard: None })).state, State::Good);
    assert_eq!(locked(Err("x".into())).state, State::Unknown);
    assert_eq!(address_space(soft(1 << 30), 2).state, State::Good);
    let tight = address_space(soft(1 << 30), 100);
    assert_eq!(tight.state, State::Limited);
    assert_eq!(tight.fix.as_deref(), Some("ulimit -v unlimited"));
}

#[test]
fn pages_of_every_kind_are_looked_at() {
    let files = Files::new("pages")
        .with("proc/sys/vm/nr_hugepages", "0\n")
        .with("proc/sys/vm/memfd_noexec", "2\n")
        .with("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
        .with(
            "sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "always within_size advise [never] deny force\n",
        );
    let found = findings(&files.host(), 2);
    assert_eq!(named(&found, "reserved huge pages").state, State::Missing);
    assert_eq!(named(&found, "vm.memfd_noexec").state, State::Limited);
    let never = named(&found, "transparent huge pages");
    assert_eq!(never.state, State::Limited);
    assert!(never.fix.as_ref().unwrap().starts_with("echo madvise"));
    assert_eq!(named(&found, "shared huge pages").state, State::Missing);
    let files = files
        .with("proc/sys/vm/nr_hugepages", "8\n")
        .with("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
        .with("sys/kernel/mm/transparent_hugepage/shmem_enabled", "what\n");
    let found = findings(&files.host(), 2);
    assert_eq!(named(&found, "reserved huge pages").state, State::Good);
    assert_eq!(named(&found, "transparent huge pages").state, State::Good);
    assert_eq!(named(&found, "shared huge pages").state, State::Unknown);
}

/// However small it is: nothing depends on it.
#[test]
fn the_folder_that_is_not_used_is_never_at_fault() {
    assert_eq!(shm_folder(&Files::new("no-shm").host()).state, State::Good);
    let here = shm_folder(&Host::default());
    assert_eq!(here.state, State::Good);
    assert!(here.meaning.contains("does not use it"), "{here:?}");
}
