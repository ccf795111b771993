//! All ranks' programs run side by side, in tests, and compared with what a
//! serial run gives.
#![forbid(unsafe_code)]

pub mod case;
mod cells;
mod race;
mod random;
pub mod serial;
mod shared;
pub mod world;

mod mod_tests;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{Unsuitable, program};
use crate::call::{Call, Domain};
use crate::program::Program;

pub use case::{Case, Lengths};
pub use random::Random;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All ranks have what the serial model says.
    Same {
        /// How many ranks reached into one rank's memory at a time, at most.
        max_at_once: usize,
    },
    /// At least one rank says that the algorithm cannot do it.
    Unsuitable(Unsuitable),
}

/// Runs a case, and says what goes wrong.
pub fn attempt(case: &Case, algorithm: Algorithm, seed: u64) -> Result<Outcome, world::Failure> {
    let scene = case.scene(&mut Random(seed));
    let programs: Result<Vec<Program>, Unsuitable> =
        scene.calls.iter().map(|call| program(call, algorithm)).collect();
    let programs = match programs {
        Ok(programs) => programs,
        Err(unsuitable) => return Ok(Outcome::Unsuitable(unsuitable)),
    };
    // A barrier of messages needs no meeting, which is one.
    let meets = case.kind != Kind::Barrier || algorithm == Algorithm::Slots;
    let ran = world::run(&scene, programs, meets, seed)?;
    for (rank, (memory, expected)) in ran.memory.iter().zip(serial::expected(&scene)).enumerate() {
        let output = &memory.output[..expected.len()];
        if let Some(at) = output.iter().zip(&expected).position(|(found, right)| found != right) {
            return Err(format!("rank {rank}'s output is wrong from byte {at} of {} on", expected.len()));
        }
    }
    Ok(Outcome::Same { max_at_once: ran.max_at_once })
}

/// Runs a case in a few orders, and says how many ranks reached into one rank's
/// memory at a time, at most.
///
/// # Panics
/// It fails, or the algorithm cannot do it.
pub fn check(case: &Case, algorithm: Algorithm, seed: u64) -> usize {
    let one = |seed| match attempt(case, algorithm, seed) {
        Ok(Outcome::Same { max_at_once }) => max_at_once,
        Ok(Outcome::Unsuitable(unsuitable)) => panic!("{case:?}: {unsuitable}"),
        Err(failure) => panic!("{algorithm}, seed {seed}, {case:?}: {failure}"),
    };
    (seed..seed + 4).map(one).fold(0, usize::max)
}

/// Runs random cases of a kind, small ones where one fails.
///
/// # Panics
/// One fails, or fewer than a third are such that the algorithm can do them.
pub fn sweep(kind: Kind, algorithm: impl Strategy<Value = Algorithm>, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let done = std::cell::Cell::new(0);
    let outcome =
        TestRunner::new(config).run(&(any_case(kind), algorithm, any::<u64>()), |(case, algorithm, seed)| {
            match attempt(&case, algorithm, seed) {
                Ok(Outcome::Same { .. }) => done.set(done.get() + 1),
                Ok(Outcome::Unsuitable(_)) => {}
                Err(failure) => return Err(TestCaseError::fail(failure)),
            }
            Ok(())
        });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert!(done.get() >= cases / 3, "only {} of {cases} cases of {kind} could be done", done.get());
}

/// Lengths around the thresholds: none, a byte, a cache line, a page, what fits
/// into a slot of 4096 bytes alone and shared among 17 ranks, a piece of 1 KiB.
const LENGTHS: [u64; 20] =
    [0, 1, 2, 63, 64, 65, 240, 241, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 8193, 20_000];

fn any_length(kind: Kind) -> impl Strategy<Value = u64> {
    let reduces = Case::new(kind, 1, 0).element_bytes;
    // Blocks of all ranks together are much memory.
    let most = if Case::has_blocks(kind) { 18 } else { LENGTHS.len() };
    prop_oneof![prop::sample::select(&LENGTHS[..most]), 0..1200_u64].prop_map(move |bytes| bytes * reduces)
}

/// Cases of a kind.
pub fn any_case(kind: Kind) -> impl Strategy<Value = Case> {
    (1..=17_u32).prop_flat_map(move |size| {
        let count = if kind == Kind::Alltoall { size * size } else { size } as usize;
        let equal = any_length(kind).prop_map(Lengths::Equal).boxed();
        let listed = prop::collection::vec(any_length(kind), count).prop_map(Lengths::Listed).boxed();
        let lengths = if Case::has_blocks(kind) { prop_oneof![equal, listed].boxed() } else { equal };
        let domain = (1..=size, 1..=4_u32);
        (0..size, lengths, any::<bool>(), domain, any::<bool>()).prop_map(
            move |(root, lengths, in_place, (nodes, caches), in_turn)| Case {
                root,
                lengths: mirrored(kind, size, in_place, lengths),
                in_place,
                domains: domains(size, nodes, caches, in_turn),
                ..Case::new(kind, size, 0)
            },
        )
    })
}

/// In place, what two ranks have for each other is equally long.
fn mirrored(kind: Kind, size: u32, in_place: bool, lengths: Lengths) -> Lengths {
    let Lengths::Listed(mut list) = lengths else { return lengths };
    if kind == Kind::Alltoall && in_place {
        let at = |from: u32, to: u32| (from * size + to) as usize;
        for (from, to) in (0..size).flat_map(|from| (0..from).map(move |to| (from, to))) {
            list[at(from, to)] = list[at(to, from)];
        }
    }
    Lengths::Listed(list)
}

/// So many nodes with so many caches each, of neighbours or in turn.
pub fn domains(size: u32, nodes: u32, caches: u32, in_turn: bool) -> Vec<Domain> {
    let parts = (nodes * caches).min(size);
    let part = |rank: u32| if in_turn { rank % parts } else { rank / size.div_ceil(parts) };
    let domain = |rank: u32| {
        let node = |rank: u32| part(rank) / caches;
        let lowest = |same: &dyn Fn(u32) -> bool| (0..rank).find(|&other| same(other)).unwrap_or(rank);
        Domain {
            node: lowest(&|other| node(other) == node(rank)),
            cache: lowest(&|other| part(other) == part(rank)),
        }
    };
    (0..size).map(domain).collect()
}

/// What a rank calls with in a case, however much memory it were.
pub fn any_call(case: &Case, rank: u32) -> Call {
    case.call(rank, &mut Random(1)).0
}
