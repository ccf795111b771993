//! Where a machine's description comes from: this machine, hwloc's variables,
//! files. Variables belong to a whole process, so this test starts itself again
//! with the ones that are tried.
#![cfg(not(loom))]

mod fake_root;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fake_root::FakeRoot;
use lmt_conformance::require::skipped;
use lmt_core::cpu_set::CpuSet;
use lmt_selector::dma_min::DmaMin;
use lmt_selector::topology::{Machine, Place, TopologyError};

/// What hwloc obeys; a child gets only those that its test sets.
const VARIABLES: [&str; 6] = [
    "HWLOC_SYNTHETIC",
    "HWLOC_XMLFILE",
    "HWLOC_FSROOT",
    "HWLOC_COMPONENTS",
    "HWLOC_CPUID_PATH",
    "HWLOC_THISSYSTEM",
];

/// Set for a child: pins itself to this CPU first.
const PIN: &str = "LMT_TEST_PIN";

/// Set for a child: enters the cpuset whose directory this is first.
const CPUSET: &str = "LMT_TEST_CPUSET";

/// What a child says of the machine that it loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Described {
    sentence: String,
    source: String,
    is_this_system: bool,
}

/// Lets a child with these variables load its machine.
fn load_with(variables: &[(&str, &OsStr)]) -> Result<Described, String> {
    let mut child = Command::new(std::env::current_exe().expect("this test is a program"));
    for name in VARIABLES {
        child.env_remove(name);
    }
    child.args(["a_machine_is_loaded_and_described", "--exact", "--nocapture"]);
    child.envs(variables.iter().copied()).env("LMT_TEST_CHILD", "1").stdin(Stdio::null());
    let output = child.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let field = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map(str::to_owned)
    };
    match field("@error ") {
        Some(error) => Err(error),
        None => Ok(Described {
            sentence: field("@machine ").expect("the child says so"),
            source: field("@source ").expect("the child says so"),
            is_this_system: field("@this ").expect("the child says so") == "true",
        }),
    }
}

/// As a child, says what [`load_with`] reads; otherwise loads the machine that
/// the tests run on.
#[test]
fn a_machine_is_loaded_and_described() {
    if let Some(directory) = std::env::var_os(CPUSET) {
        let processes = PathBuf::from(directory).join("cgroup.procs");
        std::fs::write(processes, std::process::id().to_string()).expect("the parent could make the cpuset");
    }
    if let Ok(cpu) = std::env::var(PIN) {
        pin(cpu.parse().expect("a CPU"));
    }
    let machine = Machine::load();
    if std::env::var_os("LMT_TEST_CHILD").is_some() {
        match machine {
            Ok(machine) => println!(
                "\n@machine {machine}\n@source {}\n@this {}",
                machine.source(),
                machine.is_this_system()
            ),
            Err(error) => println!("\n@error {error}"),
        }
    } else if VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
        let machine = machine.expect("the machine that runs this can be described");
        assert!(machine.is_this_system());
        assert_eq!(machine.source().to_string(), "this machine");
        let here = CpuSet::of_this_thread();
        assert!(here.is_within(machine.online()), "{here} of {}", machine.online());
        assert_eq!(machine.place(&here, &here), machine.place(&here, &here.union(&here)));
    }
}

fn pin(cpu: usize) {
    let set = CpuSet::from_iter([cpu]);
    // SAFETY: the set has as many bytes as are said, and is only read.
    let answer = unsafe { libc::sched_setaffinity(0, CpuSet::BYTES, set.as_bytes().as_ptr().cast()) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines").join(name)
}

fn cpus<const N: usize>(cpus: [usize; N]) -> CpuSet {
    CpuSet::from_iter(cpus)
}

#[test]
fn the_synthetic_variable() {
    let e5345 = "package:2 l2:2(size=4194304) core:2 pu:1";
    let described = load_with(&[("HWLOC_SYNTHETIC", OsStr::new(e5345))]).expect("it is right");
    assert!(!described.is_this_system);
    assert_eq!(described.source, format!("the machine of HWLOC_SYNTHETIC='{e5345}'"));
    assert_eq!(
        described.sentence,
        "2 packages, 1 NUMA node, 8 cores, 8 CPUs online (0-7); 4 x 4 MiB of L2, each shared by 2 cores"
    );
}

/// hwloc alone would describe the running machine, with a status of success.
#[test]
fn a_wrong_synthetic_variable_is_an_error() {
    for wrong in ["nonsense", "", "core:2", "package:2 package:2 pu:1"] {
        let error = load_with(&[("HWLOC_SYNTHETIC", OsStr::new(wrong))]).expect_err(wrong);
        assert!(
            error.starts_with(&format!("HWLOC_SYNTHETIC: '{wrong}' is not a synthetic machine")),
            "{error}"
        );
    }
}

#[test]
fn the_xml_variable() {
    let path = fixture("hybrid.xml");
    let described = load_with(&[("HWLOC_XMLFILE", path.as_os_str())]).expect("it is right");
    assert!(!described.is_this_system);
    assert!(described.source.starts_with("the machine of HWLOC_XMLFILE='"), "{}", described.source);
    assert!(described.sentence.contains("6 cores, 8 CPUs online (0-7)"), "{}", described.sentence);
}

#[test]
fn a_wrong_xml_variable_is_an_error() {
    let root = FakeRoot::new();
    root.write("no.xml", "This is no machine.");
    root.write("other.xml", "<?xml version=\"1.0\"?><html></html>");
    let whole = std::fs::read_to_string(fixture("hybrid.xml")).expect("it is there");
    root.write("cut.xml", &whole[..whole.len() / 2]);
    let absent = root.path().join("absent.xml");
    let unreadable = [absent.as_os_str(), root.path().as_os_str(), OsStr::new("-"), OsStr::new("")];
    for path in unreadable {
        let error = load_with(&[("HWLOC_XMLFILE", path)]).expect_err("nothing can be read");
        assert!(error.starts_with("HWLOC_XMLFILE: the machine's XML file '"), "{error}");
        assert!(error.contains("cannot be read (") && error.contains("lstopo machine.xml"), "{error}");
    }
    let error = load_with(&[("HWLOC_XMLFILE", OsStr::new("-"))]).expect_err("it is the program's");
    assert!(error.contains("standard input belongs to the program"), "{error}");
    for name in ["no.xml", "other.xml", "cut.xml"] {
        let path = root.path().join(name);
        let error = load_with(&[("HWLOC_XMLFILE", path.as_os_str())]).expect_err(name);
        assert!(
            error.starts_with("HWLOC_XMLFILE: '") && error.contains("is not a machine in the XML"),
            "{error}"
        );
    }
}

/// Neither waits for a writer, nor reads without end, nor leaves to hwloc what it
/// would crash on, whichever variable has it read the file.
#[test]
fn an_xml_variable_that_names_no_file_of_a_machine_is_an_error() {
    let root = FakeRoot::new();
    let fifo = root.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let long = root.path().join("long.xml");
    let file = std::fs::File::create(&long).expect("it is ours");
    file.set_len((64 << 20) + 1).expect("it holds nothing");
    root.write("no.xml", "This is no machine.");
    let wrong = [
        (fifo, "it is no regular file"),
        (PathBuf::from("/dev/zero"), "it is no regular file"),
        (long, "it is longer than 64 MiB"),
        (root.path().join("no.xml"), "is not a machine in the XML"),
    ];
    for (path, words) in wrong {
        for components in [&[][..], &[("HWLOC_COMPONENTS", OsStr::new("xml"))]] {
            let variables = [components, &[("HWLOC_XMLFILE", path.as_os_str())]].concat();
            let error = load_with(&variables).expect_err(words);
            assert!(error.starts_with("HWLOC_XMLFILE: ") && error.contains(words), "{error}");
        }
    }
}

#[test]
fn the_root_variable() {
    let root = FakeRoot::package_of_pairs(4, &[]);
    let described = load_with(&[("HWLOC_FSROOT", root.path().as_os_str())]).expect("it is right");
    assert!(!described.is_this_system);
    assert_eq!(
        described.sentence,
        "1 package, 1 NUMA node, 4 cores, 4 CPUs online (0-3); 2 x 4 MiB of L2, each shared by 2 cores"
    );
    let real = load_with(&[("HWLOC_FSROOT", OsStr::new("/"))]).expect("this machine is there");
    assert!(real.is_this_system);
}

/// hwloc alone would count the CPUs of the running machine, without caches.
#[test]
fn a_wrong_root_variable_is_an_error() {
    let root = FakeRoot::new();
    root.write("empty/readme", "");
    root.write("cpus/sys/devices/system/cpu/cpu0/online", "1");
    for name in ["absent", "empty", "cpus"] {
        let path = root.path().join(name);
        let error = load_with(&[("HWLOC_FSROOT", path.as_os_str())]).expect_err(name);
        assert!(error.starts_with("HWLOC_FSROOT: no machine is described under '"), "{error}");
        assert!(error.contains("hwloc-gather-topology"), "{error}");
    }
    load_with(&[("HWLOC_FSROOT", OsStr::new(""))]).expect_err("no directory has that name");
}

/// A folder with a libhwloc.so.15 of this source; with none, of no library at all.
fn folder_with_hwloc(source: Option<&str>) -> FakeRoot {
    let root = FakeRoot::new();
    root.write("libhwloc.so.15", "This is no library.");
    if let Some(source) = source {
        root.write("hwloc.c", source);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o", "libhwloc.so.15", "hwloc.c"]).current_dir(root.path());
        assert!(compiler.status().expect("a C compiler links this test, so there is one").success());
    }
    root
}

#[test]
fn without_hwloc_the_kernels_files_describe_this_machine_and_no_other() {
    let all = load_with(&[]).expect("this machine is there");
    let libraries = [
        (None, "libhwloc.so.15: "),
        (Some("unsigned hwloc_get_api_version(void) { return 0x30000; }"), "has interface 0x00030000"),
        (Some("unsigned hwloc_get_api_version(void) { return 0x20800; }"), "libhwloc.so.15 lacks a function"),
        (Some("int nothing;"), "libhwloc.so.15 lacks a function"),
    ];
    for (source, reason) in libraries {
        let root = folder_with_hwloc(source);
        let library = ("LD_LIBRARY_PATH", root.path().as_os_str());
        let described = load_with(&[library]).expect("the kernel describes it");
        assert!(described.is_this_system);
        let cpus = |described: &Described| described.sentence.split(" CPUs online").next().map(str::to_owned);
        assert_eq!(cpus(&described), cpus(&all));
        let error = load_with(&[library, ("HWLOC_SYNTHETIC", OsStr::new("pu:3"))]).expect_err(reason);
        let begins = "only hwloc 2 describes the machine of HWLOC_SYNTHETIC='pu:3', and ";
        assert!(error.starts_with(begins) && error.contains(reason), "{error}");
        assert!(error.contains(": install hwloc 2 (Debian and Ubuntu: libhwloc15; "), "{error}");
        assert!(error.ends_with("), or unset HWLOC_SYNTHETIC"), "{error}");
    }
}

/// hwloc's order is kept: the root, then synthetic, then XML.
#[test]
fn of_several_variables_the_first_counts() {
    let root = FakeRoot::package_of_pairs(2, &[]);
    let xml = fixture("hybrid.xml");
    let all = [
        ("HWLOC_XMLFILE", xml.as_os_str()),
        ("HWLOC_SYNTHETIC", OsStr::new("pu:3")),
        ("HWLOC_FSROOT", root.path().as_os_str()),
    ];
    let source = |count: usize| load_with(&all[..count]).expect("all are right").source;
    assert!(source(1).contains("HWLOC_XMLFILE"));
    assert!(source(2).contains("HWLOC_SYNTHETIC"));
    assert!(source(3).contains("HWLOC_FSROOT"));
    // Where components are chosen, the others count only if chosen.
    let none = load_with(&[all[1], ("HWLOC_COMPONENTS", OsStr::new("linux"))]).expect("it is this machine");
    assert!(none.is_this_system);
    assert_eq!(none.source, "this machine");
    let chosen = load_with(&[all[1], ("HWLOC_COMPONENTS", OsStr::new("synthetic"))]).expect("it is chosen");
    assert!(!chosen.is_this_system);
    assert!(chosen.sentence.contains("3 CPUs online"), "{}", chosen.sentence);
}

/// The user vouches that the file describes this machine.
#[test]
fn a_file_may_be_said_to_be_this_machine() {
    let path = fixture("hybrid.xml");
    let vouched = [("HWLOC_XMLFILE", path.as_os_str()), ("HWLOC_THISSYSTEM", OsStr::new("1"))];
    let described = load_with(&vouched).expect("it is right");
    assert!(described.is_this_system);
    assert!(described.source.contains("HWLOC_XMLFILE"), "{}", described.source);
    let root = FakeRoot::package_of_pairs(4, &[]);
    let vouched = [("HWLOC_FSROOT", root.path().as_os_str()), ("HWLOC_THISSYSTEM", OsStr::new("1"))];
    let described = load_with(&vouched).expect("it is right");
    assert!(described.is_this_system);
    assert!(described.source.contains("HWLOC_FSROOT"), "{}", described.source);
}

/// Four E cores share an L2; each P core has its own, with two threads.
#[test]
fn hybrid_processors() {
    let machine = Machine::from_xml(fixture("hybrid.xml")).expect("it is right");
    let place = |a, b| machine.place(&cpus([a]), &cpus([b]));
    assert_eq!(place(0, 1), Place::SameCore);
    assert_eq!(place(4, 7), Place::SharedL2);
    assert_eq!(place(0, 2), Place::SharedL3);
    assert_eq!(place(3, 4), Place::SharedL3);
    let kinds: Vec<_> = [0, 4]
        .map(|cpu| machine.caches_of(cpu).map(|c| (c.level, c.bytes, c.cores)).collect::<Vec<_>>())
        .into();
    assert_eq!(kinds[0], [(1, 48 << 10, 1), (2, 1280 << 10, 1), (3, 12 << 20, 6)]);
    assert_eq!(kinds[1], [(1, 32 << 10, 1), (2, 2 << 20, 4), (3, 12 << 20, 6)]);
    // 12 MiB / (2 x 6 cores) = 1 MiB on both kinds.
    let dma_min = DmaMin::by_cores(&machine, &cpus([0, 4])).expect("its caches are known");
    assert_eq!(dma_min.bytes, 1_048_576);
}

/// Cores that this process may not use share caches all the same.
#[test]
fn restricted_processes_see_the_whole_machine() {
    let from_file = Machine::from_xml(fixture("restricted.xml")).expect("it is right");
    assert_eq!(from_file.allowed(), &cpus([1, 2]));
    assert_eq!(from_file.online(), &cpus([0, 1, 2, 3]));
    assert_eq!(from_file.largest_cache(1).map(|cache| cache.cores), Some(2));
    assert_eq!(from_file.place(&cpus([0]), &cpus([1])), Place::SharedL2);
    // 4 MiB / (2 x 2 cores), though this process has one of the two.
    let dma_min = DmaMin::by_cores(&from_file, &cpus([1])).expect("its caches are known");
    assert_eq!(dma_min.bytes, 1_048_576);

    let expected = "1 package, 1 NUMA node, 4 cores, 4 CPUs online (0-3), of which this process may use 2 \
                    (1-2); 2 x 4 MiB of L2, each shared by 2 cores";
    for root in [
        FakeRoot::package_of_pairs(4, &[]).with_numa_nodes(&[&[0, 1, 2, 3]]).with_cpuset("1-2"),
        FakeRoot::package_of_pairs(4, &[]).with_numa_nodes(&[&[0, 1, 2, 3]]).with_cpuset_v2("1-2"),
    ] {
        let described = load_with(&[("HWLOC_FSROOT", root.path().as_os_str())]).expect("it is right");
        assert_eq!(described.sentence, expected);
    }
}

/// The CPU beside the one that is offline has the cache alone, and a CPU 0 that
/// is offline is no obstacle.
#[test]
fn offline_cores() {
    let machine = Machine::from_xml(fixture("offline.xml")).expect("it is right");
    assert_eq!((machine.online(), machine.offline()), (&cpus([0, 1, 2]), &cpus([3])));
    assert_eq!(machine.place(&cpus([2]), &cpus([3])), Place::Other);
    // 4 MiB / (2 x 2 cores) beside, 4 MiB / (2 x 1 core) where the other is off.
    let dma_min = |cpu| DmaMin::by_cores(&machine, &cpus([cpu])).map(|dma_min| dma_min.bytes);
    assert_eq!([dma_min(0), dma_min(2), dma_min(3)], [Some(1_048_576), Some(2_097_152), None]);

    let root = FakeRoot::package_of_pairs(4, &[0, 3]);
    let described = load_with(&[("HWLOC_FSROOT", root.path().as_os_str())]).expect("it is right");
    assert_eq!(
        described.sentence,
        "1 package, 1 NUMA node, 2 cores, 2 CPUs online (1-2), 2 offline (0,3); 2 x 4 MiB of L2, each of one core"
    );
}

/// Virtual machines may say that there is a cache and not how large it is.
#[test]
fn caches_of_unknown_size_are_places_and_give_no_dma_min() {
    let root = FakeRoot::new();
    let whole = std::fs::read_to_string(fixture("restricted.xml")).expect("it is there");
    root.write("machine.xml", &whole.replace("cache_size=\"4194304\"", "cache_size=\"0\""));
    let machine = Machine::from_xml(root.path().join("machine.xml")).expect("it is right");
    assert_eq!(machine.place(&cpus([0]), &cpus([1])), Place::SharedL2);
    assert_eq!(machine.largest_cache(0), None);
    assert_eq!(DmaMin::by_cores(&machine, &cpus([0])), None);
    assert!(machine.to_string().ends_with("2 x L2 of unknown size, each shared by 2 cores"), "{machine}");
}

#[test]
fn numa_nodes_within_a_package_and_none() {
    let two = FakeRoot::package_of_pairs(4, &[]).with_numa_nodes(&[&[0, 1], &[2, 3]]);
    let described = load_with(&[("HWLOC_FSROOT", two.path().as_os_str())]).expect("it is right");
    assert!(described.sentence.starts_with("1 package, 2 NUMA nodes, 4 cores"), "{}", described.sentence);
    // Without sys/devices/system/node hwloc describes one node for all.
    let none = FakeRoot::package_of_pairs(4, &[]);
    let described = load_with(&[("HWLOC_FSROOT", none.path().as_os_str())]).expect("it is right");
    assert!(described.sentence.starts_with("1 package, 1 NUMA node, 4 cores"), "{}", described.sentence);
}

/// Pinning changes where the process runs and nothing about the machine.
#[test]
fn a_pinned_process_sees_the_whole_machine() {
    let free = load_with(&[]).expect("this machine can be described");
    let first = CpuSet::of_this_thread().iter().next().expect("this runs somewhere").to_string();
    let pinned = load_with(&[(PIN, OsStr::new(&first))]).expect("this machine can be described");
    assert_eq!(pinned, free);
}

/// A cpuset of the kernel's, made for one child.
struct Cpuset(PathBuf);

impl Cpuset {
    fn with(cpu: &str) -> std::io::Result<Self> {
        let parent = Path::new("/sys/fs/cgroup/cpuset");
        let memory = std::fs::read_to_string(parent.join("cpuset.mems"))?;
        let directory = parent.join(format!("lmt-test-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        let cpuset = Self(directory);
        std::fs::write(cpuset.0.join("cpuset.mems"), memory)?;
        std::fs::write(cpuset.0.join("cpuset.cpus"), cpu)?;
        Ok(cpuset)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).expect("its processes have ended");
    }
}

#[test]
fn a_process_in_a_cpuset_sees_the_whole_machine() {
    let free = load_with(&[]).expect("this machine can be described");
    let first = CpuSet::of_this_thread().iter().next().expect("this runs somewhere").to_string();
    let cpuset = match Cpuset::with(&first) {
        Ok(cpuset) => cpuset,
        Err(error) => return skipped("cpuset", &format!("no cpuset can be made as cgroups v1 do ({error})")),
    };
    let held = load_with(&[(CPUSET, cpuset.0.as_os_str())]).expect("this machine can be described");
    let may_use = format!(", of which this process may use 1 ({first})");
    match free.sentence.contains(" 1 CPU online") {
        true => assert_eq!(held, free),
        false => {
            assert!(held.sentence.contains(&may_use), "{}", held.sentence);
            assert_eq!(held.sentence.replace(&may_use, ""), free.sentence);
        }
    }
}

#[test]
fn errors_keep_their_cause() {
    let error = Machine::from_xml(fixture("absent.xml")).expect_err("it is not there");
    match error {
        TopologyError::File { source, .. } => assert_eq!(source.raw_os_error(), Some(libc::ENOENT)),
        other => panic!("{other}"),
    }
}
