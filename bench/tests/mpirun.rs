//! `lmt mpirun` and what `lmt mpirun-env` says of an MPI that cannot take the provider, with
//! commands of MPIs that are none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A launcher that says whose it is, or else what it was given.
const LAUNCHER: &str = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'SAYS'; exit; }\n\
    echo \"given: $*\"; /usr/bin/env | /usr/bin/grep -E '^(FI_|LMT_|MPIR_|OMPI_|I_MPI_)' | /usr/bin/sort; exit 7\n";
const MPICH: &str = "HYDRA build details:\n    Version: 4.0.2";
const OPEN_MPI: &str = "mpiexec (OpenRTE) 4.1.4";
const INTEL_MPI: &str = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-test-mpirun-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path.canonicalize().unwrap());
        fs::write(folder.0.join("liblmt-fi.so"), "").unwrap();
        folder
    }

    fn command(self, path: &str, script: &str) -> Self {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, script).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn launcher(self, path: &str, says: &str) -> Self {
        self.command(path, &LAUNCHER.replace("SAYS", says))
    }

    /// Runs `lmt` with these folders of ours as its PATH: its status, output and complaints.
    fn run(&self, path: &[&str], arguments: &[&str]) -> (Option<i32>, String, String) {
        let path = std::env::join_paths(path.iter().map(|folder| self.0.join(folder))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
        let (subcommand, others) = arguments.split_first().unwrap();
        command.arg(subcommand).arg("--provider").arg(self.0.join("liblmt-fi.so")).args(others);
        command
            .env("PATH", path)
            .env_remove("VIRTUAL_ENV")
            .env_remove("LMT_STATS")
            .env_remove("FI_PROVIDER_PATH");
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |stream: Vec<u8>| String::from_utf8(stream).unwrap();
        (status.code(), text(stdout), text(stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_mpi_is_started_with_its_variables_and_all_arguments() {
    let folder = Folder::new("each")
        .launcher("mpich/bin/mpiexec", MPICH)
        .launcher("openmpi/bin/mpiexec", OPEN_MPI)
        .launcher("intelmpi/bin/mpiexec", INTEL_MPI);
    for (name, line) in [
        ("mpich", "MPIR_CVAR_NOLOCAL=1"),
        ("openmpi", "OMPI_MCA_mtl_ofi_provider_include=lmt"),
        ("intelmpi", "I_MPI_OFI_PROVIDER=lmt"),
    ] {
        let bin = format!("{name}/bin");
        let arguments = ["mpirun", "-n", "2", "--why", "python", "x y.py", "--stats"];
        let (status, text, complaints) = folder.run(&[&bin], &arguments);
        // What follows the first argument of mpiexec is no option of ours, and its status is that of mpiexec.
        assert_eq!((status, complaints.as_str()), (Some(7), ""), "{name}: {text}");
        assert!(text.starts_with("given: -n 2 --why python x y.py --stats\n"), "{text}");
        let path = format!("FI_PROVIDER_PATH={}", folder.0.display());
        assert!(text.lines().any(|one| one == line) && text.lines().any(|one| one == path), "{text}");
        assert!(!text.contains("LMT_STATS"), "{text}");
    }
    let (status, text, why) = folder.run(&["mpich/bin"], &["mpirun", "--why", "--stats", "-n", "2", "x"]);
    assert_eq!(status, Some(7), "{why}");
    assert!(text.contains("LMT_STATS=1\n"), "{text}");
    assert!(why.contains("lmt: MPICH 4.0.2, ") && why.contains("lmt: FI_PROVIDER=lmt: "), "{why}");
}

#[test]
fn of_two_mpis_it_is_said_which_one_is_taken() {
    let folder = Folder::new("two").launcher("a/mpiexec", OPEN_MPI).launcher("b/mpiexec", MPICH);
    let other = folder.0.join("b/mpiexec").display().to_string();
    let (status, text, complaints) = folder.run(&["a", "b"], &["mpirun", "-n", "2", "x"]);
    assert!(status == Some(7) && text.contains("OMPI_MCA_pml=cm"), "{text}{complaints}");
    assert!(
        complaints.starts_with("lmt: took Open MPI 4.1.4 (/") && complaints.lines().count() == 1,
        "{complaints}"
    );
    assert!(complaints.contains(&format!("--mpi {other} takes MPICH 4.0.2")), "{complaints}");
    for named in ["mpich", &other, &folder.0.join("b").display().to_string()] {
        let (status, text, complaints) = folder.run(&["a", "b"], &["mpirun", "--mpi", named, "-n", "2", "x"]);
        assert_eq!((status, complaints.as_str()), (Some(7), ""), "{named}: {text}");
        assert!(text.contains("FI_PROVIDER=lmt"), "{named}: {text}");
    }
}

#[test]
fn an_mpi_that_cannot_take_it_is_said_with_what_would_do() {
    let folder = Folder::new("refused")
        .launcher("ucx/mpiexec", MPICH)
        .command(
            "ucx/mpichversion",
            "#!/bin/sh\nprintf 'MPICH Version:    \\t4.0.2\\nMPICH Device:    \\tch4:ucx\\n'\n",
        )
        .launcher("noofi/mpiexec", OPEN_MPI)
        .command("noofi/ompi_info", "#!/bin/sh\necho 'mca:mtl:psm2:version:\"mca:2.1.0\"'\n")
        .launcher("other/mpiexec", "MPI of somebody 1.0")
        .command("broken/mpiexec", "#!/bin/sh\necho 'error: no libslurm.so.38'; exit 127\n")
        .launcher("good/mpiexec", INTEL_MPI);
    let cases: [(&[&str], &str, &[&str]); 6] = [
        (&["ucx"], "built for ch4:ucx and never asks libfabric; what would do is", &[]),
        (&["ucx", "good"], "good/mpiexec takes Intel MPI", &[]),
        (&["noofi"], "without the component mtl ofi; what would do is", &[]),
        (&["other"], "neither MPICH nor Open MPI nor Intel MPI", &[]),
        (&["broken"], "no libslurm.so.38", &[]),
        (&["good"], "no folder with an mpiexec", &["--mpi", "/nowhere"]),
    ];
    for (path, part, options) in cases {
        let arguments = [&["mpirun"], options, &["-n", "2", "x"]].concat();
        let (status, text, complaints) = folder.run(path, &arguments);
        assert_eq!(
            (status, text.as_str(), complaints.lines().count()),
            (Some(1), "", 1),
            "{path:?}: {complaints}"
        );
        assert!(complaints.contains(part), "{path:?}: {complaints}");
    }
    // The lines for a shell are there, and standard error says that they change nothing.
    let (status, text, complaints) = folder.run(&["ucx"], &["mpirun-env", "mpich"]);
    assert!(status == Some(0) && text.contains("export FI_PROVIDER=lmt"), "{text}");
    assert!(complaints.lines().count() == 1 && complaints.contains("built for ch4:ucx"), "{complaints}");
}
