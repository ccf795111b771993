//! More ranks than cores: whoever waits lets run whom it waits for, in an MPI's blocking
//! calls, too, which poll in a loop of their own.

use std::collections::BTreeMap;
use std::path::Path;

use lmt_conformance::require;

use crate::installation::{Mpi, Transport, output, text_of};
use crate::scratch::library;

/// No run takes longer, in seconds: by ticks of the scheduler, 4 ms each, one takes 20.
const LIMIT_S: u32 = 120;
/// Ranks for each core, the iterations of a run, and how many runs there are, in turns, of
/// which the fastest counts: others may have the cores during some.
const RUNS: [(u32, u32, usize); 3] = [(2, 60, 3), (4, 30, 3), (8, 15, 3)];
/// Patterns by lengths.
const CELLS: usize = 6 * 3 + 2 * 3;
/// A tick of the scheduler is some hundred times what a short message takes.
const MAX_RATIO: f64 = 10.0;
/// What waits for a tick takes at least the shortest one, that of 1000 Hz. Our time is not
/// compared below it: an MPI's own ranks that happen to share no core take 1 us where 60 is
/// the rule.
const SHORTEST_TICK_US: f64 = 1000.0;
/// Turns that may follow while a cell is out of bounds: a tick that is waited for is there in
/// every run, somebody else's work on the cores is not.
const MORE_TURNS: usize = 6;

/// The time of an iteration in us, by pattern and length.
type Times = BTreeMap<(String, u32), f64>;

/// Reads what the program prints.
fn read(told: &str) -> Times {
    let mut times = Times::new();
    for line in told.lines().filter_map(|line| line.strip_prefix("us ")) {
        let mut words = line.split_whitespace();
        let Some(bytes) = words.next().and_then(|word| word.parse().ok()) else { continue };
        while let (Some(pattern), Some(Ok(us))) = (words.next(), words.next().map(str::parse)) {
            times.insert((pattern.to_owned(), bytes), us);
        }
    }
    times
}

fn run(mpi: &Mpi, way: Transport<'_>, ranks: u32, binary: &Path, iterations: u32) -> Times {
    let ended = output(mpi.launcher(way, ranks, LIMIT_S).arg(binary).arg(iterations.to_string()));
    let told = text_of(&ended);
    let what = format!("{ranks} ranks under {:?} by {way:?}", mpi.kind);
    assert!(ended.status.success(), "{what} ended with {}:\n{told}", ended.status);
    let times = read(&told);
    assert_eq!(times.len(), CELLS, "{what} prints its times:\n{told}");
    times
}

/// Takes in what was faster.
fn least(times: &mut Times, now: Times) {
    for (cell, us) in now {
        let time = times.entry(cell).or_insert(f64::MAX);
        *time = time.min(us);
    }
}

/// Whether a cell's time is one of ticks.
fn waits_for_ticks(us: f64, own_us: f64) -> bool {
    us >= SHORTEST_TICK_US && us >= MAX_RATIO * own_us
}

fn compare(mpi: &Mpi, library: &Path, binary: &Path, (ranks, iterations, runs): (u32, u32, usize)) {
    let (mut own, mut ours) = (Times::new(), Times::new());
    for turn in 0..runs + MORE_TURNS {
        let slow = ours.iter().any(|(cell, us)| waits_for_ticks(*us, own[cell]));
        if turn >= runs && !slow {
            break;
        }
        least(&mut own, run(mpi, Transport::Own, ranks, binary, iterations));
        least(&mut ours, run(mpi, Transport::Lmt(library), ranks, binary, iterations));
    }
    for (cell, us) in &ours {
        let ((pattern, bytes), own_us) = (cell, own[cell]);
        println!("{:?}, {ranks} ranks, {pattern} of {bytes} B: own {own_us:.1} us, lmt {us:.1} us", mpi.kind);
        assert!(
            !waits_for_ticks(*us, own_us),
            "{:?}: {pattern} of {bytes} B among {ranks} ranks takes {us:.1} us by lmt and {own_us:.1} by its own transport",
            mpi.kind
        );
    }
}

#[test]
fn more_ranks_than_cores_wait_for_no_ticks() {
    let Some(mpis) = Mpi::all() else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let library = library("oversubscribed");
    for mpi in mpis {
        let binary = mpi.build("oversubscribed", &library.0);
        for (for_each_core, iterations, runs) in RUNS {
            compare(&mpi, &library.0, &binary, (for_each_core * cpus, iterations, runs));
        }
    }
}

#[test]
fn ticks_are_told_from_short_waits() {
    assert!(waits_for_ticks(4000.0, 30.0));
    assert!(!waits_for_ticks(12.0, 1.1), "no tick is that short");
    assert!(!waits_for_ticks(4000.0, 2000.0), "both wait");
}

#[test]
fn times_are_read() {
    let times = read("noise\nus 1024 ring 5.1 alltoall 6.0 pairs 2.5\nus x\nok 3\n");
    assert_eq!(times.len(), 3);
    assert!((times[&("alltoall".to_owned(), 1024)] - 6.0).abs() < 1e-9);
}
