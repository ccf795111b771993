//! The three processes of a run.

use std::path::Path;
use std::time::{Duration, Instant};

use lmt::mechanism::Abilities;
use lmt::{Address, Endpoint, Engine, PeerId};
use lmt_conformance::group::Group;

use super::ENV_STOP;
use super::common::{self, pattern};
use super::traffic::{BEFOREHAND, Sizes, Traffic};
use super::writer::inodes_here;

/// The rank that nobody's memory is spoilt for.
const THIRD: u32 = 2;
/// What is exchanged with it: in a line, a line buffer, cells, and by a mechanism.
const CHECKED: [usize; 5] = [8, 300, 10_000, 100_000, 600_000];
/// How long a loud endpoint may take to close, and beyond that for a loaded machine.
const CLOSE_TIMEOUT_MS: u64 = 300;
const SLACK: Duration = Duration::from_secs(3);
/// How long messages may still arrive when nothing is written any more.
const AFTERWARDS: Duration = Duration::from_millis(100);

/// What these mechanisms move, or all that there are; the first of them must work.
pub fn run(group: &Group, mechanisms: &[&str], sizes: Sizes, seed: u64) {
    // A panic in any thread, caught or not, is seen by the parent.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }));
    if group.rank() == THIRD {
        third(group);
    } else {
        scribbled_on(group, mechanisms, sizes, seed);
    }
}

/// The memories that are to be left alone, in what a rank reports.
pub fn read_ready(line: &str) -> Option<Vec<u64>> {
    line.strip_prefix("ready")?.split_whitespace().map(|inode| inode.parse().ok()).collect()
}

fn third(group: &Group) {
    let (endpoint, peers) = common::join_plain(group);
    for round in 0..3 {
        for rank in 0..THIRD {
            exchange(&endpoint, peers[rank as usize], round, false);
        }
    }
    endpoint.close().expect("this is no forked child");
}

/// Exchanges checked messages.
fn exchange(endpoint: &Endpoint, peer: PeerId, round: u64, is_first: bool) {
    for bytes in CHECKED {
        let seed = |is_first: bool| round << 32 | (bytes as u64) << 1 | u64::from(is_first);
        let send = || endpoint.send(peer, round, &pattern(seed(is_first), bytes)).expect("the peer is there");
        if is_first {
            send();
        }
        common::receive_and_check(endpoint, peer, round, seed(!is_first), bytes);
        if !is_first {
            send();
        }
    }
}

/// The endpoint whose memory is written to, and where that of the other rank is.
fn loud(group: &Group, mechanisms: &[&str]) -> (Engine, Address) {
    let id = |rank| group.id().member(10 + rank);
    let mut builder = Endpoint::builder()
        .id(id(group.rank()))
        .configure(|config| config.close_timeout_ms = CLOSE_TIMEOUT_MS);
    if !mechanisms.is_empty() {
        builder = builder.mechanisms(mechanisms);
    }
    (builder.build_engine().expect("an endpoint"), Address::abstract_socket(id(1 - group.rank())))
}

/// Why this mechanism does not work with the peer.
fn why_not(engine: &Engine, peer: PeerId, mechanism: &str) -> Option<String> {
    let mechanism_status = engine.mechanism_status(peer);
    let (_, standing) = mechanism_status.into_iter().find(|(name, _)| *name == mechanism)?;
    (standing.ours == Abilities::default()).then(|| standing.reason.map(|why| why.sentence))?
}

fn scribbled_on(group: &Group, mechanisms: &[&str], sizes: Sizes, seed: u64) {
    let (quiet, peers) = common::join_plain(group);
    let third = peers[THIRD as usize];
    exchange(&quiet, third, 0, true);
    let untouched = inodes_here();

    let (mut engine, address) = loud(group, mechanisms);
    let mechanism = mechanisms.first().map(|name| name.split(':').next().unwrap_or(name));
    let has_shared_memory = mechanism == Some("mapped");
    let seed = seed ^ u64::from(group.rank()) << 40;
    let mut traffic = Traffic::new(&mut engine, address, sizes, has_shared_memory, seed);
    let begun = Instant::now();
    let mut missing = None;
    while missing.is_none() && (traffic.sent < BEFOREHAND || traffic.received < BEFOREHAND) {
        traffic.turn(&mut engine);
        missing = mechanism.and_then(|mechanism| why_not(&engine, traffic.peer(), mechanism));
        assert!(begun.elapsed() < Duration::from_secs(15), "no messages before anything was written");
    }
    match missing {
        Some(why) => group.report(format!("skip: {why}")),
        None => {
            let inodes: Vec<String> = untouched.iter().map(u64::to_string).collect();
            group.report(format!("ready {}", inodes.join(" ")));
        }
    }
    let beforehand = traffic.sent + traffic.received;
    let stop = std::env::var(ENV_STOP).expect("the parent names it");
    while !Path::new(&stop).exists() {
        traffic.turn(&mut engine);
    }
    let stopped = Instant::now();
    while stopped.elapsed() < AFTERWARDS && !traffic.has_sent_all() {
        traffic.progress(&mut engine);
    }

    exchange(&quiet, third, 1, true);
    let begun = Instant::now();
    engine.close().expect("this is no forked child");
    drop(engine);
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(CLOSE_TIMEOUT_MS) + SLACK, "closing took {took:?}");
    exchange(&quiet, third, 2, true);
    let begun = Instant::now();
    quiet.close().expect("this is no forked child");
    let quiet_took = begun.elapsed();
    assert!(quiet_took < SLACK, "closing the quiet endpoint took {quiet_took:?}");
    group.report(format!(
        "rank {}: {} operations done and {} failed while it was written to, {} connections; closing took {took:?}",
        group.rank(),
        traffic.sent + traffic.received - beforehand,
        traffic.failed,
        traffic.reconnected
    ));
    drop(traffic);
}
