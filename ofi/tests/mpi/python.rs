//! mpi4py's own tests: no failure through the provider that the same MPI does not
//! have by itself. mpi4py is built once for each MPI, in the folder that
//! `MPI_CACHE` names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lmt_bench::peers::again::{PAUSE, tried};
use lmt_conformance::require;

use crate::installation::{Kind, Mpi, Transport, output, text_of, within};
use crate::scratch::{folder, library};
use crate::statistics;

/// As it is on PyPI.
const VERSION: &str = "4.1.2";
/// To build it takes no longer, in seconds.
const BUILD_LIMIT_S: u32 = 600;
/// Nor to run it.
const RUN_LIMIT_S: u32 = 600;
const RANKS: u32 = 2;

/// The tests of which MPICH fails one, `testDistgraphcomm`, or does not end, where
/// libfabric matches messages: a receive from anybody need not take what a probe
/// from anybody has found, since messages of a rank to itself do not come by
/// libfabric (docs/libfabric.md). One rank fails then, and the others wait for it.
const TOPOLOGIES: &str = "test_comm_topo";
/// With this at 0 MPICH matches all messages itself, in one place.
const MATCHED_BY_LIBFABRIC: &str = "MPIR_CVAR_CH4_OFI_ENABLE_TAGGED";

/// Each rank writes into a file of its own: what several write to one stream can stand
/// in one line, in which no result would be found.
const INTO_ITS_FILE: &str = r#"file=$1/$$; shift; exec "$@" >"$file" 2>&1"#;

/// mpi4py for one MPI.
struct Built {
    python: PathBuf,
    tests: PathBuf,
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let ended = output(command);
    if ended.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", text_of(&ended))) }
}

/// As [`succeed`], of what fetches something: tried again, in all within
/// `BUILD_LIMIT_S`.
fn fetch(mut command: impl FnMut(u32) -> Command) -> Result<(), String> {
    let limit = Duration::from_secs(BUILD_LIMIT_S.into());
    tried(limit, PAUSE, || true, |left_s| succeed(&mut command(left_s as u32)))
}

/// Fetches and builds it, unless it is there.
fn build(mpi: &Mpi, cache: &Path) -> Result<Built, String> {
    let folder = cache.join(format!("mpi4py-{VERSION}-{:?}", mpi.kind));
    let python = folder.join("bin/python3");
    let built =
        Built { python: python.clone(), tests: folder.join(format!("mpi4py-{VERSION}/test/main.py")) };
    let complete = folder.join("complete");
    if complete.is_file() {
        return Ok(built);
    }
    // Half of one is of no use.
    let _absent = std::fs::remove_dir_all(&folder);
    succeed(within(BUILD_LIMIT_S, Path::new("python3")).args(["-m", "venv"]).arg(&folder))?;
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"];
    let wanted = format!("mpi4py=={VERSION}");
    fetch(|left_s| {
        let mut download = within(left_s, &python);
        download.args(pip).args(["download", "--no-deps", "--no-binary", "mpi4py", "--dest"]);
        download.arg(&folder).arg(&wanted);
        download
    })?;
    let archive = folder.join(format!("mpi4py-{VERSION}.tar.gz"));
    succeed(within(BUILD_LIMIT_S, Path::new("tar")).arg("-xf").arg(&archive).arg("-C").arg(&folder))?;
    // What it is built with comes from PyPI too.
    fetch(|left_s| {
        let mut install = within(left_s, &python);
        install.env("MPICC", mpi.path("bin/mpicc")).env("CFLAGS", "-O0");
        install.args(pip).arg("install").arg(&archive);
        install
    })?;
    std::fs::write(&complete, "").map_err(|error| error.to_string())?;
    Ok(built)
}

/// What came of a run.
struct Ran {
    /// By how many ranks, if all came to the end.
    tests: Option<u32>,
    failed: BTreeSet<String>,
    text: String,
}

/// What a run has written: each rank ends with "Ran N tests".
fn read(text: String) -> Ran {
    let ran = |line: &str| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok();
    let counts: Vec<u32> = text.lines().filter_map(ran).collect();
    let tests = counts.first().copied().filter(|_| counts.len() == RANKS as usize);
    let name = |line: &str| {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
        Some(rest.split_once('(')?.1.split(')').next()?.to_owned())
    };
    let failed = text.lines().filter_map(name).collect();
    Ran { tests, failed, text }
}

/// Runs the test modules that `only` names, or all.
fn run(mpi: &Mpi, built: &Built, transport: Transport<'_>, only: &BTreeSet<&str>) -> Ran {
    run_by(mpi.launcher(transport, RANKS, RUN_LIMIT_S), mpi, built, only)
}

fn run_by(mut command: Command, mpi: &Mpi, built: &Built, only: &BTreeSet<&str>) -> Ran {
    let written = folder("lmt-mpi4py");
    command.args(["sh", "-c", INTO_ITS_FILE, "sh"]).arg(&written.0);
    command.arg(&built.python).arg(&built.tests).arg("-v");
    for module in only {
        command.args(["-i", module]);
    }
    if only.is_empty() && mpi.kind == Kind::Mpich {
        command.args(["-e", TOPOLOGIES]);
    }
    let launched = text_of(&output(&mut command));
    let ranks = std::fs::read_dir(&written.0).expect("the ranks' folder");
    let files = ranks.map(|file| file.expect("a rank's file").path());
    let texts =
        files.map(|file| String::from_utf8_lossy(&std::fs::read(file).expect("its text")).into_owned());
    read([launched].into_iter().chain(texts).collect::<Vec<_>>().join("\n"))
}

/// Runs the tests for which MPICH must match messages itself.
fn topologies(mpi: &Mpi, built: &Built, folder: &Path) {
    let mut command = mpi.launcher(Transport::Lmt(folder), RANKS, RUN_LIMIT_S);
    command.env(MATCHED_BY_LIBFABRIC, "0");
    let ran = run_by(command, mpi, built, &BTreeSet::from([TOPOLOGIES]));
    let what = format!("{TOPOLOGIES} of mpi4py's tests, {RANKS} ranks under {:?}", mpi.kind);
    let tests = ran.tests.unwrap_or_else(|| panic!("{what}: they do not come to their end:\n{}", ran.text));
    assert!(ran.failed.is_empty(), "{what}: these fail: {:?}\n{}", ran.failed, ran.text);
    println!("{what}: {tests} tests with {MATCHED_BY_LIBFABRIC}=0");
}

fn compare(mpi: &Mpi, built: &Built, folder: &Path) {
    let what = format!("mpi4py's tests, {RANKS} ranks under {:?}", mpi.kind);
    let ours = run(mpi, built, Transport::Lmt(folder), &BTreeSet::new());
    let Some(tests) = ours.tests else {
        panic!("{what}: they do not come to their end:\n{}", ours.text);
    };
    let bytes = statistics::received_bytes(&ours.text).into_values().min().unwrap_or_default();
    assert!(bytes > 0, "{what}: the bytes go through lmt");
    println!(
        "{what}: {tests} tests, {} failures, {bytes} bytes received through lmt by a rank at least",
        ours.failed.len()
    );
    if ours.failed.is_empty() {
        return;
    }
    let modules = ours.failed.iter().filter_map(|name| name.split('.').next()).collect();
    let own = run(mpi, built, Transport::Own, &modules);
    let mut only_ours = &ours.failed - &own.failed;
    if !only_ours.is_empty() {
        // What the MPI lacks over any libfabric: Open MPI's component `cm`, say.
        let tcp = run(mpi, built, Transport::Tcp, &modules);
        println!("{what}: of these fail over libfabric's tcp too: {:?}", &only_ours & &tcp.failed);
        only_ours = &only_ours - &tcp.failed;
    }
    assert!(
        only_ours.is_empty(),
        "{what}: these fail through the provider alone: {only_ours:?}\n{}",
        ours.text
    );
}

#[test]
fn mpi4py_has_no_failure_of_ours() {
    let (Some(mpis), Some(cache)) = (Mpi::all(), std::env::var_os("MPI_CACHE")) else {
        return require::skipped(
            "mpi4py",
            "MPI_FOLDERS names no MPIs, or MPI_CACHE no folder to build mpi4py in",
        );
    };
    let library = library("python");
    for mpi in mpis.iter().filter(|mpi| mpi.kind != Kind::IntelMpi) {
        match build(mpi, Path::new(&cache)) {
            Ok(built) => {
                compare(mpi, &built, &library.0);
                if mpi.kind == Kind::Mpich {
                    topologies(mpi, &built, &library.0);
                }
            }
            Err(reason) => {
                require::skipped("mpi4py", &format!("it cannot be had from PyPI and built: {reason}"))
            }
        }
    }
}

#[test]
fn failures_are_read() {
    let text = "Ran 3 tests in 1.0s\nFAIL: testA (test_x.TestB.testA)\nERROR: testC (test_x.TestB.testC) (why=1)\nRan 3 tests in 1.1s\n";
    let ran = read(text.to_owned());
    assert_eq!(ran.tests, Some(3));
    assert_eq!(ran.failed.into_iter().collect::<Vec<_>>(), ["test_x.TestB.testA", "test_x.TestB.testC"]);
    assert_eq!(read("Ran 3 tests in 1.0s".to_owned()).tests, None);
}
