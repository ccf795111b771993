//! Our own programs: all that MPI offers, with 2 and with 4 ranks.

use std::path::Path;

use lmt_conformance::require;

use crate::installation::{Mpi, Transport, output, text_of};
use crate::scratch::library;
use crate::statistics;

/// No program takes longer, in seconds.
const LIMIT_S: u32 = 180;
/// What a message of 3 GiB takes: one buffer on either side, and some more.
const HUGE_MIB: u64 = 3 << 10;
const HUGE_NEEDS_MIB: u64 = 2 * HUGE_MIB + 1024;

/// `least_mib`, if any, is the program's argument, and must have gone through lmt.
fn run(mpi: &Mpi, library: &Path, program: &str, ranks: u32, least_mib: u64) {
    let binary = mpi.build(program, library);
    let mut command = mpi.launcher(Transport::Lmt(library), ranks, LIMIT_S);
    let ended = output(command.arg(&binary).args((least_mib > 0).then(|| least_mib.to_string())));
    let told = text_of(&ended);
    let what = format!("{program} with {ranks} ranks under {:?}", mpi.kind);
    assert!(ended.status.success(), "{what} ended with {}:\n{told}", ended.status);
    let done = told.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done > 0, "{what} says what it has done:\n{told}");
    let bytes = statistics::check(&told, ranks, &what);
    assert!(bytes >= least_mib << 20, "{what}: only {bytes} bytes went through lmt:\n{told}");
    for skip in told.lines().filter(|line| line.starts_with("SKIPPED")) {
        println!("{skip} ({what})");
    }
    println!("{what}: {done} parts are right, {bytes} bytes received through lmt");
}

/// The memory that can be had without swapping, in MiB.
fn available_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

#[test]
fn programs_run_on_every_mpi() {
    let Some(mpis) = Mpi::all() else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let library = library("programs");
    for mpi in mpis {
        for ranks in [2, 4] {
            for program in ["point", "group", "window"] {
                run(&mpi, &library.0, program, ranks, 0);
            }
        }
        let available_mib = available_mib();
        if available_mib >= HUGE_NEEDS_MIB {
            run(&mpi, &library.0, "huge", 2, HUGE_MIB);
        } else {
            println!(
                "SKIPPED: 3 GiB under {:?}: {available_mib} MiB are available, it takes {HUGE_NEEDS_MIB}",
                mpi.kind
            );
        }
    }
}
