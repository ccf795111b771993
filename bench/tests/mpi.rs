//! `lmt compare --mpi`, `lmt mpirun-env` and what `lmt doctor` says of MPIs, as
//! users start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lmt_conformance::require;

/// However loaded the machine is, this is longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(170);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-test-mpi-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Runs the command: its status, what it said and its complaints.
    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let (out, err) = (self.0.join("out"), self.0.join("err"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
        command.args(arguments).env("PATH", "/usr/bin:/bin").env("TMPDIR", &self.0).stdin(Stdio::null());
        for name in ["FI_PROVIDER", "FI_PROVIDER_PATH", "LMT_FI", "LMT_STATS"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if Instant::now() >= deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{arguments:?} did not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        (status, fs::read_to_string(out).unwrap(), fs::read_to_string(err).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lines_for_a_shell_name_the_provider() {
    let folder = Folder::new("env");
    let library = folder.path("liblmt-fi.so");
    fs::write(&library, "").unwrap();
    for (mpi, line) in [
        ("mpich", "export MPIR_CVAR_NOLOCAL=1"),
        ("openmpi", "export OMPI_MCA_mtl_ofi_provider_include=lmt"),
        ("intelmpi", "export I_MPI_OFI_PROVIDER=lmt"),
    ] {
        // An MPI of this machine would be named.
        let nowhere = [("PATH", "/nowhere")];
        let (status, text, complaints) = folder.run(&["mpirun-env", mpi, "--provider", &library], &nowhere);
        let is_told = complaints.contains(" that works is found here; one from elsewhere");
        assert!(status == Some(0) && is_told && complaints.lines().count() == 1, "{mpi}: {complaints}");
        assert!(text.lines().any(|one| one == line), "{text}");
        let path = folder.0.canonicalize().unwrap();
        let path = format!("export FI_PROVIDER_PATH={}", path.display());
        assert!(text.lines().any(|one| one.starts_with(&path)), "{text}");
    }
    let arguments = ["mpirun-env", "openmpi", "--provider", &library, "--link", "tcp:eth0"];
    let (status, text, _) = folder.run(&arguments, &[]);
    assert_eq!(status, Some(0));
    for line in ["export FI_LNX_PROV_LINKS=lmt+tcp:eth0", "export OMPI_MCA_mtl_ofi_provider_include=lnx"] {
        assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{text}");
    }
    assert!(!text.contains("provider_include=lmt"), "{text}");
}

#[test]
fn what_is_missing_or_wrong_is_one_sentence() {
    let folder = Folder::new("wrong");
    let absent = folder.path("absent-fi.so");
    let other = folder.path("libother.so");
    let library = folder.path("liblmt-fi.so");
    fs::write(&library, "").unwrap();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["mpirun-env", "nobody's"], 2, "intelmpi"),
        (&["mpirun-env", "openmpi", "--link", "tcp"], 2, "tcp:eth0"),
        (&["mpirun-env", "mpich", "--provider", &library, "--link", "tcp:lo"], 2, "--link is for openmpi"),
        (&["mpirun-env", "mpich", "--provider", &absent], 1, "make fi builds liblmt-fi.so"),
        (&["mpirun-env", "mpich", "--provider", &other], 1, "ends in -fi.so"),
        (&["compare", "--mpi", "--provider", &absent], 1, "make fi builds liblmt-fi.so"),
        (&["compare", "--provider", &absent], 2, "--mpi"),
        (&["compare", "--mpi", "--peers"], 2, "cannot be used with"),
        (&["doctor", "--stats", &absent], 1, "cannot be read"),
    ];
    for (arguments, expected, part) in cases {
        let mut all = arguments.to_vec();
        let page = folder.path("report.html");
        if arguments[0] == "compare" {
            all.extend(["--output", &page]);
        }
        let (status, said, complaints) = folder.run(&all, &[]);
        assert_eq!(status, Some(expected), "{arguments:?}: {complaints}");
        assert_eq!((complaints.lines().count(), said.as_str()), (1, ""), "{arguments:?}: {complaints}");
        assert!(complaints.contains(part), "{arguments:?}: {complaints}");
        assert!(!Path::new(&page).exists());
    }
}

#[test]
fn a_variable_that_chooses_for_all_is_refused() {
    let folder = Folder::new("chosen");
    let library = folder.path("liblmt-fi.so");
    fs::write(&library, "").unwrap();
    let page = folder.path("report.html");
    let arguments = ["compare", "--mpi", "--provider", &library, "--output", &page];
    let (status, _, complaints) = folder.run(&arguments, &[("OMPI_MCA_pml", "ob1")]);
    assert_eq!(status, Some(1));
    assert!(complaints.contains("OMPI_MCA_pml is set in the environment"), "{complaints}");
}

#[test]
fn the_doctor_tells_of_the_mpi_and_of_a_run() {
    let folder = Folder::new("doctor");
    let file = folder.path("statistics");
    fs::write(
        &file,
        "lmt stats pid=1 pid=1 endpoint=ab\nlmt stats pid=1 cma 0 0 2 4096 0 0\n\
         lmt stats pid=2 pid=2 endpoint=cd\nlmt stats pid=2 cma 2 4096 0 0 0 0\n",
    )
    .unwrap();
    let (_, text, complaints) = folder.run(&["doctor", "--format", "json", "--stats", &file], &[]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{complaints}"));
    let of = |group: &str, name: &str| {
        let all = report["findings"].as_array().unwrap();
        let found = all.iter().find(|one| one["group"] == group && one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {text}")).clone()
    };
    assert_eq!(of("what a run has moved", "all paths")["meaning"], "2 endpoints received 4096 bytes");
    assert_eq!(of("what a run has moved", "cma")["meaning"], "2 messages, 4096 bytes, 100.0 %");
    assert!(of("MPI", "MPI")["meaning"].is_string());
    assert!(of("MPI", "libfabric provider")["meaning"].is_string());
}

/// The provider that was built with these tests, under the name that libfabric
/// takes.
fn built_provider(folder: &Folder) -> Option<String> {
    let exe = std::env::current_exe().unwrap();
    let deps = exe.parent().unwrap();
    let files = [deps.join("liblmt_fi.so"), deps.join("../liblmt_fi.so")];
    let built = files.iter().find(|file| file.is_file())?;
    let library = folder.path("liblmt-fi.so");
    fs::copy(built, &library).unwrap();
    Some(library)
}

#[test]
fn with_real_mpis_every_transport_is_measured() {
    let Some(folders) = std::env::var_os("MPI_FOLDERS") else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let folder = Folder::new("real");
    let Some(library) = built_provider(&folder) else {
        return require::skipped("mpi", "the provider is not built; cargo build -p lmt-fi does");
    };
    let (page, cache) = (folder.path("report.html"), folder.path("cache"));
    let mut arguments =
        vec!["compare", "--mpi", "--provider", &library, "--output", &page, "--cache", &cache];
    arguments.extend(["--sizes", "8,64KiB", "--repetitions", "3", "--iterations", "3", "--format", "json"]);
    let mpis: Vec<String> =
        std::env::split_paths(&folders).map(|folder| folder.display().to_string()).collect();
    mpis.iter().for_each(|mpi| arguments.extend(["--mpi-folder", mpi]));
    let (status, text, complaints) = folder.run(&arguments, &[]);
    assert_eq!(status, Some(0), "{complaints}");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let scenes = found["scenes"].as_array().unwrap();
    assert!(scenes.len() >= mpis.len(), "{complaints}");
    for scene in scenes {
        let rows = scene["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{complaints}");
        for row in rows {
            let contenders = row["contenders"].as_array().unwrap();
            let has =
                |ending: &str| contenders.iter().any(|one| one["name"].as_str().unwrap().ends_with(ending));
            assert!(has("/lmt") && has("/default"), "{row} {complaints}");
            // No Open MPI has shm; a machine may have several, which are numbered.
            let is_open_mpi =
                contenders.iter().any(|one| one["name"].as_str().unwrap().starts_with("openmpi"));
            assert!(has("/shm") || is_open_mpi, "{row} {complaints}");
            assert_eq!(row["rounds"], 3, "one of each start: {complaints}");
        }
    }
    let paths = found["figures"].as_array().unwrap().iter().filter(|figure| figure["number"] == 4);
    assert!(paths.clone().count() == scenes.len() && paths.clone().all(|path| path["met"] == true), "{text}");
    assert!(fs::read_to_string(page).unwrap().contains("Side by side with MPIs"));
}
