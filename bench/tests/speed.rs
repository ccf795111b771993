//! The bounds on speed, against what the bare machine does in the same run.
//!
//! Only with `LMT_SPEED=1` (`make speed`): it takes the whole machine, some
//! minutes and a release build to mean something.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lmt_bench::tune::plan::may_be_chosen;
use lmt_selector::calibration::{EAGER, EAGER_MAX_BYTES, Load, taken};
use lmt_selector::config::parse_file;
use lmt_selector::rules::Authority;
use serde_json::Value;

const SMALL_BYTES: u64 = 8;
/// One way takes at most so many cache-line hops.
const MAX_HOPS: f64 = 2.2;
/// From 256 KiB up.
const LARGE: [u64; 7] = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
/// Mechanism, its own bare ping-pong, and the least percent of its speed.
const LARGE_BOUNDS: [(&str, &str, f64); 2] = [("cma", "vm-readv", 90.0), ("shm", "pipe-2x64k", 85.0)];
/// One copy through a pipe against two.
const PIPE_BYTES: u64 = 1 << 20;
const PIPE_MIN_PERCENT: f64 = 130.0;
/// Regions without the kernel module against the same system call without them.
const REGIONS_MIN_PERCENT: f64 = 90.0;
/// How much of a transfer in the background must hide behind a computation.
const OVERLAP_BYTES: u64 = 4 << 20;
const OVERLAP_MIN: f64 = 0.7;
/// Two calibrations in a row choose the same way for so many sizes, and for so
/// many of those at which there is a choice.
const AGREEMENT_MIN_PERCENT: f64 = 90.0;
/// Another two are compared only if others took more than so much of the
/// machine's time while these were made.
const DISTURBED_PERCENT: f64 = 3.0;
const CALIBRATION_ATTEMPTS: usize = 3;
/// What `lmt tune --quick` may take.
const QUICK_MAX: Duration = Duration::from_secs(180);
/// The machine is shared, and others' work only adds time: one good
/// measurement of a size shows what lmt can do there.
const ATTEMPTS: usize = 5;

/// More than this says that others disturbed the method that ought to be about
/// as fast: measured again, while there are attempts left.
const PLAUSIBLE_PERCENT: f64 = 125.0;
/// More is hidden than there is: others disturbed the transfer alone.
const PLAUSIBLE_OVERLAP: f64 = 1.05;

/// Where both ends are busy with messages of their own, the help of the other
/// is worth nothing; and it must cost nothing. In percent of the speed of the
/// receiver alone, which it is measured in turns with.
const BUSY_MIN_PERCENT: f64 = 97.0;
const BUSY_SIZES: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
const BUSY_PATTERNS: [&[&str]; 4] =
    [&["pingping"], &["exchange"], &["alltoall", "-n", "2"], &["alltoall", "-n", "4"]];

/// With a calibration of this machine, what the selector takes is as good as
/// the best of the ways it was chosen from, whatever the length.
const AUTO_MIN_PERCENT: f64 = 95.0;
const AUTO_LARGEST_BYTES: u64 = 16 << 20;

/// One bound at one size.
#[derive(Clone, Copy, Debug)]
struct Bound {
    mechanism: &'static str,
    /// A bare method or another mechanism.
    against: &'static str,
    bytes: u64,
    min_percent: f64,
    plausible_percent: f64,
}

fn bounds(works: impl Fn(&str) -> bool) -> Vec<Bound> {
    let works = |mechanism| {
        let works = works(mechanism);
        if !works {
            println!("SKIPPED the bounds of {mechanism}: it does not work here");
        }
        works
    };
    let bound = |mechanism, against, bytes, min_percent| Bound {
        mechanism,
        against,
        bytes,
        min_percent,
        plausible_percent: PLAUSIBLE_PERCENT,
    };
    let mut bounds = Vec::new();
    for (mechanism, method, min_percent) in LARGE_BOUNDS {
        if works(mechanism) {
            bounds.push(bound(mechanism, "hop", SMALL_BYTES, 100.0 / MAX_HOPS));
            bounds.extend(LARGE.map(|bytes| bound(mechanism, method, bytes, min_percent)));
        }
    }
    if works("vmsplice") && works("writev") {
        // Two copies may take as much longer as they like.
        bounds.push(Bound {
            plausible_percent: f64::INFINITY,
            ..bound("vmsplice", "writev", PIPE_BYTES, PIPE_MIN_PERCENT)
        });
    }
    if works("knem-user") && works("cma") {
        bounds.extend(LARGE.map(|bytes| bound("knem-user", "cma", bytes, REGIONS_MIN_PERCENT)));
    }
    bounds
}

/// How messages are measured: the bounds, and calibrations, are of unmodified ones.
const MEASURED: [&str; 3] = ["--unmodified", "--repetitions", "31"];

/// The rows of one run of the command, in a fresh group.
fn measure(arguments: &[&str]) -> Vec<Value> {
    measure_with(arguments, None)
}

/// The same, configured by this file.
fn measure_with(arguments: &[&str], config: Option<&Path>) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .arg("bench")
        .args(arguments)
        .args(["--format", "json"])
        .envs(config.map(|path| ("LMT_CONFIG", path)))
        .stderr(Stdio::inherit())
        .output()
        .expect("lmt starts");
    assert!(output.status.success(), "lmt bench ended with {}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

/// Every mechanism over these sizes, beside the bare methods.
fn measure_all(sizes: &[u64]) -> Vec<Value> {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let sizes = sizes.join(",");
    measure(&[&["pingpong", "--mechanism", "all", "--sizes", &sizes, "--limits"], &MEASURED[..]].concat())
}

/// What it is measured against as percent of the mechanism's time. Against a
/// bare method: the median over pairs that were measured one after the other;
/// against another mechanism: the medians of repetitions that took turns.
fn percent(rows: &[Value], bound: &Bound) -> f64 {
    let row = |name: &str| rows.iter().find(|row| row["mechanism"] == name && row["bytes"] == bound.bytes);
    let ratios = row(bound.mechanism).and_then(|row| row["ratios"].as_array());
    let ratio = ratios.and_then(|ratios| ratios.iter().find(|ratio| ratio["method"] == bound.against));
    let paired = ratio.and_then(|ratio| ratio["percent"].as_f64());
    let usec = |name| row(name).and_then(|row| row["usec_median"].as_f64());
    let percent = paired.or_else(|| Some(100.0 * usec(bound.against)? / usec(bound.mechanism)?));
    percent.unwrap_or_else(|| panic!("nothing was measured for {bound:?}"))
}

/// Whether the bounds on speed are to be checked; says why where not.
fn is_asked_for() -> bool {
    if std::env::var("LMT_SPEED").as_deref() != Ok("1") {
        println!("SKIPPED: it takes minutes and the whole machine; LMT_SPEED=1 (make speed) runs it");
        return false;
    }
    if cfg!(debug_assertions) {
        panic!("LMT_SPEED means something in a release build only; use make speed");
    }
    true
}

/// What measures has the machine for itself, also under `cargo test`.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn speed_is_near_what_the_machine_allows() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    let names = measure_all(&[SMALL_BYTES]);
    let mut open = bounds(|mechanism| names.iter().any(|row| row["mechanism"] == mechanism));
    assert!(!open.is_empty(), "no mechanism with a bound works here, so no speed can be measured");
    for attempt in 1..=ATTEMPTS {
        let mut sizes: Vec<u64> = open.iter().map(|bound| bound.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let rows = measure_all(&sizes);
        open.retain(|bound| {
            let Bound { mechanism, against, bytes, min_percent, plausible_percent } = *bound;
            let percent = percent(&rows, bound);
            let verdict = match percent {
                percent if percent < min_percent => "TOO SLOW",
                percent if percent > plausible_percent && attempt < ATTEMPTS => "disturbed",
                _ => "ok",
            };
            println!(
                "attempt {attempt}: {mechanism:9} {bytes:9} B: {percent:6.1} % of {against}, \
                 at least {min_percent:.1} %: {verdict}"
            );
            verdict != "ok"
        });
        if open.is_empty() {
            return;
        }
    }
    panic!("after {ATTEMPTS} attempts these are still missed: {open:#?}");
}

#[test]
fn both_ends_are_not_slower_where_both_are_busy() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    let bound = |bytes| Bound {
        mechanism: "cma:both",
        against: "cma:get",
        bytes,
        min_percent: BUSY_MIN_PERCENT,
        plausible_percent: f64::INFINITY,
    };
    let mut missed = Vec::new();
    for pattern in BUSY_PATTERNS {
        let mut open = BUSY_SIZES.map(bound).to_vec();
        for attempt in 1..=ATTEMPTS {
            let sizes: Vec<String> = open.iter().map(|bound| bound.bytes.to_string()).collect();
            let sizes = sizes.join(",");
            let ways = ["--mechanism", "cma:both,cma:get", "--sizes", &sizes];
            let rows = measure(&[pattern, &ways, &MEASURED].concat());
            open.retain(|bound| {
                let percent = percent(&rows, bound);
                println!("attempt {attempt}: {pattern:?} {:9} B: {percent:6.1} % of cma:get", bound.bytes);
                percent < bound.min_percent
            });
            if open.is_empty() {
                break;
            }
        }
        missed.extend(open.into_iter().map(|bound| (pattern, bound)));
    }
    assert!(missed.is_empty(), "after {ATTEMPTS} attempts these are still missed: {missed:#?}");
}

/// The case of an overlap's rows in which rank 0 receives.
fn hidden(rows: &[Value]) -> f64 {
    let row = rows.iter().find(|row| row["details"]["case"] == "receive").expect("the receiver's side");
    let figures = row["details"]["figures"].as_array().expect("figures");
    let overlap = figures.iter().find(|figure| figure["name"] == "overlap");
    overlap.and_then(|overlap| overlap["median"].as_f64()).expect("an overlap")
}

#[test]
fn a_copy_in_the_background_hides_behind_a_computation() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    let cpus = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).expect("the kernel says");
    let cpus = (0..nix::sched::CpuSet::count()).filter(|&cpu| cpus.is_set(cpu).unwrap_or(false)).count();
    if cpus < 2 {
        println!("SKIPPED the bound on overlap: no core is free, since this process may use one only");
        return;
    }
    let names = measure(&["pingpong", "--mechanism", "all", "--sizes", "8", "--repetitions", "1"]);
    if !names.iter().any(|row| row["mechanism"] == "ioat-software") {
        println!("SKIPPED the bound on overlap: ioat-software does not work here");
        return;
    }
    let bytes = OVERLAP_BYTES.to_string();
    let arguments = ["overlap", "--mechanism", "ioat-software", "--sizes", &bytes, "--repetitions", "15"];
    for attempt in 1..=ATTEMPTS {
        let hidden = hidden(&measure(&arguments));
        println!("attempt {attempt}: {hidden:.2} of {bytes} B hidden, at least {OVERLAP_MIN}");
        if (OVERLAP_MIN..=PLAUSIBLE_OVERLAP).contains(&hidden) {
            return;
        }
    }
    panic!("after {ATTEMPTS} attempts the overlap is still missed");
}

/// A calibration that was made now, and is gone when the test has ended.
struct Calibrated(PathBuf);

impl Calibrated {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lmt-speed-{}.toml", std::process::id()));
        let calibration = Self(path);
        let output = Command::new(env!("CARGO_BIN_EXE_lmt"))
            .args(["tune", "--quick", "--output"])
            .arg(&calibration.0)
            .stderr(Stdio::inherit())
            .output()
            .expect("lmt starts");
        assert!(output.status.success(), "lmt tune ended with {}", output.status);
        calibration
    }
}

impl Drop for Calibrated {
    fn drop(&mut self) {
        for extension in ["toml", "html"] {
            // It may never have been written.
            let _ = std::fs::remove_file(self.0.with_extension(extension));
        }
    }
}

/// How near `auto` is to the best way by itself of the same run, in percent, and
/// which that is. Cells are among them as far as they may be chosen.
fn auto_percent(rows: &[Value], bytes: u64) -> (f64, String) {
    let at_size = rows.iter().filter(|row| row["bytes"] == bytes);
    let timed = at_size.filter_map(|row| Some((row["mechanism"].as_str()?, row["usec_median"].as_f64()?)));
    let useful = timed.filter(|(name, _)| *name != EAGER || bytes <= EAGER_MAX_BYTES);
    let (auto, others): (Vec<_>, Vec<_>) = useful.partition(|(name, _)| *name == "auto");
    let best = others.into_iter().min_by(|one, other| one.1.total_cmp(&other.1));
    match (auto.first(), best) {
        (Some((_, auto)), Some((name, best))) => (100.0 * best / auto, name.to_owned()),
        _ => panic!("auto and ways by themselves were not both measured at {bytes} B"),
    }
}

/// The sizes at which an endpoint with this configuration is further behind the
/// best way than it may be, in each of the attempts: what rules say of cells and
/// of mechanisms holds for `auto` only, the others take one way each.
fn auto_is_behind(config: &Path, sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut open: Vec<u64> = sizes.collect();
    for attempt in 1..=ATTEMPTS {
        let sizes = open.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let arguments = ["pingpong", "--mechanism", "auto,eager,announced", "--sizes", &sizes];
        let rows = measure_with(&[&arguments, &MEASURED[..]].concat(), Some(config));
        open.retain(|&bytes| {
            let (percent, best) = auto_percent(&rows, bytes);
            let verdict = if percent < AUTO_MIN_PERCENT { "TOO SLOW" } else { "ok" };
            println!(
                "attempt {attempt}: auto {bytes:9} B: {percent:6.1} % of {best}, \
                 at least {AUTO_MIN_PERCENT:.1} %: {verdict}"
            );
            percent < AUTO_MIN_PERCENT
        });
        if open.is_empty() {
            break;
        }
    }
    open
}

fn powers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_u64), |bytes| Some(bytes * 2))
}

#[test]
fn a_calibrated_endpoint_takes_the_best_way() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    let calibration = Calibrated::new();
    let behind = auto_is_behind(&calibration.0, powers().take_while(|bytes| *bytes <= AUTO_LARGEST_BYTES));
    assert!(behind.is_empty(), "after {ATTEMPTS} attempts auto is still behind at {behind:?} bytes");
}

/// The judgement above finds rules that are wrong: cells for all that may travel
/// in them, and nothing but announced messages.
#[test]
fn wrong_bounds_of_cells_are_found() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    let path = std::env::temp_dir().join(format!("lmt-speed-wrong-{}.toml", std::process::id()));
    let wrong = Calibrated(path);
    std::fs::write(&wrong.0, "[[rule]]\nup_to = \"1 MiB\"\ntake = \"eager\"\n").expect("a file");
    let long = powers().filter(|bytes| (256 << 10..=EAGER_MAX_BYTES).contains(bytes));
    assert!(!auto_is_behind(&wrong.0, long).is_empty(), "messages of 1 MiB in cells went unnoticed");
    std::fs::write(&wrong.0, "[endpoint]\neager_max_bytes = 0\n").expect("a file");
    let short = powers().take_while(|bytes| *bytes <= 256);
    assert!(!auto_is_behind(&wrong.0, short).is_empty(), "short messages that are announced went unnoticed");
}

/// The way of one size under one load.
#[derive(Debug, PartialEq, Eq)]
struct Class {
    load: Load,
    bytes: u64,
    way: Option<String>,
    /// How many of the ways that were measured may be chosen there.
    candidates: usize,
}

impl Class {
    /// Whether it could have been another.
    fn is_contested(&self) -> bool {
        let is_own_choice = self.way.as_deref().is_none_or(|way| may_be_chosen(way, self.load));
        is_own_choice && self.candidates > 1
    }
}

/// What a calibration chose, and how much of the machine's time others took
/// while it was made, in percent.
struct Calibration {
    classes: Vec<Class>,
    others_percent: f64,
}

/// The time that all CPUs together were busy, and that was taken from them; and
/// of it this process's children's. Both in ticks, as proc_stat(5) and
/// proc_pid_stat(5) have them.
fn busy_ticks() -> (f64, f64) {
    let numbers =
        |text: &str| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let all = numbers(stat.lines().next().expect("a first line"));
    let own = std::fs::read_to_string("/proc/self/stat").expect("/proc/self/stat");
    // The name, in parentheses, may hold anything.
    let own = own.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    let own: f64 = own.filter_map(|word| word.parse::<f64>().ok()).sum();
    // user, nice, system; irq, softirq, steal. Not idle and iowait.
    let busy = all.iter().take(3).sum::<f64>() + all.iter().skip(5).take(3).sum::<f64>();
    (busy, own)
}

fn calibrated() -> Calibration {
    let (before, begin) = (busy_ticks(), Instant::now());
    let calibration = Calibrated::new();
    let (after, took) = (busy_ticks(), begin.elapsed());
    assert!(took <= QUICK_MAX, "lmt tune --quick took {took:?}");
    let ticks_per_s = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    let cpus = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let cpus = cpus.lines().skip(1).take_while(|line| line.starts_with("cpu")).count().max(1);
    let others = ((after.0 - before.0) - (after.1 - before.1)).max(0.0);
    let others_percent = 100.0 * others / (ticks_per_s as f64 * took.as_secs_f64() * cpus as f64);
    let text = std::fs::read_to_string(&calibration.0).expect("a calibration");
    let parsed =
        parse_file(&calibration.0, &text, Authority::Calibration, &lmt::configuration::sources().known)
            .expect("a calibration that parses");
    let mut classes: Vec<Class> = Vec::new();
    for figure in &parsed.layer.figures {
        let load = Load { place: figure.place, pairs: figure.pairs, off_cache: figure.off_cache };
        let is_candidate = usize::from(may_be_chosen(&figure.way, load));
        match classes.iter_mut().find(|class| (class.load, class.bytes) == (load, figure.bytes)) {
            Some(class) => class.candidates += is_candidate,
            None => classes.push(Class {
                load,
                bytes: figure.bytes,
                way: taken(&parsed.layer.rules, load, figure.bytes),
                candidates: is_candidate,
            }),
        }
    }
    Calibration { classes, others_percent }
}

/// Whether two calibrations chose the same for enough of all sizes, and for
/// enough of those at which one of them had a choice; says where they did not.
fn agree(before: &[Class], now: &[Class]) -> bool {
    let key = |class: &Class| (class.load, class.bytes);
    assert!(before.iter().map(key).eq(now.iter().map(key)), "two calibrations measured different sizes");
    let percent = |what: &str, counts: &dyn Fn(&Class) -> bool| {
        let both: Vec<_> =
            before.iter().zip(now).filter(|(one, other)| counts(one) || counts(other)).collect();
        assert!(!both.is_empty(), "there is nothing to compare");
        let same = both.iter().filter(|(one, other)| one.way == other.way).count();
        let percent = 100.0 * same as f64 / both.len() as f64;
        println!("two calibrations agree on {percent:.0} % of {} {what}", both.len());
        percent
    };
    let all = percent("sizes", &|_| true);
    let contested = percent("sizes at which there is a choice", &Class::is_contested);
    for (one, other) in before.iter().zip(now).filter(|(one, other)| one.way != other.way) {
        println!("  {:?}, {} B: {:?}, then {:?}", one.load, one.bytes, one.way, other.way);
    }
    all >= AGREEMENT_MIN_PERCENT && contested >= AGREEMENT_MIN_PERCENT
}

#[test]
fn two_calibrations_agree() {
    if !is_asked_for() {
        return;
    }
    let _turn = turn();
    for attempt in 1..=CALIBRATION_ATTEMPTS {
        let (before, now) = (calibrated(), calibrated());
        let disturbed = before.others_percent.max(now.others_percent);
        println!("attempt {attempt}: others took up to {disturbed:.1} % of the machine's time");
        if agree(&before.classes, &now.classes) {
            return;
        }
        assert!(
            disturbed > DISTURBED_PERCENT,
            "two calibrations in a row do not agree on {AGREEMENT_MIN_PERCENT} % of sizes, and nobody disturbed them"
        );
    }
    panic!(
        "others disturbed the machine in all {CALIBRATION_ATTEMPTS} attempts, and no two calibrations agree"
    );
}

#[test]
fn what_cannot_differ_does_not_count_as_agreement() {
    let load = Load { place: lmt_selector::topology::Place::Other, pairs: 1, off_cache: false };
    let class = |bytes, way: &str, candidates, off_cache| Class {
        load: Load { off_cache, ..load },
        bytes,
        way: Some(way.to_owned()),
        candidates,
    };
    let course = |way| -> Vec<Class> {
        let alone = (0..95).map(|bytes| class(bytes, EAGER, 1, false));
        let of_others = (0..95).map(|bytes| class(bytes, EAGER, 5, true));
        let contested = (95..100).map(|bytes| class(bytes, way, 2, true));
        alone.chain(of_others).chain(contested).collect()
    };
    assert!(agree(&course("a:get"), &course("a:get")));
    assert!(!agree(&course("a:get"), &course("b:get")), "97 % of sizes, and none with a choice");
}

#[test]
fn the_best_way_by_itself_is_what_auto_is_judged_by() {
    let row = |mechanism: &str, bytes: u64, usec: f64| serde_json::json!({ "mechanism": mechanism, "bytes": bytes, "usec_median": usec });
    let rows = [(EAGER, 4.0), ("auto", 5.0), ("announced:a", 6.0)];
    let at = |bytes| rows.map(|(mechanism, usec)| row(mechanism, bytes, usec));
    assert_eq!(auto_percent(&at(EAGER_MAX_BYTES), EAGER_MAX_BYTES), (80.0, EAGER.to_owned()));
    let beyond = 2 * EAGER_MAX_BYTES;
    assert_eq!(auto_percent(&at(beyond), beyond), (120.0, "announced:a".to_owned()));
}
