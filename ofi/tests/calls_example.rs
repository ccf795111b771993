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

/// Runs it as an MPI calls, for so few rounds that it also ends where both processes have one core.
fn lines(binary: &Path, folder: &Path, provider: &str, whose: &str) -> Result<usize, String> {
    let mut program = Command::new(binary);
    program.args([provider, whose, "20"]).env("FI_PROVIDER_PATH", folder).env("LMT_FI", "1");
    let run = program.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(format!("{provider}, {whose}: {}: {said}", run.status));
    }
    let printed = String::from_utf8_lossy(&run.stdout);
    Ok(printed.lines().filter(|line| line.ends_with(" us")).count())
}

#[test]
fn the_bare_calls_of_each_mpi_end_well() {
    let folder = scratch::library("calls-example");
    let binary = folder.0.join("calls");
    if let Err(why) = compile(&binary) {
        return require::skipped("libfabric-dev", &why);
    }
    for whose in ["openmpi", "mpich", "intelmpi"] {
        assert_eq!(lines(&binary, &folder.0, "lmt", whose), Ok(9));
    }
    match lines(&binary, &folder.0, "shm", "openmpi") {
        Ok(count) => assert_eq!(count, 9),
        // Another's provider may be left out, or want more of /dev/shm than there is.
        Err(why) => println!("libfabric's shm: {why}"),
    }
}
