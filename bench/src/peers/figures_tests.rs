use super::*;
use crate::environment::Environment;
use crate::output::tests::job;
use crate::peers::result::{Role, SizeTimes, Times};

/// Everybody's time at one size, the same in each of three rounds.
fn row(bytes: u64, ours: [f64; 3], peer: f64, limit: f64) -> Row {
    row_beside(&["intelmpi"], bytes, ours, peer, limit)
}

/// The same with these peers.
fn row_beside(peers: &[&str], bytes: u64, ours: [f64; 3], peer: f64, limit: f64) -> Row {
    let times = |name: &str, role, usec: [f64; 3]| Times { name: name.into(), role, usec: usec.to_vec() };
    let mut all = vec![times("auto", Role::Ours, ours), times("both", Role::Limit, [limit; 3])];
    all.extend(peers.iter().map(|name| times(name, Role::Peer, [peer; 3])));
    let times = all;
    Row::of(&SizeTimes { bytes, iterations: 1, times, ways: Vec::new(), verified_messages: 0 }).unwrap()
}

fn scene(settings: Job, rows: Vec<Row>) -> Scene {
    Scene { environment: Environment::record(&settings), settings, rows }
}

fn usual() -> Job {
    Job { in_use: true, ..job() }
}

fn found(scenes: &[Scene]) -> Found<'_> {
    Found { scenes, peers: &[] }
}

fn figures(scenes: &[Scene], number: u32) -> Vec<Option<bool>> {
    judge(scenes, &["intelmpi".to_owned()])
        .iter()
        .filter(|figure| figure.number == number)
        .map(|figure| figure.met)
        .collect()
}

#[test]
fn what_was_not_measured_is_unknown() {
    let figures = judge(&[], &["mpich".to_owned()]);
    assert_eq!(figures.len(), 15);
    assert!(figures.iter().all(|figure| figure.met.is_none()));
    assert!(text(&figures).contains("1. unknown  8 B one way"), "{}", text(&figures));
    assert!(figures.iter().all(|figure| figure.found == "not measured"), "{}", text(&figures));
    // Bare methods were not measured.
    let mut row = row(1 << 20, [1.0; 3], 2.0, 1.0);
    row.limit = None;
    let scenes = [scene(usual(), vec![row])];
    assert_eq!(found(&scenes).large(USUAL).map(|figure| figure.met), [Some(true), None, Some(true)]);
}

#[test]
fn each_size_counts_and_the_worst_is_named() {
    let rows =
        vec![row(8, [0.7; 3], 1.0, 0.5), row(16, [0.5; 3], 1.0, 0.5), row(1024, [0.9, 1.05, 1.2], 1.0, 0.5)];
    let scenes = [scene(usual(), rows)];
    assert_eq!(figures(&scenes, 1), [Some(true)]);
    assert_eq!(figures(&scenes, 2), [Some(false)]);
    let found = self::found(&scenes).middle().found;
    assert!(found.contains("1 of 2 sizes are beyond: 1 KiB 1.050 (within its spread)"), "{found}");
    let found = self::found(&scenes).short().found;
    assert!(found.contains("at most 0.700") && found.contains("8 B"), "{found}");
}

#[test]
fn modes_and_buffers_are_not_mixed_up() {
    let fast = || vec![row(64 << 10, [1.0; 3], 3.0, 0.95), row(1 << 20, [1.0; 3], 3.0, 0.95)];
    let scenes = [
        scene(usual(), fast()),
        scene(Job { in_use: false, ..usual() }, vec![row(64 << 10, [1.0; 3], 1.05, 0.5)]),
        scene(Job { rotation_bytes: Some(1 << 30), ..usual() }, vec![row(64 << 10, [1.0; 3], 1.05, 0.5)]),
        scene(Job { buffers: Memory::Shared, ..usual() }, fast()),
        scene(Job { pattern: Pattern::Bibw, ..usual() }, fast()),
        scene(
            Job { pattern: Pattern::Alltoall, ranks: 4, ..usual() },
            vec![row(64 << 10, [4.0; 3], 3.0, 1.0)],
        ),
    ];
    let yes = Some(true);
    let no = Some(false);
    assert_eq!(figures(&scenes, 3), [yes, yes, yes, yes, no, no]);
    assert_eq!(figures(&scenes, 4), [yes]);
    assert_eq!(figures(&scenes, 5), [yes]);
    assert_eq!(figures(&scenes, 6), [yes]);
    assert_eq!(figures(&scenes, 7), [no]);
    let found = self::found(&scenes).large(USUAL)[2].found.clone();
    assert!(found.contains("3.00 times over 2 sizes; the bare methods reach 3.16 times"), "{found}");
}

/// What is asked is asked of messages in use.
#[test]
fn unmodified_messages_are_shown_and_nothing_is_asked_of_them() {
    let scenes = [scene(Job { in_use: false, ..usual() }, vec![row(64 << 10, [1.0; 3], 0.5, 1.0)])];
    let all = judge(&scenes, &["intelmpi".to_owned()]);
    assert!(all.iter().all(|figure| figure.met.is_none()), "{all:?}");
    let shown: Vec<&Figure> = all.iter().filter(|figure| figure.found != "not measured").collect();
    let [shown] = shown[..] else { panic!("{shown:?}") };
    assert_eq!(shown.verdict(), "shown");
    assert!(shown.asked.contains("unmodified (as IMB and OSU measure), on cache"), "{shown:?}");
    assert!(shown.found.starts_with("0.50 times over 1 sizes"), "{shown:?}");
    assert!(
        all.iter().filter(|figure| !figure.is_shown_only).all(|figure| !figure.asked.contains("unmodified"))
    );
}

/// The rows of a scene with all sizes of a large message, each beside the peers of that size.
fn large_rows(peers_at: impl Fn(u64) -> Vec<&'static str>) -> Vec<Row> {
    let sizes = parse_sizes(LARGE).unwrap();
    sizes.iter().map(|&bytes| row_beside(&peers_at(bytes), bytes, [1.0; 3], 2.0, 1.0)).collect()
}

#[test]
fn a_peer_that_was_left_out_is_named() {
    let peers = ["intelmpi", "mpich", "openmpi"].map(str::to_owned);
    let rows =
        large_rows(|bytes| if bytes < 8 << 20 { vec!["intelmpi", "openmpi"] } else { vec!["intelmpi"] });
    let scenes = [scene(usual(), rows)];
    let [slower, near, fast] = Found { scenes: &scenes, peers: &peers }.large(USUAL);
    let missing =
        "; without mpich, which was left out; without openmpi at 8 MiB, 16 MiB, where it was left out";
    for figure in [&slower, &fast] {
        assert_eq!(figure.met, Some(true));
        assert!(figure.found.ends_with(missing), "{}", figure.found);
        assert!(!figure.found.contains("sizes:"), "{}", figure.found);
    }
    assert!(near.met == Some(true) && !near.found.contains("without"), "{}", near.found);
}

#[test]
fn with_all_sizes_and_peers_nothing_is_said_to_be_missing() {
    let peers = ["intelmpi".to_owned()];
    let scenes = [scene(usual(), large_rows(|_| vec!["intelmpi"]))];
    for figure in (Found { scenes: &scenes, peers: &peers }).large(USUAL) {
        let said = ["without", "measured at"].iter().any(|part| figure.found.contains(part));
        assert!(figure.met == Some(true) && !said, "{}", figure.found);
    }
}

#[test]
fn sizes_that_are_missing_are_told() {
    let rows = large_rows(|_| vec!["intelmpi"]).into_iter().filter(|row| row.bytes.trailing_zeros() % 2 == 0);
    let scenes = [scene(usual(), rows.collect())];
    for figure in found(&scenes).large(USUAL) {
        let sizes = "; measured at 5 of 9 sizes: 64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB";
        assert!(figure.met == Some(true) && figure.found.ends_with(sizes), "{}", figure.found);
    }
}
