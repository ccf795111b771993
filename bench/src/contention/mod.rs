//! What single copy costs on this machine, and how much those who read one process
//! hold each other up: `lmt contention`, and a part of `lmt tune`.

pub mod figures;
pub mod fit;
pub mod measuring;
pub mod rank;
pub mod show;
mod sys;

use std::path::PathBuf;

use clap::Args;

use crate::cache;
use crate::console::print;
use crate::environment::{allowed_cpus, now_rfc3339};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::options::{Format, SizeList, parse_size_list};
use crate::sizes::parse_sizes;
use crate::stats::Summary;
use crate::whole_file::WholeFile;
use figures::{Figures, measure};
use lmt_selector::contention::Parameters;
use measuring::{Readers, Stop};
use rank::Work;
use show::{Findings, Throughput};

/// The lengths of the table, if nothing else is asked for.
const SIZES: &str = "4KiB..4MiB";
/// The most readers of one process.
const MAX_READERS: u32 = 1024;
/// How often throughput is measured; medians are shown.
const ROUNDS: usize = 5;

/// `lmt contention`.
#[derive(Debug, Args)]
pub struct ContentionArgs {
    /// How many read at once: 1,2,4; more than there are CPUs share them
    /// [default: 1, 2, 4, ... up to the CPUs that may be used].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_readers)]
    pub readers: Vec<u32>,
    /// Message lengths: 8,64KiB,1MiB or a range of powers of two [default: 4KiB..4MiB].
    #[arg(long, value_name = "LIST", value_parser = parse_size_list)]
    pub sizes: Option<SizeList>,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where a picture of throughput against message length goes, as SVG.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

fn parse_readers(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=MAX_READERS).contains(number));
    number.ok_or_else(|| {
        format!("'{text}' is no number of readers; write numbers from 1 to {MAX_READERS} with commas, such as 1,2,4")
    })
}

/// `lmt contention`.
///
/// # Errors
/// Single copy is not allowed, a reader fails, a signal comes, or a file cannot be
/// written.
pub fn run(args: &ContentionArgs) -> Result<(), BenchError> {
    let interrupt = Interrupt::watch()?;
    let cpus = allowed_cpus()?;
    let sizes = sizes(args)?;
    let counts = counts(args, cpus.len());
    let picture = args.picture.as_ref().map(|path| WholeFile::create(path, "--picture")).transpose()?;
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let (figures, throughput) =
        findings(&counts, &sizes, &cpus, largest, &interrupt).map_err(|stop| stopped(stop, &interrupt))?;
    let Figures { parameters, pinned } = figures;
    let found = Findings { cpus, date: now_rfc3339(), parameters, pinned, throughput };
    if let Some(picture) = picture {
        picture.write(&found.svg()?)?;
    }
    print(&match args.format {
        Format::Table => found.table(),
        Format::Csv => found.csv(),
        Format::Json => found.json()?,
    })
}

/// What single copy costs on these CPUs, without messages.
///
/// # Errors
/// Single copy is not allowed, a signal came, or a process failed.
pub fn parameters(cpus: &[usize], interrupt: &Interrupt) -> Result<Parameters, Stop> {
    // No more than the kernel has.
    let readers = cpus.len() as u32;
    let mut group = Readers::start(readers, cpus, measuring::memory_bytes(), interrupt)?;
    let figures = measure(&mut group, readers)?;
    group.end();
    Ok(figures.parameters)
}

fn sizes(args: &ContentionArgs) -> Result<Vec<u64>, BenchError> {
    let sizes = match &args.sizes {
        Some(sizes) => sizes.0.clone(),
        None => parse_sizes(SIZES).map_err(|error| BenchError::Usage(error.to_string()))?,
    };
    match sizes.contains(&0) {
        true => {
            Err(BenchError::Usage("a copy of 0 bytes has no throughput; take --sizes from 1 B up".into()))
        }
        false => Ok(sizes),
    }
}

/// Numbers of readers, ascending, one among them: with it the others are compared.
fn counts(args: &ContentionArgs, cpus: usize) -> Vec<u32> {
    // No more than the kernel has.
    let cpus = cpus as u32;
    let powers = (0..).map(|power| 1u32 << power).take_while(|readers| *readers < cpus);
    let mut counts: Vec<u32> = match &args.readers[..] {
        [] => powers.chain([cpus]).collect(),
        given => given.to_vec(),
    };
    counts.push(1);
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn findings(
    counts: &[u32],
    sizes: &[u64],
    cpus: &[usize],
    largest: u64,
    interrupt: &Interrupt,
) -> Result<(Figures, Vec<Throughput>), Stop> {
    let too_large = |_| BenchError::Usage("the buffers are larger than this machine's memory".into());
    let bytes = usize::try_from(largest).map_err(too_large)?.max(measuring::memory_bytes());
    // No more than the kernel has.
    let at_once = cpus.len() as u32;
    let most = counts.iter().copied().max().unwrap_or(1).max(at_once);
    let needed = (bytes as u64).saturating_mul(u64::from(most) + 1);
    cache::check_memory(
        "the readers and the process that they read need",
        needed,
        "take smaller --sizes or fewer --readers",
    )?;
    let mut group = Readers::start(most, cpus, bytes, interrupt)?;
    let figures = measure(&mut group, at_once)?;
    let mut throughput = Vec::new();
    for &bytes in sizes {
        let mut rounds = vec![Vec::new(); counts.len()];
        for _ in 0..ROUNDS {
            for (windows, readers) in rounds.iter_mut().zip(counts) {
                // It fits: it is no more than the largest.
                windows.push(group.window(*readers, Work::Copy, bytes as usize)?);
            }
        }
        let of = |windows: &[measuring::Window], value: fn(&measuring::Window) -> f64| {
            median(&windows.iter().map(value).collect::<Vec<f64>>())
        };
        let alone = rounds.first().map_or(0.0, |windows| of(windows, |window| window.per_s));
        throughput.extend(rounds.iter().zip(counts).map(|(windows, &readers)| {
            let per_s = of(windows, |window| window.per_s);
            let relative = if alone > 0.0 { per_s / alone } else { 0.0 };
            let mb_per_s = per_s * bytes as f64 / 1e6;
            Throughput { readers, bytes, us: of(windows, |window| window.us), mb_per_s, relative }
        }));
    }
    group.end();
    Ok((figures, throughput))
}

fn stopped(stop: Stop, interrupt: &Interrupt) -> BenchError {
    match (stop, interrupt.signal()) {
        (Stop::Error(error), _) => error,
        (Stop::Refused(sentence), _) => BenchError::Failure(sentence),
        (Stop::Interrupted, signal) => BenchError::Interrupted {
            signal: signal.map_or(0, |signal| signal as u8),
            sentence: "nothing was written".into(),
        },
    }
}

/// The median; of nothing, 0.
fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}

/// How steep the line is that comes nearest to points (least squares); 0 where there
/// is none.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let (up, along) = points.iter().fold((0.0, 0.0), |(up, along), (x, y)| {
        (up + (x - mean_x) * (y - mean_y), along + (x - mean_x).powi(2))
    });
    if along > 0.0 { up / along } else { 0.0 }
}
