//! A directory that looks to hwloc like the root of a Linux machine's file
//! system, for HWLOC_FSROOT.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed with everything in it when dropped.
pub struct FakeRoot(PathBuf);

impl Drop for FakeRoot {
    fn drop(&mut self) {
        // Nothing is lost when a temporary directory stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A mask as sysfs writes it, for CPUs below 32.
fn mask(cpus: &[usize]) -> String {
    format!("{:08x}", cpus.iter().fold(0_u32, |mask, cpu| mask | 1 << cpu))
}

impl FakeRoot {
    /// An empty directory.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only distinct numbers are wanted.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("lmt-fake-root-{}-{number}", std::process::id()));
        fs::create_dir(&root).expect("the temporary directory can be written");
        Self(root)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and the directories above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("it can be made");
        fs::write(path, format!("{text}\n")).expect("it can be written");
    }

    /// One package of cores without threads, whose L2 of 4 MiB is shared by
    /// two, CPUs 2n and 2n + 1. Those in `offline` are known and off.
    pub fn package_of_pairs(cpus: usize, offline: &[usize]) -> Self {
        let root = Self::new();
        let online: Vec<usize> = (0..cpus).filter(|cpu| !offline.contains(cpu)).collect();
        for cpu in 0..cpus {
            let directory = format!("sys/devices/system/cpu/cpu{cpu}");
            root.write(&format!("{directory}/online"), if online.contains(&cpu) { "1" } else { "0" });
            if online.contains(&cpu) {
                let pair: Vec<usize> = online.iter().copied().filter(|c| c / 2 == cpu / 2).collect();
                root.write_topology(&directory, cpu, &online);
                root.write_l2(&directory, &pair);
            }
        }
        let list: Vec<String> = online.iter().map(usize::to_string).collect();
        root.write("sys/devices/system/cpu/online", &list.join(","));
        root.write("proc/cpuinfo", "");
        root.write("proc/meminfo", "MemTotal: 1048576 kB");
        root
    }

    fn write_topology(&self, directory: &str, cpu: usize, package: &[usize]) {
        let topology = [
            ("core_cpus", mask(&[cpu])),
            ("thread_siblings", mask(&[cpu])),
            ("core_id", cpu.to_string()),
            ("package_cpus", mask(package)),
            ("core_siblings", mask(package)),
            ("physical_package_id", "0".to_owned()),
        ];
        for (file, text) in topology {
            self.write(&format!("{directory}/topology/{file}"), &text);
        }
    }

    fn write_l2(&self, directory: &str, cpus: &[usize]) {
        let cache = [("level", "2"), ("type", "Unified"), ("size", "4096K"), ("shared_cpu_map", &mask(cpus))];
        for (file, text) in cache {
            self.write(&format!("{directory}/cache/index0/{file}"), text);
        }
    }

    /// NUMA nodes with these CPUs.
    pub fn with_numa_nodes(self, nodes: &[&[usize]]) -> Self {
        for (node, cpus) in nodes.iter().enumerate() {
            let directory = format!("sys/devices/system/node/node{node}");
            self.write(&format!("{directory}/cpumap"), &mask(cpus));
            self.write(&format!("{directory}/meminfo"), &format!("Node {node} MemTotal: 524288 kB"));
        }
        let last = nodes.len().saturating_sub(1);
        self.write("sys/devices/system/node/online", &format!("0-{last}"));
        self
    }

    /// The reader is in a container whose cpuset (cgroup v1) has these CPUs.
    pub fn with_cpuset(self, cpus: &str) -> Self {
        self.write("proc/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0");
        self.write("proc/self/cpuset", "/container");
        self.write("sys/fs/cgroup/cpuset/container/cpuset.cpus", cpus);
        self.write("sys/fs/cgroup/cpuset/container/cpuset.mems", "0");
        self
    }

    /// The same by cgroup v2.
    pub fn with_cpuset_v2(self, cpus: &str) -> Self {
        self.write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0");
        self.write("proc/self/cgroup", "0::/container");
        self.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory");
        self.write("sys/fs/cgroup/container/cgroup.controllers", "cpuset cpu memory");
        self.write("sys/fs/cgroup/container/cpuset.cpus.effective", cpus);
        self.write("sys/fs/cgroup/container/cpuset.mems.effective", "0");
        self
    }
}
