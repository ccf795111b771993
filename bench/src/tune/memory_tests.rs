use super::*;
use crate::doctor::fixture::Files;

const MEMINFO: &str = "MemTotal: 4194304 kB\nMemAvailable:    2097152 kB\n";

/// CPUs with a nearer cache each, and these last ones.
fn machine(last: &[(usize, &str, &str)]) -> Files {
    let mut files = Files::new("tune-memory");
    for (cpu, size, sharing) in last {
        let file = |index: u32, name| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
        files = files
            .with(&file(0, "level"), "1\n")
            .with(&file(0, "size"), "48K\n")
            .with(&file(0, "shared_cpu_list"), &format!("{cpu}\n"))
            .with(&file(1, "level"), "3\n")
            .with(&file(1, "size"), size)
            .with(&file(1, "shared_cpu_list"), sharing);
    }
    files
}

#[test]
fn memory_is_what_the_machine_has_left() {
    let files = Files::new("meminfo").with("proc/meminfo", MEMINFO);
    assert_eq!(available_bytes(&files.host()), Some(2 << 30));
    assert_eq!(available_bytes(&Files::new("nothing").host()), None);
}

#[test]
fn a_cgroup_that_leaves_less_decides() {
    let files = Files::new("cgroup")
        .with("proc/meminfo", MEMINFO)
        .with("proc/self/cgroup", "0::/job\n")
        .with("sys/fs/cgroup/job/memory.max", "536870912\n")
        .with("sys/fs/cgroup/job/memory.high", "max\n")
        .with("sys/fs/cgroup/job/memory.current", "402653184\n");
    assert_eq!(available_bytes(&files.host()), Some(128 << 20));
    // Cached files can go.
    let files = files.with("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 134217728\nslab 3\n");
    assert_eq!(available_bytes(&files.host()), Some(256 << 20));
    let files = files.with("sys/fs/cgroup/job/memory.high", "402653184\n");
    assert_eq!(available_bytes(&files.host()), Some(128 << 20));
    let first = Files::new("cgroup-1")
        .with("proc/meminfo", MEMINFO)
        .with("proc/self/cgroup", "4:memory:/job\n")
        .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n")
        .with("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4194304\n");
    assert_eq!(available_bytes(&first.host()), Some(96 << 20));
}

#[test]
fn all_four_buffers_of_each_process_count() {
    let largest = 16 << 20;
    // 64 MiB of buffers and 16 MiB of endpoints for each process, of half the memory.
    assert_eq!(max_pairs_within(640 << 20, &[1, largest], 8), 2);
    assert_eq!(max_pairs_within((640 << 20) - 1, &[1, largest], 8), 1);
    assert_eq!(max_pairs_within(1 << 20, &[largest], 8), 0);
}

#[test]
fn each_last_cache_sees_twice_its_size() {
    // Both share it: four buffers of half its size.
    let one = machine(&[(0, "32768K", "0-1"), (1, "32768K", "0-1")]);
    let both = rotation(&one.host(), &[0, 1], 4096, None);
    assert_eq!(both, Rotation { bytes: 16 << 20, shortfall: None });
    // Each has its own: two buffers pass through each, at least.
    let two = machine(&[(0, "32768K", "0"), (1, "32768K", "1")]);
    assert_eq!(rotation(&two.host(), &[0, 1], 4096, None).bytes, 32 << 20);
    // The largest for each process decides.
    let uneven = machine(&[(0, "8192K", "0"), (1, "32768K", "1-2"), (2, "32768K", "1-2"), (3, "4096K", "3")]);
    assert_eq!(rotation(&uneven.host(), &[0, 1, 2, 3], 4096, None).bytes, 16 << 20);
    // A message that is longer than that fits in any case.
    assert_eq!(rotation(&uneven.host(), &[0, 3], 16 << 20, None).bytes, 16 << 20);
    assert_eq!(rotation(&Files::new("none").host(), &[0, 1], 1, None).bytes, 32 << 20, "64 MiB are assumed");
}

#[test]
fn what_is_not_to_be_had_is_said() {
    let virtual_one = machine(&[(0, "491520K", "0"), (1, "491520K", "1")]);
    let by_time = rotation(&virtual_one.host(), &[0, 1], 16 << 20, None);
    assert_eq!(by_time.bytes, 256 << 20);
    let sentence = by_time.shortfall.unwrap();
    assert!(sentence.contains("480 MiB") && sentence.contains("time for"), "{sentence}");
    // A quarter of 1 GiB, in four buffers, even where a message is longer.
    let by_memory = rotation(&virtual_one.host(), &[0, 1], 128 << 20, Some(1 << 30));
    assert_eq!(by_memory.bytes, 64 << 20);
    let sentence = by_memory.shortfall.unwrap();
    assert!(sentence.contains("memory for"), "{sentence}");
}
