//! A peer that scribbles: random words are written into all shared memory of two processes
//! while these exchange messages. What they exchange may be lost, wrong or stuck. Neither of
//! them may crash, panic or hang, and an endpoint in the same process whose memory was not
//! touched goes on.
//!
//! Three ranks. Ranks 0 and 1 have two endpoints each: a loud one, for each other, and a quiet
//! one, with which they talk to rank 2. This process writes into the mappings of the loud ones,
//! through /proc/PID/mem. Each rank then exchanges checked messages with rank 2, closes its
//! loud endpoint within the time limit, and exchanges some more.
//!
//! `LMT_SCRIBBLE_SEED` repeats the choices of a run (not what the processes did meanwhile);
//! `LMT_SCRIBBLE_RUNS` says how often each case is run.

mod common;
#[path = "scribble/rank.rs"]
mod rank;
#[path = "scribble/traffic.rs"]
mod traffic;
#[path = "scribble/writer.rs"]
mod writer;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Random;
use lmt_conformance::group::{Parent, Test};
use lmt_conformance::{require, test_name};

use traffic::Sizes;
use writer::{Values, Writer};

const ENV_SEED: &str = "LMT_SCRIBBLE_SEED";
const ENV_RUNS: &str = "LMT_SCRIBBLE_RUNS";
/// The file whose being there ends the traffic.
const ENV_STOP: &str = "LMT_SCRIBBLE_STOP";

/// For one run, which takes one or two seconds on an idle machine.
const RUN_LIMIT: Duration = Duration::from_secs(40);
/// How many words are written in a run.
const FEWEST_WORDS: u64 = 10_000;
const MOST_WORDS: u64 = 150_000;
/// Between two batches of words, for the processes to come across them.
const PAUSE: Duration = Duration::from_millis(5);

/// One run: what is exchanged, and under which settings.
type Case = (Sizes, &'static [(&'static str, &'static str)]);

const ANNOUNCED: &[(&str, &str)] = &[("LMT_EAGER_MAX", "0")];
const WITHOUT_BOXES: &[(&str, &str)] = &[("LMT_FAST_BOXES", "0")];

/// What every mechanism goes through.
const CASES: &[Case] =
    &[(Sizes::Large, &[]), (Sizes::Mixed, &[]), (Sizes::Mixed, ANNOUNCED), (Sizes::Mixed, WITHOUT_BOXES)];

#[test]
fn by_rule() {
    const CASES: &[Case] = &[
        (Sizes::Short, &[]),
        (Sizes::Short, WITHOUT_BOXES),
        (Sizes::Eager, &[]),
        (Sizes::Eager, WITHOUT_BOXES),
        (Sizes::Large, &[]),
        (Sizes::Mixed, &[]),
    ];
    scribble(test_name!(), &[], Values::Wild, CASES);
}

#[test]
fn by_ring() {
    scribble(test_name!(), &["ring"], Values::Near, CASES);
}

#[test]
fn by_shm() {
    scribble(test_name!(), &["shm"], Values::Near, CASES);
}

#[test]
fn by_cma() {
    scribble(test_name!(), &["cma"], Values::Wild, CASES);
}

#[test]
fn by_cma_of_both() {
    scribble(test_name!(), &["cma:both"], Values::Wild, CASES);
}

#[test]
fn by_mapped() {
    // `shm` until the first shared buffer is mapped.
    scribble(test_name!(), &["mapped", "shm"], Values::Near, CASES);
}

#[test]
fn by_vmsplice() {
    scribble(test_name!(), &["vmsplice"], Values::Near, CASES);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn random_seed() -> u64 {
    let bytes = lmt::random_id().expect("random bytes").to_bytes();
    u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Runs each case with these mechanisms, or with all.
fn scribble(name: &str, mechanisms: &[&str], values: Values, cases: &[Case]) {
    let seed = number(ENV_SEED).unwrap_or_else(random_seed);
    // Shown if the test fails, by this process and not by its ranks.
    if std::env::var(ENV_STOP).is_err() {
        println!("{name}: {ENV_SEED}={seed}");
    }
    let runs = number(ENV_RUNS).unwrap_or(1);
    for (at, (sizes, settings)) in (0..).zip((0..runs).flat_map(|_| cases)) {
        let seed = seed.wrapping_add(at);
        let folder = common::folder(name);
        let stop = folder.join(format!("stop-{}-{at}", std::process::id()));
        let test = Test::new(name, 3).time_limit(RUN_LIMIT);
        let mut test = common::configured_by(&folder, test)
            .env(ENV_SEED, &seed.to_string())
            .env(ENV_STOP, stop.to_str().expect("a plain path"));
        for (key, value) in *settings {
            test = test.env(key, value);
        }
        let begun = Instant::now();
        let mut written = None;
        let results = test.run_with(
            |parent| written = Some(drive(parent, seed, values, &stop)),
            |group| rank::run(group, mechanisms, *sizes, number(ENV_SEED).unwrap_or(0)),
        );
        // It may never have been made.
        let _removed = std::fs::remove_file(&stop);
        match written {
            // This is a rank.
            None => {}
            Some(Ok(words)) => {
                assert!(words >= FEWEST_WORDS, "only {words} words could be written: {results:?}");
                println!("{sizes:?} {settings:?}: {words} words, {:?}", begun.elapsed());
            }
            Some(Err(Skip::Mechanism(why))) => {
                let name = mechanisms.first().map_or("auto", |name| name.trim_end_matches(":both"));
                return require::skipped(name, &why);
            }
            Some(Err(Skip::Scribbling(why))) => return require::skipped("scribble", &why),
        }
        results.reports.iter().flatten().for_each(|line| println!("  {line}"));
    }
}

/// Why there is nothing to be seen.
enum Skip {
    /// The mechanism does not work here.
    Mechanism(String),
    /// The memory of another process cannot be written here.
    Scribbling(String),
}

/// Writes into the memory of both ranks; returns how many words.
fn drive(parent: &mut Parent, seed: u64, values: Values, stop: &Path) -> Result<u64, Skip> {
    let written = write(parent, seed, values);
    std::fs::write(stop, "").expect("the folder of the tests can be written");
    written
}

fn write(parent: &mut Parent, seed: u64, values: Values) -> Result<u64, Skip> {
    let mut writers = Vec::new();
    for rank in [0, 1] {
        // A rank that has failed says nothing, and the group tells of it.
        let Some(line) = parent.next_report(rank) else { return Ok(0) };
        if let Some(why) = line.strip_prefix("skip: ") {
            return Err(Skip::Mechanism(why.to_owned()));
        }
        let untouched = rank::read_ready(&line).expect("a rank is ready or has a reason not to be");
        writers.push((parent.pid(rank), untouched));
    }
    let open = |(pid, untouched)| Writer::open(pid, untouched);
    let writers: std::io::Result<Vec<Writer>> = writers.into_iter().map(open).collect();
    let mut writers = writers.map_err(|error| Skip::Scribbling(format!("/proc/PID/mem: {error}")))?;
    let mut random = Random::new(seed);
    let words = FEWEST_WORDS + random.below(MOST_WORDS - FEWEST_WORDS);
    let (mut written, mut batch) = (0, 1);
    // First few, which messages survive to come across more.
    while written < words {
        for writer in &mut writers {
            if let Err(error) = writer.find_pages() {
                assert!(written > 0, "no shared memory of a rank can be found: {error}");
                return Ok(written);
            }
        }
        for _ in 0..batch {
            let at = random.below(writers.len() as u64) as usize;
            match writers[at].write(&mut random, values) {
                Ok(()) => written += 1,
                Err(error) if written == 0 => {
                    return Err(Skip::Scribbling(format!("writing /proc/PID/mem: {error}")));
                }
                // Memory of a connection that has ended, or the rank has died: then there are no
                // pages to be found, and the group tells of it.
                Err(_) => break,
            }
        }
        std::thread::sleep(PAUSE);
        batch = (batch * 2).min(words - written);
    }
    Ok(written)
}
