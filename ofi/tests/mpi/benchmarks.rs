//! The Intel MPI Benchmarks, which come with Intel MPI, to their end. The builds
//! that it brings check no data (they have no column of defects): our own
//! programs do.

use std::path::Path;

use lmt_conformance::require;

use crate::installation::{Kind, Mpi, Transport, output, text_of};
use crate::scratch::library;
use crate::statistics;

/// No program takes longer, in seconds.
const LIMIT_S: u32 = 300;
/// 0 B to 2 MiB, at most 30 rounds and 50 ms a size: all of it in minutes.
const SETTINGS: [&str; 6] = ["-msglog", "0:21", "-iter", "30", "-time", "0.05"];

/// A program, and what it does only if asked.
struct Program {
    name: &'static str,
    asked: &'static [&'static str],
    /// How many benchmarks it runs with 2 and with 4 ranks.
    benchmarks: [usize; 2],
    /// Whether it has a limit of time for each size.
    has_time: bool,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "IMB-MPI1",
        asked: &[
            "Uniband",
            "Biband",
            "PingPongSpecificSource",
            "PingPongAnySource",
            "PingPingSpecificSource",
            "PingPingAnySource",
        ],
        benchmarks: [25, 25],
        has_time: true,
    },
    // Stencil2D needs 4 ranks, Stencil3D 8.
    Program { name: "IMB-P2P", asked: &[], benchmarks: [6, 7], has_time: false },
    // With 4 ranks Fetch_and_op and Compare_and_swap are left out, by itself too.
    Program { name: "IMB-RMA", asked: &["Get_local", "Get_all_local"], benchmarks: [19, 17], has_time: true },
    Program {
        name: "IMB-NBC",
        asked: &[
            "Iallgather_pure",
            "Iallgatherv_pure",
            "Iallreduce_pure",
            "Ialltoall_pure",
            "Ialltoallv_pure",
            "Ibarrier_pure",
            "Ibcast_pure",
            "Igather_pure",
            "Igatherv_pure",
            "Ireduce_pure",
            "Ireduce_scatter_pure",
            "Iscatter_pure",
            "Iscatterv_pure",
        ],
        benchmarks: [26, 26],
        has_time: true,
    },
];

fn run(mpi: &Mpi, library: &Path, program: &Program, ranks: u32, expected: usize) {
    let mut command = mpi.launcher(Transport::Lmt(library), ranks, LIMIT_S);
    command.arg(mpi.path("bin").join(program.name));
    if program.has_time {
        command.args(SETTINGS).args(["-npmin", &ranks.to_string()]);
    } else {
        command.args(&SETTINGS[..4]);
    }
    if !program.asked.is_empty() {
        command.args(["-include", &program.asked.join(",")]);
    }
    let began = std::time::Instant::now();
    let ended = output(&mut command);
    let told = text_of(&ended);
    let what = format!("{} with {ranks} ranks under {:?}", program.name, mpi.kind);
    assert!(ended.status.success(), "{what} ended with {}:\n{told}", ended.status);
    assert!(told.contains("All processes entering MPI_Finalize"), "{what} comes to its end:\n{told}");
    let mut names: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("# Benchmarking ")?.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), expected, "{what} runs all its benchmarks: {names:?}");
    let bytes = statistics::check(&told, ranks, &what);
    println!(
        "{what}: {expected} benchmarks in {:.0} s, {bytes} bytes received through lmt",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn intel_mpi_benchmarks_come_to_their_end() {
    let Some(mpis) = Mpi::all() else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let Some(mpi) = mpis.iter().find(|mpi| mpi.kind == Kind::IntelMpi) else {
        return require::skipped("intelmpi", "MPI_FOLDERS does not name Intel MPI, which brings IMB");
    };
    let library = library("benchmarks");
    for program in &PROGRAMS {
        for (ranks, expected) in [2, 4].into_iter().zip(program.benchmarks) {
            run(mpi, &library.0, program, ranks, expected);
        }
    }
}
