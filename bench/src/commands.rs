//! The subcommands.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use lmt::launch::{RunOptions, run_command};
use lmt_collectives::Kind;

use crate::cache;
use crate::choice::{ANNOUNCED, AUTO, choose, way_of};
use crate::cli::{BenchArgs, Format, MeasuringArgs, Pin, RunArgs};
use crate::collectives;
use crate::collectives::workload::{Work, Workload};
use crate::compare::ANNOUNCED_LEAST_BYTES;
use crate::engine::{Engine, LeftOut};
use crate::environment::{Environment, allowed_cpus};
use crate::error::BenchError;
use crate::group;
use crate::interrupt::Interrupt;
use crate::job::{Event, Job, Row};
use crate::memory::Memory;
use crate::output::{Csv, FiguresTable, Json, LimitsTable, Results, Table};
use crate::patterns::Pattern;
use crate::progress::Progress;
use crate::sizes::{human, parse_sizes};

/// `lmt bench`.
///
/// # Errors
/// What was asked for does not exist, or a rank failed.
pub fn bench<E: Engine>(engine: &E, args: &BenchArgs) -> Result<(), BenchError> {
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
    bench_pattern(engine, pattern, args)
}

fn bench_pattern<E: Engine>(engine: &E, pattern: Pattern, args: &BenchArgs) -> Result<(), BenchError> {
    let mechanisms = if pattern == Pattern::Limits {
        without_limits_conflicts(args)?;
        Vec::new()
    } else {
        choose(engine, args.mechanism.as_deref(), args.measuring.buffers)?.mechanisms
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

/// Says where the report is.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn say_report(path: &Path) -> Result<(), BenchError> {
    print(&format!("report: {}\n", path.display()))
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

/// Writes to standard output.
///
/// # Errors
/// It is closed or full.
pub fn print(text: &str) -> Result<(), BenchError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| BenchError::from_output(&error))
}

/// What a run has found.
pub(crate) struct Measured {
    /// Where and how.
    pub environment: Environment,
    /// All rows.
    pub rows: Vec<Row>,
    /// Mechanisms that failed on the way.
    pub left_out: Vec<LeftOut>,
}

/// Measures and shows. A mechanism that fails is left out, and the sizes that are
/// not shown yet are measured with the others. Where signals are requests,
/// `interrupt` has them.
///
/// # Errors
/// A rank failed, or the output cannot be written.
pub(crate) fn run(
    job: &Job,
    results: &mut dyn Results,
    interrupt: Option<&Interrupt>,
    progress: &Progress,
) -> Result<Measured, BenchError> {
    let environment = Environment::record(job);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    let mut shown = Shown { results, environment: &environment, job, has_begun: false, progress };
    let mut job = job.clone();
    let measured = loop {
        match run_once(&job, &mut shown, interrupt, &mut rows) {
            Err(BenchError::Mechanism { name, sentence }) if can_do_without(&job, &name) => {
                progress.suspend(|| complain(&format!("{name} is left out: {sentence}")));
                job.mechanisms.retain(|other| *other != name);
                job.sizes.retain(|bytes| !rows.iter().any(|row: &Row| row.bytes == *bytes));
                left_out.push(LeftOut { name, reason: sentence });
            }
            other => break other,
        }
    };
    measured?;
    shown.begin()?;
    shown.write(|results, out| results.end(out))?;
    Ok(Measured { environment, rows, left_out })
}

/// Whether others are left without this mechanism, and a size's rows come together.
fn can_do_without(job: &Job, name: &str) -> bool {
    job.pattern.figures().is_empty() && job.mechanisms.iter().any(|other| other != name)
}

/// Results as they are shown. Nothing is before something is measured: what
/// cannot be measured is told in a sentence alone.
struct Shown<'a> {
    results: &'a mut dyn Results,
    environment: &'a Environment,
    job: &'a Job,
    has_begun: bool,
    progress: &'a Progress,
}

impl Shown<'_> {
    /// Shows what stands above the rows, once.
    fn begin(&mut self) -> Result<(), BenchError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let (environment, job) = (self.environment, self.job);
        self.write(|results, out| results.begin(out, environment, job))
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Results, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), BenchError> {
        let results = &mut *self.results;
        self.progress.suspend(|| {
            let mut out = io::stdout().lock();
            write(results, &mut out)
                .and_then(|()| out.flush())
                .map_err(|error| BenchError::from_output(&error))
        })
    }
}

fn run_once(
    job: &Job,
    shown: &mut Shown<'_>,
    interrupt: Option<&Interrupt>,
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    group::run(job, &mut |event| {
        if let Some(signal) = interrupt.and_then(Interrupt::signal) {
            let sentence = "it was interrupted; nothing was written".to_owned();
            return Err(BenchError::Interrupted { signal: signal as u8, sentence });
        }
        match event {
            Event::Progress { done, total } => {
                shown.begin()?;
                shown.progress.show(done, total);
            }
            Event::Note(note) => shown.progress.suspend(|| complain(&note)),
            Event::Rows(new) => {
                shown.begin()?;
                shown.write(|results, out| results.rows(out, &new))?;
                rows.extend(new);
            }
            // Of use to other commands, or dealt with before.
            _ => {}
        }
        Ok(())
    })
}

/// One line on standard error; if nobody reads that, nobody wants to know.
pub fn complain(sentence: &str) {
    let _ = writeln!(io::stderr().lock(), "lmt: {sentence}");
}

/// Says that short messages take no mechanism, where sizes and mechanisms were asked for that make
/// it look as if they did.
fn note_on_short(job: &Job) -> Option<String> {
    let bytes = job.sizes.iter().find(|&&bytes| (1..ANNOUNCED_LEAST_BYTES).contains(&bytes))?;
    let name = job.mechanisms.iter().find(|name| *name != AUTO && way_of(name).is_none())?;
    Some(format!(
        "messages below {}, such as {}, go in cells whatever mechanism is named; {ANNOUNCED}:{name} instead of {name} announces them all the same",
        human(ANNOUNCED_LEAST_BYTES),
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

/// What is read again: half the last cache, as long as that is at most a
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

pub(crate) fn job(
    pattern: Pattern,
    mechanisms: Vec<String>,
    ranks: u32,
    args: &MeasuringArgs,
    verify: bool,
) -> Result<Job, BenchError> {
    let sizes = match &args.sizes {
        Some(sizes) => sizes.0.clone(),
        None => parse_sizes(pattern.definition().default_sizes)
            .map_err(|error| BenchError::Failure(error.to_string()))?,
    };
    let available = cache::available_memory_bytes();
    let job = Job {
        pattern,
        mechanisms,
        sizes,
        ranks,
        iterations: args.iterations,
        repetitions: args.repetitions(),
        in_use: args.is_in_use() && pattern.figures().is_empty(),
        buffers: args.buffers,
        rotation_bytes: args
            .off_cache
            .then(|| cache::rotation_bytes(ranks, cache::last_level_bytes(), available)),
        verify,
        cpus: place(args.pin.as_ref(), ranks)?,
        limits: args.limits || pattern == Pattern::Limits,
        working_set_bytes: None,
        particulars: Vec::new(),
    };
    check_memory(&job)?;
    Ok(job)
}

/// Whether there is memory for a job's buffers: a verifying pass has a second set.
///
/// # Errors
/// There is not.
pub(crate) fn check_memory(job: &Job) -> Result<(), BenchError> {
    let sets = job.kinds_of_memory().len() as u64 + u64::from(job.verify);
    let needed = job.buffer_bytes().saturating_mul(u64::from(job.ranks)).saturating_mul(sets);
    cache::check_memory("the buffers need", needed, "take smaller --sizes or fewer ranks")
}

/// The CPU of each rank; none at all when they are not pinned.
pub(crate) fn place(pin: Option<&Pin>, ranks: u32) -> Result<Vec<usize>, BenchError> {
    let ranks = ranks as usize;
    if pin == Some(&Pin::None) {
        return Ok(Vec::new());
    }
    let allowed = allowed_cpus()?;
    let Some(Pin::Cpus(cpus)) = pin else {
        return Ok(allowed.iter().copied().cycle().take(ranks).collect());
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return Err(BenchError::Usage(format!(
            "--pin names CPU {cpu}, which this process may not use; it may use {}",
            allowed.join(",")
        )));
    }
    if cpus.len() < ranks {
        return Err(BenchError::Usage(format!(
            "--pin names {} CPUs for {ranks} ranks; name one for each",
            cpus.len()
        )));
    }
    Ok(cpus[..ranks].to_vec())
}
