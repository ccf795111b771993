//! The bounds on speed, against what the bare machine does in the same run.
//!
//! Only with `LMT_SPEED=1` (`make speed`): it takes the whole machine, some
//! minutes and a release build to mean something.

use std::process::{Command, Stdio};

use serde_json::Value;

const SMALL_BYTES: u64 = 8;
/// One way takes at most so many cache-line hops.
const MOST_HOPS: f64 = 2.2;
/// From 256 KiB up.
const LARGE: [u64; 7] = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
/// Mechanism, its own bare ping-pong, and the least percent of its speed.
const LARGE_BOUNDS: [(&str, &str, f64); 2] = [("cma", "vm-readv", 90.0), ("shm", "pipe-2x64k", 85.0)];
/// The machine is shared, and others' work only adds time: one good
/// measurement of a size shows what lmt can do there.
const ATTEMPTS: usize = 5;

/// More than this says that others disturbed the bare method: measured again,
/// while there are attempts left.
const PLAUSIBLE_PERCENT: f64 = 125.0;

/// One bound at one size.
#[derive(Clone, Copy, Debug)]
struct Bound {
    mechanism: &'static str,
    method: &'static str,
    bytes: u64,
    least_percent: f64,
}

fn bounds(works: impl Fn(&str) -> bool) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (mechanism, method, least_percent) in LARGE_BOUNDS {
        if !works(mechanism) {
            println!("SKIPPED the bounds of {mechanism}: it does not work here");
            continue;
        }
        let hops = Bound { mechanism, method: "hop", bytes: SMALL_BYTES, least_percent: 100.0 / MOST_HOPS };
        bounds.push(hops);
        bounds.extend(LARGE.map(|bytes| Bound { mechanism, method, bytes, least_percent }));
    }
    bounds
}

/// The rows of one run of the command over these sizes, in a fresh group.
fn measure(sizes: &[u64], mechanism: &str) -> Vec<Value> {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["bench", "pingpong", "--mechanism", mechanism, "--sizes", &sizes.join(",")])
        .args(["--limits", "--repetitions", "31", "--format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("lmt starts");
    assert!(output.status.success(), "lmt bench ended with {}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

/// The bare method's time as percent of the mechanism's: the median over
/// pairs that were measured one after the other.
fn percent(rows: &[Value], bound: &Bound) -> f64 {
    let row = rows.iter().find(|row| row["mechanism"] == bound.mechanism && row["bytes"] == bound.bytes);
    let ratios = row.and_then(|row| row["ratios"].as_array());
    let ratio = ratios.and_then(|ratios| ratios.iter().find(|ratio| ratio["method"] == bound.method));
    let percent = ratio.and_then(|ratio| ratio["percent"].as_f64());
    percent.unwrap_or_else(|| panic!("nothing was measured for {bound:?}"))
}

#[test]
fn speed_is_near_what_the_machine_allows() {
    if std::env::var("LMT_SPEED").as_deref() != Ok("1") {
        println!("SKIPPED: it takes minutes and the whole machine; LMT_SPEED=1 (make speed) runs it");
        return;
    }
    if cfg!(debug_assertions) {
        panic!("LMT_SPEED means something in a release build only; use make speed");
    }
    let names = measure(&[SMALL_BYTES], "all");
    let mut open = bounds(|mechanism| names.iter().any(|row| row["mechanism"] == mechanism));
    assert!(!open.is_empty(), "neither mechanism works here, so no speed can be measured");
    for attempt in 1..=ATTEMPTS {
        let mut sizes: Vec<u64> = open.iter().map(|bound| bound.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let rows = measure(&sizes, "all");
        open.retain(|bound| {
            let Bound { mechanism, method, bytes, least_percent } = *bound;
            let percent = percent(&rows, bound);
            let verdict = match percent {
                percent if percent < least_percent => "TOO SLOW",
                percent if percent > PLAUSIBLE_PERCENT && attempt < ATTEMPTS => "disturbed",
                _ => "ok",
            };
            println!(
                "attempt {attempt}: {mechanism:4} {bytes:9} B: {percent:6.1} % of {method}, \
                 at least {least_percent:.1} %: {verdict}"
            );
            verdict != "ok"
        });
        if open.is_empty() {
            return;
        }
    }
    panic!("after {ATTEMPTS} attempts these are still missed: {open:#?}");
}
