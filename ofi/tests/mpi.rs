//! The programs of `tests/mpi` under real MPIs, which use the provider as it is.
//! `MPI_FOLDERS` names the folders of the MPIs, in which bin/mpicc and bin/mpiexec
//! are, with colons; without it this is skipped.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lmt_conformance::require;

/// Nothing takes longer, in seconds.
const TIME_LIMIT_S: &str = "120";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Mpich,
    OpenMpi,
    IntelMpi,
}

/// One MPI.
struct Mpi {
    kind: Kind,
    folder: PathBuf,
}

impl Mpi {
    fn at(folder: &Path) -> Self {
        let mut mpi = Self { kind: Kind::IntelMpi, folder: folder.to_owned() };
        let said = output(mpi.command("mpiexec").arg("--version"));
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        mpi.kind = match () {
            () if text.contains("Open MPI") => Kind::OpenMpi,
            () if text.contains("Intel") => Kind::IntelMpi,
            () if text.contains("HYDRA") => Kind::Mpich,
            () => panic!("{} is of no MPI that is known: {text}", folder.display()),
        };
        mpi
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.join(part)
    }

    /// One of its commands, with a time limit, and told where it is.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", TIME_LIMIT_S]).arg(self.path("bin").join(name));
        for variable in ["LMT_FI", "FI_PROVIDER", "FI_PROVIDER_PATH"] {
            command.env_remove(variable);
        }
        match self.kind {
            Kind::Mpich => {}
            Kind::OpenMpi => {
                for name in ["OMPI", "PRTE"] {
                    command.env(format!("{name}_ALLOW_RUN_AS_ROOT"), "1");
                    command.env(format!("{name}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
                }
            }
            Kind::IntelMpi => {
                command.env("I_MPI_ROOT", &self.folder).env("LD_LIBRARY_PATH", self.path("lib"));
            }
        }
        command
    }

    /// The launcher, set up so that messages go through the provider in `library`.
    fn launcher(&self, library: &Path, ranks: u32) -> Command {
        let mut command = self.command("mpiexec");
        let mut folders = OsString::from(library);
        match self.kind {
            Kind::Mpich => {
                command.env("FI_PROVIDER", "lmt").env("MPIR_CVAR_CH4_NETMOD", "ofi");
                command.env("MPIR_CVAR_NOLOCAL", "1");
            }
            Kind::OpenMpi => {
                command.env("LMT_FI", "1").args(["--mca", "pml", "cm", "--mca", "mtl", "ofi"]);
                command.args(["--mca", "mtl_ofi_provider_include", "lmt", "--oversubscribe"]);
            }
            Kind::IntelMpi => {
                command.env("I_MPI_FABRICS", "ofi").env("I_MPI_OFI_PROVIDER", "lmt");
                folders.push(":");
                folders.push(self.path("lib"));
            }
        }
        command.env("FI_PROVIDER_PATH", folders).env("LMT_STATS", "1");
        command.args(["-n", &ranks.to_string()]);
        command
    }
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The provider as libfabric finds it, alone in a folder.
fn library() -> Scratch {
    let scratch = Scratch(std::env::temp_dir().join(format!("lmt-fi-mpi-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0).expect("a folder");
    let built = std::env::current_exe().expect("this binary").with_file_name("liblmt_fi.so");
    std::fs::copy(&built, scratch.0.join("liblmt-fi.so"))
        .unwrap_or_else(|error| panic!("{} is to be there: {error}", built.display()));
    scratch
}

fn build(mpi: &Mpi, program: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mpi/{program}.c"));
    let binary = into.join(format!("{program}-{:?}", mpi.kind));
    let arguments = ["-O1", "-Wall", "-Werror", "-pthread", "-o"];
    let built = output(mpi.command("mpicc").args(arguments).arg(&binary).arg(&source));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    binary
}

/// The processes that say by `LMT_STATS=1` that they have received bytes.
fn receivers(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_once("lmt stats ")?.1.split_whitespace().collect();
        // Who, path, sent, sent_bytes, received, received_bytes, ...
        let received_bytes: u64 = words.get(5)?.parse().ok()?;
        (received_bytes > 0).then_some(words[0])
    });
    rows.collect()
}

fn run(mpi: &Mpi, library: &Path, program: &str, ranks: u32) {
    let binary = build(mpi, program, library);
    let ended = output(mpi.launcher(library, ranks).arg(&binary));
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let what = format!("{program} with {ranks} ranks under {:?}", mpi.kind);
    assert!(ended.status.success(), "{what} ended with {}:\n{out}\n{err}", ended.status);
    assert!(out.lines().any(|line| line.starts_with("ok ")), "{what} says what it has done:\n{out}");
    // Which of the two streams of a rank it is depends on the launcher.
    let told = format!("{out}\n{err}");
    let receivers = receivers(&told);
    assert_eq!(receivers.len(), ranks as usize, "{what}: every rank's bytes go through lmt:\n{told}");
}

#[test]
fn programs_run_on_every_mpi() {
    let Some(folders) = std::env::var_os("MPI_FOLDERS") else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let library = library();
    for folder in std::env::split_paths(&folders) {
        let mpi = Mpi::at(&folder);
        for program in ["point", "group", "window"] {
            for ranks in [2, 4] {
                run(&mpi, &library.0, program, ranks);
            }
        }
    }
}

#[test]
fn statistics_are_read() {
    let text = "lmt stats pid=1 pid=1 endpoint=ab\n\
        lmt stats pid=1 path       sent sent_bytes received received_bytes demotions by_sender_bytes\n\
        lmt stats pid=1 eager      2    16         2        16             0         0\n\
        lmt stats pid=2 eager      2    16         0        0              0         0\n";
    assert_eq!(receivers(text).into_iter().collect::<Vec<_>>(), ["pid=1"]);
}
