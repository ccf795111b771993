use super::*;

#[test]
fn address_space_is_spared_for_what_is_needed() {
    let spare = |left| spare_of(left, "a cache", "cache_bytes", 100, 8);
    assert_eq!(spare(None), Ok(()));
    assert_eq!(spare(Some(800)), Ok(()));
    let short = spare(Some(799)).expect_err("it is less than eight times as much");
    let sentence = short.to_string();
    for part in
        ["a cache needs 100 bytes and 99 are available", "799 bytes", "ulimit -v", "lower cache_bytes"]
    {
        assert!(sentence.contains(part), "{sentence}");
    }
}

/// A folder as of cgroups: its groups' files, removed with it.
struct Groups(std::path::PathBuf);

impl Groups {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-cgroups-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(root)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn the_tightest_cgroup_above_counts() {
    let groups = Groups::new(
        "two",
        &[
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/memory.stat", "anon 1\ninactive_file 100\nactive_file 50\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "700\n"),
        ],
    );
    assert_eq!(cgroup_left("0::/a/b\n", &groups.0), Some(250));
    assert_eq!(cgroup_left("0::/\n", &groups.0), None, "its parent's limit is another's");
    assert_eq!(cgroup_left("garbage\n1:memory\n", &groups.0), None);
}

#[test]
fn cgroups_of_version_one_count_too() {
    let groups = Groups::new(
        "one",
        &[
            ("memory/a/memory.limit_in_bytes", "1000\n"),
            ("memory/a/memory.usage_in_bytes", "1200\n"),
            ("memory/a/memory.stat", "inactive_file 7\ntotal_inactive_file 300\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "5000\n"),
        ],
    );
    assert_eq!(cgroup_left("3:cpu,cpuacct:/a\n2:memory:/a\n0::/\n", &groups.0), Some(100));
    // As a container sees it: its own group is the mount's root.
    assert_eq!(cgroup_left("2:memory:/unseen/b\n", &groups.0), Some(9223372036854771712 - 5000));
}

#[test]
fn pages_are_taken_only_where_a_margin_is_left() {
    const MARGIN: u64 = Allowance::MARGIN_BYTES;
    let allowance = Allowance::default();
    let within = |bytes| move || Available { bytes: Some(bytes), limit: "a cgroup".into() };
    let tight = allowance.take_of(4096, within(MARGIN + 4095));
    assert_eq!(tight, Err(Available { bytes: Some(MARGIN + 4095), limit: "a cgroup".into() }));
    assert_eq!(allowance.take_of(4096, within(MARGIN + 4096)), Ok(()));
    // Part of what was left may be taken without a look, and not more.
    let part = MARGIN / Allowance::PARTS;
    assert_eq!(allowance.take_of(part, || panic!("no look is needed")), Ok(()));
    assert!(allowance.take_of(1, within(0)).is_err());
    assert_eq!(allowance.take_of(1, || Available { bytes: None, limit: String::new() }), Ok(()));
    assert_eq!(allowance.take_of(Allowance::MAX_BYTES, || panic!("no look is needed")), Ok(()));
    assert!(allowance.take_of(1, within(0)).is_err());
}
