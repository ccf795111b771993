//! A rank is killed: the others are told within a second or are ended by the
//! launcher, and none hangs.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use lmt_conformance::require;

use crate::installation::{Mpi, Transport, output, text_of};
use crate::scratch::library;

/// Within which the others are told, in milliseconds.
const TOLD_WITHIN_MS: u128 = 1000;
/// Within which the launcher has ended, in milliseconds: most take some 30, PRRTE
/// 300, and the machine may have other work.
const ENDED_WITHIN_MS: u128 = 10_000;

fn time_in(folder: &Path, rank: u32) -> Option<u128> {
    std::fs::read_to_string(folder.join(rank.to_string())).ok()?.trim().parse().ok()
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_millis()
}

fn run(mpi: &Mpi, library: &Path, ranks: u32) {
    let folder = library.join(format!("{:?}-{ranks}", mpi.kind));
    std::fs::create_dir(&folder).expect("a folder");
    let binary = mpi.build("death", library);
    let ended = output(mpi.launcher(Transport::Lmt(library), ranks, 60).arg(&binary).arg(&folder));
    let ended_ms = now_ms();
    let what = format!("{ranks} ranks under {:?}, one killed", mpi.kind);
    let told = text_of(&ended);
    let killed_ms = time_in(&folder, ranks - 1).unwrap_or_else(|| panic!("{what}: it came so far:\n{told}"));
    assert!(!ended.status.success(), "{what}: the launcher says so:\n{told}");
    let after: Vec<Option<u128>> =
        (0..ranks - 1).map(|rank| Some(time_in(&folder, rank)?.saturating_sub(killed_ms))).collect();
    let whole_ms = ended_ms.saturating_sub(killed_ms);
    assert!(
        after.iter().flatten().all(|ms| *ms <= TOLD_WITHIN_MS),
        "{what}: told after {after:?} ms:\n{told}"
    );
    assert!(whole_ms <= ENDED_WITHIN_MS, "{what}: all ended after {whole_ms} ms:\n{told}");
    let said = after.iter().map(|ms| ms.map_or("ended".into(), |ms| format!("told after {ms} ms")));
    println!("{what}: {}; all has ended after {whole_ms} ms", said.collect::<Vec<_>>().join(", "));
}

#[test]
fn a_killed_rank_is_noticed() {
    let Some(mpis) = Mpi::all() else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let library = library("death");
    for mpi in mpis {
        for ranks in [2, 4] {
            run(&mpi, &library.0, ranks);
        }
    }
}
