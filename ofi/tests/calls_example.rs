//! `examples/calls.c`, compiled and run for a few rounds: over the library under test and, where
//! libfabric has it, over its own shm provider.

#[path = "scratch/mod.rs"]
mod scratch;

use std::path::Path;
use std::process::Command;

use lmt_conformance::require;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/calls.c");

/// Compiles it; why that cannot be done here otherwise.
fn compile(binary: &Path) -> Result<(), String> {
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O2", "-Wall", "-Werror", "-o"]).arg(binary).args([SOURCE, "-lfabric"]);
    let compiled = compiled.output().map_err(|error| format!("there is no C compiler: {error}"))?;
    let said = String::from_utf8_lossy(&compiled.stderr);
    if compiled.status.success() {
        return Ok(());
    }
    assert!(said.contains("rdma/fabric.h: No such file"), "the example is to compile: {said}");
    Err("libfabric's headers are not installed (libfabric-dev)".to_owned())
}

/// Rounds so few that they also end where both processes have one core.
const FEW: &str = "20";
/// As many as say something.
const MANY: &str = "20000";
/// So often each provider has its turn.
const TURNS: usize = 5;

/// Runs it as an MPI calls, for so many rounds: what each line says and its microseconds.
fn lines(
    binary: &Path,
    folder: &Path,
    [provider, whose, rounds]: [&str; 3],
) -> Result<Vec<(String, f64)>, String> {
    let mut program = Command::new(binary);
    program.args([provider, whose, rounds]).env("FI_PROVIDER_PATH", folder).env("LMT_FI", "1");
    let run = program.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(format!("{provider}, {whose}: {}: {said}", run.status));
    }
    let printed = String::from_utf8_lossy(&run.stdout);
    Ok(printed.lines().filter_map(read).collect())
}

fn read(line: &str) -> Option<(String, f64)> {
    let (name, us) = line.strip_suffix(" us")?.rsplit_once(' ')?;
    Some((name.trim().to_owned(), us.parse().ok()?))
}

#[test]
fn the_bare_calls_of_each_mpi_end_well() {
    let folder = scratch::library("calls-example");
    let binary = folder.0.join("calls");
    if let Err(why) = compile(&binary) {
        return require::skipped("libfabric-dev", &why);
    }
    for whose in ["openmpi", "mpich", "intelmpi"] {
        assert_eq!(lines(&binary, &folder.0, ["lmt", whose, FEW]).map(|all| all.len()), Ok(9));
    }
    match lines(&binary, &folder.0, ["shm", "openmpi", FEW]) {
        Ok(all) => assert_eq!(all.len(), 9),
        // Another's provider may be left out, or want more of /dev/shm than there is.
        Err(why) => println!("libfabric's shm: {why}"),
    }
}

/// Only with `LMT_SPEED=1` (`make speed`): other work on the machine would be measured, too.
#[test]
fn the_bare_calls_are_never_slower_than_over_libfabrics_shm() {
    if std::env::var_os("LMT_SPEED").is_none_or(|value| value != "1") {
        return println!("SKIPPED: it measures only with LMT_SPEED=1");
    }
    let folder = scratch::library("calls-speed");
    let binary = folder.0.join("calls");
    if let Err(why) = compile(&binary) {
        return require::skipped("libfabric-dev", &why);
    }
    if let Err(why) = lines(&binary, &folder.0, ["shm", "openmpi", FEW]) {
        return println!("SKIPPED: libfabric's shm: {why}");
    }
    let providers = ["lmt", "shm"];
    let mut found = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        for at in [turn % 2, 1 - turn % 2] {
            found[at].push(lines(&binary, &folder.0, [providers[at], "openmpi", MANY]).unwrap());
        }
    }
    let [lmt, shm] = found;
    for (at, (name, _)) in lmt[0].iter().enumerate() {
        let mut ratios: Vec<f64> = lmt.iter().zip(&shm).map(|(lmt, shm)| lmt[at].1 / shm[at].1).collect();
        ratios.sort_by(f64::total_cmp);
        println!("{name}: {:.2} times as long as over shm", ratios[TURNS / 2]);
        assert!(ratios[TURNS / 2] < 1.0, "{name}: {ratios:?}");
    }
}
