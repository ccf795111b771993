//! Which algorithms of collective operations are faster here than those that the
//! library would choose.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use lmt_collectives::explain::{Question, explain};
use lmt_collectives::{Algorithm, Kind};
use lmt_core::selection::Source;
use lmt_selector::collectives::CollectiveRule;
use lmt_selector::configuration::Configuration;
use lmt_selector::contention::Parameters;

use super::plan::Effort;
use crate::cache::available_memory_bytes;
use crate::collectives::plan::{Plan, Turns};
use crate::collectives::ranks::{Ranks, Turned};
use crate::collectives::workload::Work;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::stats::{Spread, ratios};
use crate::warm_up::{Next, WarmUp};

/// The operations that are measured.
const KINDS: [Kind; 6] =
    [Kind::Broadcast, Kind::Scatter, Kind::Gather, Kind::Allgather, Kind::Alltoall, Kind::Allreduce];
/// Their lengths: the message, one rank's block or the vector.
const SIZES: [u64; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// What numbers of readers at a time are tried, where there are more ranks.
const NUMBERS: [u32; 4] = [1, 2, 4, 8];
/// By so much an algorithm has to be faster than the library's choice: 5 %.
const CLEARLY: f64 = 1.05;
/// So many times as many rounds are done again by the library's choice and what was
/// faster.
const AGAIN: u32 = 2;
/// The most ranks that are measured.
const MAX_RANKS: u32 = 64;
/// The part of all time that this may take.
const SHARE: u64 = 10;

/// What is to be measured.
pub struct Task<'a> {
    /// The CPUs that may be used.
    pub cpus: &'a [usize],
    /// What single copy costs here, by which the library chooses.
    pub figures: Option<Parameters>,
    /// The only lengths that are wanted, if not all.
    pub sizes: Option<&'a [u64]>,
    /// How often.
    pub effort: Effort,
    /// When it is over at the latest.
    pub deadline: Instant,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// What is faster than the library's choice.
    pub rules: Vec<CollectiveRule>,
    /// In how many cases something was measured: an operation at a length on some ranks.
    pub cases: usize,
    /// What was not measured and why, a sentence each.
    pub skipped: Vec<String>,
}

/// What one operation at one length on some ranks takes by each algorithm.
#[derive(Debug, Default)]
struct Case {
    bytes: u64,
    /// The library's choice.
    default: Option<Algorithm>,
    /// Microseconds of the slowest rank, one for each round.
    times: Vec<Times>,
}

/// A length, and what is faster there than the library's choice, if anything is.
type Winner = (u64, Option<Algorithm>);

/// One algorithm's times.
type Times = (Algorithm, Vec<f64>);

/// The time that this takes of all.
pub fn share(effort: Effort) -> Duration {
    Duration::from_secs(effort.time_s / SHARE)
}

/// Measures until it is over or time is.
pub fn measure(task: &Task<'_>, interrupt: &Interrupt) -> Found {
    let mut found = Found::default();
    // No more than the kernel has.
    let cpus = task.cpus.len() as u32;
    for ranks in [cpus.clamp(2, MAX_RANKS), (2 * cpus).min(MAX_RANKS)] {
        for kind in KINDS {
            let measured = operation(task, kind, ranks, interrupt);
            if interrupt.signal().is_some() || matches!(measured, Ok(None)) {
                let why = if interrupt.signal().is_some() { "a signal came" } else { "time was over" };
                found.skipped.push(format!("{kind} on {ranks} ranks and what comes behind it: {why}"));
                return found;
            }
            match measured {
                Ok(winners) => {
                    let winners = winners.unwrap_or_default();
                    found.cases += winners.len();
                    found.rules.extend(rules(kind, ranks, &winners));
                }
                Err(error) => found.skipped.push(format!("{kind} on {ranks} ranks: {error}")),
            }
        }
        if cpus >= MAX_RANKS {
            break;
        }
    }
    found
}

/// All lengths of one operation; nothing if it has to end before.
fn operation(
    task: &Task<'_>,
    kind: Kind,
    ranks: u32,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Winner>>, BenchError> {
    let is_over = || interrupt.signal().is_some() || Instant::now() >= task.deadline;
    let Some(cases) = cases(task, kind, ranks, &is_over)? else { return Ok(None) };
    let mut winners = Vec::new();
    for case in &cases {
        let Some(other_algorithm) = winner(case) else {
            winners.push((case.bytes, None));
            continue;
        };
        let Some(again) = again(task, (kind, ranks), case, other_algorithm, &is_over)? else {
            return Ok(None);
        };
        winners.push((case.bytes, winner(&again)));
    }
    Ok(Some(winners))
}

/// The library's choice and what was faster in turns again, by themselves and in new
/// processes: of many algorithms the one that has been lucky looks the fastest, and where
/// a process's pages lie stays the same as long as it lives.
fn again(
    task: &Task<'_>,
    (kind, ranks): (Kind, u32),
    first: &Case,
    other_algorithm: Algorithm,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Case>, BenchError> {
    let both: Vec<Algorithm> = first.default.into_iter().chain([other_algorithm]).collect();
    let contenders = both.iter().map(|one| Turns::Algorithm(one.to_string())).collect();
    let plan = Plan { contenders, sizes: vec![first.bytes], ..plan(kind, ranks, task) };
    let mut group = Ranks::start_without_settings(&plan)?;
    let times = case(&mut group, &both, first.bytes, AGAIN * plan.repetitions, is_over)?;
    Ok(times.map(|times| Case { bytes: first.bytes, default: first.default, times }))
}

/// Each length by all algorithms; nothing if it has to end before.
fn cases(
    task: &Task<'_>,
    kind: Kind,
    ranks: u32,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Vec<Case>>, BenchError> {
    let mut plan = plan(kind, ranks, task);
    let half = available_memory_bytes().map_or(u64::MAX, |bytes| bytes / 2);
    while !plan.sizes.is_empty() && plan.buffer_bytes().saturating_mul(2 * u64::from(ranks)) > half {
        plan.sizes.pop();
    }
    if plan.sizes.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let algorithms = algorithms(kind, ranks);
    let choices: Vec<[Option<Algorithm>; 2]> =
        plan.sizes.iter().map(|&bytes| choice(task, kind, ranks, bytes)).collect();
    // What the model chooses has its own number.
    let chosen = choices.iter().flatten().flatten().copied();
    let mut all = algorithms;
    for one in chosen {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    plan.contenders = all.iter().map(|one| Turns::Algorithm(one.to_string())).collect();
    let mut group = Ranks::start_without_settings(&plan)?;
    let mut cases = Vec::new();
    for (&bytes, choices) in plan.sizes.iter().zip(choices) {
        let Some(times) = case(&mut group, &all, bytes, plan.repetitions, is_over)? else { return Ok(None) };
        let is_there = |one: &Algorithm| times.iter().any(|(other, _)| other == one);
        // The second is for those who may not reach into others' memory.
        let default = choices.into_iter().flatten().find(is_there);
        cases.push(Case { bytes, default, times });
    }
    Ok(Some(cases))
}

fn plan(kind: Kind, ranks: u32, task: &Task<'_>) -> Plan {
    let is_wanted = |bytes: &u64| task.sizes.is_none_or(|sizes| sizes.contains(bytes));
    let cpu = |rank: u32| task.cpus.get(rank as usize % task.cpus.len().max(1)).copied();
    Plan {
        work: Work::Collective(kind),
        contenders: Vec::new(),
        sizes: SIZES.into_iter().filter(is_wanted).collect(),
        ranks,
        iterations: None,
        repetitions: task.effort.repetitions,
        in_use: false,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: false,
        cpus: (0..ranks).filter_map(cpu).collect(),
    }
}

/// Every algorithm, with the numbers that so many ranks allow.
fn algorithms(kind: Kind, ranks: u32) -> Vec<Algorithm> {
    let with_numbers = |one: Algorithm| match one {
        Algorithm::ThrottledRead(_) | Algorithm::ThrottledWrite(_) | Algorithm::Knomial(_) => NUMBERS
            .into_iter()
            .filter(|&number| number < ranks)
            .map(|number| one.with_number(number))
            .collect(),
        other => vec![other],
    };
    Algorithm::of(kind).flat_map(with_numbers).collect()
}

/// What the library chooses with these figures: where ranks may reach into each other's
/// memory, and where not.
fn choice(task: &Task<'_>, kind: Kind, ranks: u32, bytes: u64) -> [Option<Algorithm>; 2] {
    let configuration = Configuration { contention: task.figures.clone(), ..Configuration::default() };
    [true, false].map(|single_copy| {
        let explained = explain(&configuration, Question { kind, ranks, bytes, single_copy });
        explained.ok().map(|explanation| explanation.algorithm)
    })
}

/// Round by round each has one turn, and each round another one begins. Nothing if it
/// has to end before.
fn case(
    group: &mut Ranks,
    all: &[Algorithm],
    bytes: u64,
    rounds: u32,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Vec<Times>>, BenchError> {
    let mut contenders: Vec<(usize, u64)> = Vec::new();
    for index in 0..all.len() {
        if is_over() {
            return Ok(None);
        }
        if let Some(iterations) = iterations(group, index, bytes)? {
            contenders.push((index, iterations));
        }
    }
    let mut times: Vec<Times> = contenders.iter().map(|&(index, _)| (all[index], Vec::new())).collect();
    let number = contenders.len();
    for round in 0..rounds as usize {
        for step in 0..number {
            if is_over() {
                return Ok(None);
            }
            let at = (step + round) % number;
            let (index, iterations) = contenders[at];
            match group.turn(index, bytes, iterations, 1)? {
                Turned::Slowest(seconds) => times[at].1.push(seconds * 1e6 / iterations as f64),
                Turned::Unsuitable(reason) => return Err(BenchError::Failure(reason)),
            }
        }
    }
    Ok(Some(times))
}

/// How often a turn calls it; nothing if it cannot do this.
fn iterations(group: &mut Ranks, index: usize, bytes: u64) -> Result<Option<u64>, BenchError> {
    let (mut warm_up, mut iterations) = (WarmUp::default(), 1);
    loop {
        match group.turn(index, bytes, iterations, 0)? {
            Turned::Unsuitable(_) => return Ok(None),
            Turned::Slowest(seconds) => match warm_up.took(seconds) {
                Next::Try(number) => iterations = number,
                Next::Chosen(number) => return Ok(Some(number)),
            },
        }
    }
}

/// The algorithm that is clearly faster than the library's choice, if there is one.
fn winner(case: &Case) -> Option<Algorithm> {
    let default = case.default?;
    let (_, of_default) = case.times.iter().find(|(one, _)| *one == default)?;
    let ratio = |(one, times): &Times| Spread::of(&ratios(times, of_default)).map(|spread| (*one, spread));
    let others = case.times.iter().filter(|(one, _)| *one != default).filter_map(ratio);
    let clear = others.filter(|(_, spread)| spread.median * CLEARLY < 1.0 && spread.upper < 1.0);
    clear.min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median)).map(|(one, _)| one)
}

/// Lengths one after the other with the same winner have one rule. A rule ends with the
/// longest at which it was measured, and the last one does not; it begins behind the
/// length before, the first one behind a quarter of the shortest.
fn rules(kind: Kind, ranks: u32, winners: &[Winner]) -> Vec<CollectiveRule> {
    let first = winners.first().map_or(0, |(bytes, _)| bytes / 4);
    let mut rules: Vec<CollectiveRule> = Vec::new();
    let mut above = first;
    for &(bytes, winner) in winners {
        let before = std::mem::replace(&mut above, bytes);
        let Some(winner) = winner.map(|winner| winner.to_string()) else { continue };
        match rules.last_mut() {
            Some(rule) if rule.algorithm == winner && rule.up_to == Some(before) => rule.up_to = Some(bytes),
            _ => rules.push(CollectiveRule {
                above: Some(before),
                up_to: Some(bytes),
                min_ranks: Some(ranks),
                max_ranks: Some(ranks),
                ..CollectiveRule::new(kind.name(), &winner, Source::Default { line: None })
            }),
        }
    }
    if let (Some(rule), Some((last, _))) = (rules.last_mut(), winners.last())
        && rule.up_to == Some(*last)
        && *last == SIZES[SIZES.len() - 1]
    {
        rule.up_to = None;
    }
    rules
}

#[cfg(test)]
#[path = "collectives_tests.rs"]
mod tests;
