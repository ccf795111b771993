use super::*;
use crate::environment::Environment;
use crate::output::tests::job;
use crate::peers::result::{Role, SizeTimes, Times};

/// Everybody's time at one size, the same in each of three rounds.
fn row(bytes: u64, ours: [f64; 3], peer: f64, limit: f64) -> Row {
    let times = |name: &str, role, usec: [f64; 3]| Times { name: name.into(), role, usec: usec.to_vec() };
    let times = vec![
        times("auto", Role::Ours, ours),
        times("intelmpi", Role::Peer, [peer; 3]),
        times("both", Role::Limit, [limit; 3]),
    ];
    Row::of(&SizeTimes { bytes, iterations: 1, times, ways: Vec::new(), verified_messages: 0 }).unwrap()
}

fn scene(settings: Job, rows: Vec<Row>) -> Scene {
    Scene { environment: Environment::record(&settings), settings, rows }
}

fn usual() -> Job {
    Job { touch: false, ..job() }
}

fn figures(scenes: &[Scene], number: u32) -> Vec<Option<bool>> {
    judge(scenes).iter().filter(|figure| figure.number == number).map(|figure| figure.met).collect()
}

#[test]
fn what_was_not_measured_is_unknown() {
    let figures = judge(&[]);
    assert_eq!(figures.len(), 19);
    assert!(figures.iter().all(|figure| figure.met.is_none()));
    assert!(text(&figures).contains("1. unknown  8 B one way"), "{}", text(&figures));
    // Bare methods were not measured.
    let mut row = row(1 << 20, [1.0; 3], 2.0, 1.0);
    row.limit = None;
    let scenes = [scene(usual(), vec![row])];
    assert_eq!(super::large(&scenes, USUAL).map(|figure| figure.met), [Some(true), None, Some(true)]);
}

#[test]
fn each_size_counts_and_the_worst_is_named() {
    let rows =
        vec![row(8, [0.7; 3], 1.0, 0.5), row(16, [0.5; 3], 1.0, 0.5), row(1024, [0.9, 1.05, 1.2], 1.0, 0.5)];
    let scenes = [scene(usual(), rows)];
    assert_eq!(figures(&scenes, 1), [Some(true)]);
    assert_eq!(figures(&scenes, 2), [Some(false)]);
    let found = middle(&scenes).found;
    assert!(found.contains("1 of 2 sizes are beyond: 1 KiB 1.050 (within its spread)"), "{found}");
    let found = short(&scenes).found;
    assert!(found.contains("at most 0.700") && found.contains("8 B"), "{found}");
}

#[test]
fn modes_and_buffers_are_not_mixed_up() {
    let fast = || vec![row(64 << 10, [1.0; 3], 3.0, 0.95), row(1 << 20, [1.0; 3], 3.0, 0.95)];
    let scenes = [
        scene(usual(), fast()),
        scene(Job { touch: true, ..usual() }, vec![row(64 << 10, [1.0; 3], 1.05, 0.5)]),
        scene(Job { buffers: Memory::Shared, ..usual() }, fast()),
        scene(Job { pattern: Pattern::Bibw, ..usual() }, fast()),
        scene(
            Job { pattern: Pattern::Alltoall, ranks: 4, ..usual() },
            vec![row(64 << 10, [4.0; 3], 3.0, 1.0)],
        ),
    ];
    let yes = Some(true);
    let (no, unknown) = (Some(false), None);
    assert_eq!(
        figures(&scenes, 3),
        [yes, yes, yes, yes, no, no, unknown, unknown, unknown, unknown, unknown, unknown]
    );
    assert_eq!(figures(&scenes, 4), [yes, unknown]);
    assert_eq!(figures(&scenes, 5), [yes]);
    assert_eq!(figures(&scenes, 6), [yes]);
    assert_eq!(figures(&scenes, 7), [no]);
    let found = super::large(&scenes, USUAL)[2].found.clone();
    assert!(found.contains("3.00 times over 2 sizes; the bare methods reach 3.16 times"), "{found}");
}
