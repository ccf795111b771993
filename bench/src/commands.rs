//! The subcommands.

use std::process::ExitCode;

use lmt::launch::{RunOptions, run_command};
use lmt_collectives::Kind;

use crate::args::{BenchArgs, RunArgs};
use crate::asked::job;
use crate::cache;
use crate::choice::{ANNOUNCED, AUTO, choose, path_of};
use crate::collectives;
use crate::collectives::workload::{Work, Workload};
use crate::compare::ANNOUNCED_MIN_BYTES;
use crate::console::complain;

use crate::error::BenchError;
use crate::job::Job;
use crate::memory::Memory;
use crate::options::{Format, Pin};
use crate::output::{Csv, FiguresTable, Json, LimitsTable, Results, Table};
use crate::patterns::Pattern;
use crate::progress::Progress;
use crate::showing::run;
use crate::sizes::human;

/// `lmt bench`.
///
/// # Errors
/// What was asked for does not exist, or a rank failed.
pub fn bench(args: &BenchArgs) -> Result<(), BenchError> {
    let pattern = match args.pattern {
        Workload::Pattern(pattern) => pattern,
        // By messages, where it is said how these go.
        Workload::Collective(Kind::Alltoall) if args.mechanism.is_some() => Pattern::Alltoall,
        Workload::Collective(kind) => return collectives::bench(Work::Collective(kind), args),
        Workload::Contention(access) => return collectives::bench(Work::Contention(access), args),
    };
    if let Some(option) = args.collectives.stray() {
        let name = pattern.name();
        return Err(BenchError::Usage(format!(
            "{option} is for collective operations such as lmt bench bcast; leave it out with {name}"
        )));
    }
    bench_pattern(pattern, args)
}

fn bench_pattern(pattern: Pattern, args: &BenchArgs) -> Result<(), BenchError> {
    let mechanisms = if pattern == Pattern::Limits {
        without_limits_conflicts(args)?;
        Vec::new()
    } else {
        choose(args.mechanism.as_deref(), args.measuring.buffers)?.mechanisms
    };
    without_figures_conflicts(pattern, args)?;
    let mut job = job(pattern, mechanisms, args.ranks, &args.measuring, args.verify)?;
    if let Some(sentence) = note_on_short(&job) {
        complain(&sentence);
    }
    if pattern == Pattern::Pollution {
        job.working_set_bytes = Some(working_set_bytes(args.working_set, &job)?);
    }
    let mut results: Box<dyn Results> = match (args.format, pattern) {
        (Format::Table, Pattern::Limits) => Box::new(LimitsTable),
        (Format::Table, pattern) if !pattern.figures().is_empty() => Box::new(FiguresTable::default()),
        (Format::Table, _) => Box::new(Table::default()),
        (Format::Csv, _) => Box::new(Csv::default()),
        (Format::Json, _) => Box::new(Json::default()),
    };
    let progress = Progress::new();
    let measured = run(&job, results.as_mut(), None, &progress);
    progress.end();
    measured.map(|_| ())
}

/// `lmt run`.
pub fn start(args: &RunArgs) -> ExitCode {
    let cpus = match &args.pin {
        Some(Pin::Cpus(cpus)) => cpus.clone(),
        Some(Pin::None) | None => Vec::new(),
    };
    // The parser wants a program.
    let Some((program, arguments)) = args.program.split_first() else { return ExitCode::from(2) };
    let options = RunOptions { prefix: args.prefix, cpus };
    let status = run_command(args.ranks, program, arguments, &options);
    // 0, 1, 2, or 128 and a signal's number.
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// Says that short messages take no mechanism, where sizes and mechanisms were asked for that make
/// it look as if they did.
fn note_on_short(job: &Job) -> Option<String> {
    let bytes = job.sizes.iter().find(|&&bytes| (1..ANNOUNCED_MIN_BYTES).contains(&bytes))?;
    let name = job.mechanisms.iter().find(|name| *name != AUTO && path_of(name).is_none())?;
    Some(format!(
        "messages below {}, such as {}, go in cells whatever mechanism is named; {ANNOUNCED}:{name} instead of {name} announces them all the same",
        human(ANNOUNCED_MIN_BYTES),
        human(*bytes)
    ))
}

fn without_limits_conflicts(args: &BenchArgs) -> Result<(), BenchError> {
    if let Some(name) = &args.mechanism {
        return Err(BenchError::Usage(format!(
            "lmt bench limits measures the machine and takes no --mechanism {name}; leave it out"
        )));
    }
    if args.ranks != 2 {
        return Err(BenchError::Usage(format!("lmt bench limits takes 2 ranks, not {}", args.ranks)));
    }
    if args.verify {
        return Err(BenchError::Usage(
            "lmt bench limits has nothing to verify; use --verify with another pattern".into(),
        ));
    }
    Ok(())
}

/// What the patterns with figures of their own cannot be combined with.
fn without_figures_conflicts(pattern: Pattern, args: &BenchArgs) -> Result<(), BenchError> {
    let name = pattern.name();
    let refused = |sentence: String| Err(BenchError::Usage(sentence));
    if args.working_set.is_some() && pattern != Pattern::Pollution {
        return refused(format!("--working-set is for pollution; leave it out with {name}"));
    }
    if pattern.figures().is_empty() {
        return Ok(());
    }
    if args.ranks != 2 {
        return refused(format!("lmt bench {name} takes 2 ranks, not {}", args.ranks));
    }
    let measuring = &args.measuring;
    for (option, given) in [("--limits", measuring.limits), ("--off-cache", measuring.off_cache)] {
        if given {
            return refused(format!("lmt bench {name} has no {option}; leave it out"));
        }
    }
    if let Some(option) = measuring.mode_option() {
        return refused(format!("lmt bench {name} has no {option}; leave it out"));
    }
    if measuring.buffers != Memory::Private {
        return refused(format!("lmt bench {name} has buffers of its own; leave --buffers out"));
    }
    match &measuring.sizes {
        Some(sizes) if sizes.0.contains(&0) => {
            refused(format!("lmt bench {name} takes sizes from 1 byte up"))
        }
        _ => Ok(()),
    }
}

/// What is read again: half the last-level cache, as long as that is at most a
/// quarter of the memory available, or as asked for.
fn working_set_bytes(asked: Option<u64>, job: &Job) -> Result<u64, BenchError> {
    let available = cache::available_memory_bytes().unwrap_or(u64::MAX);
    match asked {
        Some(bytes) if bytes > available.saturating_sub(2 * job.buffer_bytes()) => {
            Err(BenchError::Failure(format!(
                "a working set of {} and the messages' buffers need more than the {} that are available; take a smaller --working-set",
                human(bytes),
                human(available >> 20 << 20)
            )))
        }
        Some(bytes) => Ok(bytes),
        None => Ok(cache::working_set_bytes(cache::last_level_bytes(), available)),
    }
}
