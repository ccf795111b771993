//! `lmt bench` of collective operations, and of many accesses to one process's memory.
//!
//! All processes stay alive and sleep; round by round each algorithm, and each MPI, has
//! one short turn, so that whatever the machine does meanwhile meets all alike.

pub mod access;
pub mod args;
mod calls;
mod contention;
mod measure;
pub mod plan;
pub mod rank;
pub(crate) mod ranks;
pub mod result;
mod show;
mod words;
pub mod workload;

use crate::args::BenchArgs;
use crate::asked::place;
use crate::cache;
use crate::console::{json, print, written};
use crate::environment::{Environment, allowed_cpus, buffers};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::options::Format;
use crate::peers::show::PeerCard;
use crate::peers::{self, Shown};
use crate::progress::Progress;
use crate::sizes::{human, parse_sizes};
use args::{algorithms, name_of};
use measure::Measuring;
use plan::{ELEMENT_BYTES, Plan, Turns, is_reduction};
use show::Findings;
use workload::Work;

/// The sizes of operations and of accesses by default.
const DEFAULT_SIZES: [&str; 2] = ["8..1MiB", "4KiB..4MiB"];
/// MPI counts bytes in a C int.
const MAX_MPI_BYTES: u64 = (1 << 31) - 1;

/// Measures what was asked for and writes it.
///
/// # Errors
/// What was asked for makes no sense, or a rank failed.
pub fn bench(work: Work, args: &BenchArgs) -> Result<(), BenchError> {
    without_conflicts(work, args)?;
    let mut plan = plan(work, args)?;
    let interrupt = Interrupt::watch()?;
    let found = match args.collectives.peers {
        true => peers::peers(args.collectives.search(), &interrupt)?,
        false => Vec::new(),
    };
    fit(&mut plan, args, found.len() as u64)?;
    let cards: Vec<PeerCard> = found.iter().map(PeerCard::of).collect();
    let environment =
        Environment::of(&plan.cpus, buffers(plan.buffers, plan.in_use, plan.rotation_bytes, plan.ranks));
    let progress = Progress::new();
    let shown = Shown::new(&progress).with_table(
        args.format == Format::Table,
        |out| show::begin_table(out, &plan, &environment, &cards),
        |out, row| show::table_rows(out, &plan, row),
    );
    let cores = allowed_cpus()?.len();
    let measured = Measuring::start(&plan, &found, cores, &interrupt, &shown).and_then(Measuring::run);
    progress.end();
    let rows = measured?;
    shown.end(|out| show::end_table(out, &plan, &rows))?;
    drop(shown);
    tell(&Findings { environment, settings: plan, peers: cards, rows }, args.format)
}

/// What has not been written yet.
fn tell(findings: &Findings, format: Format) -> Result<(), BenchError> {
    match format {
        Format::Table => Ok(()),
        Format::Csv => print(&written(|out| show::csv(out, findings))?),
        Format::Json => print(&json(findings)?),
    }
}

fn without_conflicts(work: Work, args: &BenchArgs) -> Result<(), BenchError> {
    let refused = |sentence: String| Err(BenchError::Usage(sentence));
    let is_access = matches!(work, Work::Contention(_));
    let given = [
        ("--mechanism", args.mechanism.is_some()),
        ("--working-set", args.working_set.is_some()),
        ("--limits", args.measuring.limits),
        (
            args.measuring.mode_option().unwrap_or_default(),
            is_access && args.measuring.mode_option().is_some(),
        ),
        ("--off-cache", is_access && args.measuring.off_cache),
        ("--verify", is_access && args.verify),
        ("--buffers", is_access && args.measuring.buffers != crate::memory::Memory::Private),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return refused(format!("lmt bench {work} has no {option}; leave it out"));
    }
    if is_access && let Some(option) = args.collectives.stray() {
        return refused(format!("{option} is for collective operations; leave it out with {work}"));
    }
    Ok(())
}

/// What the ranks are to do, as far as it does not depend on the peers.
fn plan(work: Work, args: &BenchArgs) -> Result<Plan, BenchError> {
    let measuring = &args.measuring;
    let (contenders, ranks) = match work {
        Work::Collective(kind) => {
            let algorithms = algorithms(kind, args.collectives.algorithm.as_deref())?;
            let name = |algorithm| Turns::Algorithm(name_of(algorithm));
            (algorithms.into_iter().map(name).collect(), args.ranks)
        }
        // One more, whose memory it is.
        Work::Contention(access) => {
            (access.cases(args.ranks).into_iter().map(Turns::Reach).collect(), args.ranks + 1)
        }
    };
    let mut cpus = match work {
        Work::Collective(_) => place(measuring.pin.as_ref(), ranks)?,
        Work::Contention(_) => place(measuring.pin.as_ref(), ranks - 1)?,
    };
    if matches!(work, Work::Contention(_)) && !cpus.is_empty() {
        // It sleeps.
        cpus.insert(0, cpus[cpus.len() - 1]);
    }
    Ok(Plan {
        work,
        contenders,
        sizes: sizes(work, args)?,
        ranks,
        iterations: measuring.iterations,
        repetitions: measuring.repetitions(),
        in_use: matches!(work, Work::Collective(_)) && measuring.is_in_use(),
        buffers: measuring.buffers,
        rotation_bytes: None,
        verify: args.verify,
        cpus,
    })
}

fn sizes(work: Work, args: &BenchArgs) -> Result<Vec<u64>, BenchError> {
    let refused = |sentence: String| Err(BenchError::Usage(sentence));
    let Some(sizes) = args.measuring.sizes.as_ref().map(|sizes| sizes.0.clone()) else {
        let by_default = match work {
            Work::Collective(lmt_collectives::Kind::Barrier) => return Ok(vec![0]),
            Work::Collective(_) => DEFAULT_SIZES[0],
            Work::Contention(_) => DEFAULT_SIZES[1],
        };
        return parse_sizes(by_default).map_err(|error| BenchError::Failure(error.to_string()));
    };
    match work {
        Work::Collective(lmt_collectives::Kind::Barrier) => {
            refused("a barrier has no bytes; leave --sizes out".into())
        }
        Work::Collective(kind) if is_reduction(kind) => {
            match sizes.iter().find(|bytes| !bytes.is_multiple_of(ELEMENT_BYTES)) {
                Some(bytes) => refused(format!(
                    "{kind} is of floats, of which {} are no whole number; take multiples of {ELEMENT_BYTES}",
                    human(*bytes)
                )),
                None => Ok(sizes),
            }
        }
        Work::Contention(_) if sizes.contains(&0) => {
            refused(format!("lmt bench {work} takes sizes from 1 byte up"))
        }
        _ => Ok(sizes),
    }
}

/// How much the buffers rotate through, and whether they fit into memory beside those
/// of so many peers.
fn fit(plan: &mut Plan, args: &BenchArgs, peers: u64) -> Result<(), BenchError> {
    if let Some(bytes) = plan.sizes.iter().find(|&&bytes| peers > 0 && bytes > MAX_MPI_BYTES) {
        return Err(BenchError::Usage(format!(
            "{} is more than MPI takes at once; stay below 2GiB",
            human(*bytes)
        )));
    }
    let available = cache::available_memory_bytes();
    if args.measuring.off_cache {
        let share = available.map(|bytes| bytes / (peers + 1));
        plan.rotation_bytes = Some(cache::rotation_bytes(plan.ranks, cache::last_level_bytes(), share));
    }
    let sets = peers + 1 + u64::from(plan.verify);
    let needed = plan.buffer_bytes().saturating_mul(2 * u64::from(plan.ranks)).saturating_mul(sets);
    cache::check_memory("the buffers need", needed, "take smaller --sizes or fewer ranks")
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
