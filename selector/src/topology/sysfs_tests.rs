use std::sync::atomic::{AtomicU32, Ordering};

use super::super::{Machine, Place, Source, TopologyError};
use super::*;
use crate::topology::testing::cpus;

/// A folder with files, which goes at the end.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only distinct numbers are wanted.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("lmt-sysfs-{}-{number}", std::process::id())))
    }

    fn with(self, path: &str, text: &str) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// A CPU of a package of four whose cores have two threads.
    fn with_cpu(self, cpu: u32) -> Self {
        let (package, core) = (cpu / 4, cpu / 2);
        let of_package = format!("{}-{}", package * 4, package * 4 + 3);
        let of_core = format!("{}-{}", core * 2, core * 2 + 1);
        let file = |name: &str| format!("cpu/cpu{cpu}/{name}");
        self.with(&file("topology/package_cpus_list"), &of_package)
            .with(&file("topology/physical_package_id"), &package.to_string())
            .with(&file("topology/core_cpus_list"), &of_core)
            .with(&file("cache/index0/type"), "Instruction")
            .with(&file("cache/index0/level"), "1")
            .with(&file("cache/index1/type"), "Unified")
            .with(&file("cache/index1/level"), "3")
            .with(&file("cache/index1/size"), "32768K")
            .with(&file("cache/index1/shared_cpu_list"), &of_package)
    }

    fn machine(&self) -> Result<Machine, TopologyError> {
        Machine::copy_of(&Files::below(&self.0), Source::ThisSystem)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_describe_packages_cores_and_caches() {
    let root = (0..8).fold(Root::new().with("cpu/online", "0-7").with("cpu/present", "0-9"), Root::with_cpu);
    let machine = root.machine().unwrap();
    assert_eq!((machine.packages().len(), machine.cores().len(), machine.caches().len()), (2, 4, 2));
    assert_eq!(machine.caches()[0].bytes, 32 << 20);
    assert_eq!(machine.caches()[0].cores, 2);
    assert_eq!(machine.offline(), &cpus([8, 9]));
    assert_eq!(machine.place(&cpus([0]), &cpus([1])), Place::SameCore);
    assert_eq!(machine.place(&cpus([0]), &cpus([2])), Place::SharedL3);
    assert_eq!(machine.place(&cpus([0]), &cpus([4])), Place::Other);
}

#[test]
fn folders_without_files_are_a_machine_all_the_same() {
    let machine = Root::new().with("cpu/online", "0-1").machine().unwrap();
    assert!(machine.cores().is_empty() && machine.caches().is_empty());
    assert_eq!(machine.numa_nodes().len(), 1);
    assert_eq!(machine.place(&cpus([0]), &cpus([1])), Place::SameNuma);
    let error = Root::new().machine().unwrap_err();
    assert!(matches!(error, TopologyError::NoCpu { .. }), "{error}");
}

#[test]
fn numa_nodes_are_told_apart() {
    let root = Root::new().with("cpu/online", "0-3").with("node/node0/cpulist", "0-1");
    let machine = root.with("node/node1/cpulist", "2-3").with("node/node2/cpulist", "").machine().unwrap();
    assert_eq!(machine.numa_nodes().len(), 3);
    assert_eq!(machine.place(&cpus([0]), &cpus([1])), Place::SameNuma);
    assert_eq!(machine.place(&cpus([1]), &cpus([2])), Place::Other);
}

#[test]
fn lists_and_sizes_are_those_of_the_kernel() {
    assert_eq!(cpus_of_list("0-2,8"), Some(vec![0, 1, 2, 8]));
    assert_eq!(cpus_of_list(""), Some(vec![]));
    for wrong in ["a", "1-", "0-4294967295", ","] {
        assert_eq!(cpus_of_list(wrong), None, "{wrong}");
    }
    assert_eq!([bytes_of("32K"), bytes_of("1M"), bytes_of("7")], [Some(32 << 10), Some(1 << 20), Some(7)]);
    assert_eq!([bytes_of("K"), bytes_of("1G"), bytes_of("")], [None, None, None]);
}

/// On most machines hwloc reads the same files.
#[cfg(feature = "hwloc")]
#[test]
fn this_machine_is_that_of_hwloc() {
    let by_files = Machine::copy_of(&Files::of_this_machine(), Source::ThisSystem).unwrap();
    assert_eq!(crate::topology::without_hwloc(), None, "hwloc is installed where this is tested");
    let by_hwloc = Machine::load().unwrap();
    if !by_hwloc.is_this_system() {
        println!("SKIPPED this machine as hwloc has it: a variable describes another");
        return;
    }
    assert_eq!(by_files.online(), by_hwloc.online());
    let pairs = || by_files.online().iter().flat_map(|a| by_files.online().iter().map(move |b| (a, b)));
    for (a, b) in pairs() {
        let place = |machine: &Machine| machine.place(&cpus([a]), &cpus([b]));
        assert_eq!(place(&by_files), place(&by_hwloc), "CPUs {a} and {b}");
    }
}
