use super::super::fixture::Files;
use super::*;

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
    Max locked memory         65536                unlimited            bytes     \n\
    Max open files            what                 4096                 files     \n";

#[test]
fn limits_are_read_by_their_whole_name() {
    let files = Files::new("limits").with("proc/self/limits", LIMITS);
    let host = files.host();
    assert_eq!(limit(&host, "Max locked memory"), Ok(Limit { soft: Some(65536), hard: None }));
    assert!(limit(&host, "Max open files").unwrap_err().contains("cannot be read"));
    assert!(limit(&host, "Max address space").unwrap_err().contains("no line"));
    assert!(limit(&Files::new("no-limits").host(), "x").unwrap_err().contains("there is no"));
}

#[test]
fn cgroups_of_both_generations_are_found_upwards() {
    let files = Files::new("cgroups")
        .with("proc/self/cgroup", "5:cpuset:/a\n4:memory:/a/b\n0::/c\nnonsense\n")
        .with("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1\n")
        .with("sys/fs/cgroup/c/memory.max", "max\n");
    let host = files.host();
    let found = cgroups(&host, "memory");
    let expected = [
        (Version::One, "fs/cgroup/memory/a/b"),
        (Version::One, "fs/cgroup/memory/a"),
        (Version::One, "fs/cgroup/memory"),
        (Version::Two, "fs/cgroup/c"),
        (Version::Two, "fs/cgroup"),
    ];
    assert_eq!(found, expected.map(|(version, path)| (version, PathBuf::from(path))));
    assert_eq!(number(&host, &found[0].1, "memory.limit_in_bytes"), Some(1));
    assert_eq!(number(&host, &found[3].1, "memory.max"), None);
}
