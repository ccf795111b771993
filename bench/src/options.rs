//! Options that several commands have, and how their values are read.

use clap::{Args, ValueEnum};

use crate::memory::Memory;
use crate::sizes::parse_sizes;

/// The most ranks of a group.
pub(crate) const MAX_RANKS: u32 = 1024;

/// The most repetitions.
const MAX_REPETITIONS: u32 = 10_000;

/// What both have.
#[derive(Clone, Debug, Args)]
pub struct MeasuringArgs {
    /// Message sizes: 8,64KiB,1MiB or a range of powers of two, 1..16MiB.
    /// KiB, MiB, GiB and k, K, M, G are powers of 1024 [default: by pattern].
    #[arg(long, value_name = "LIST", value_parser = parse_size_list)]
    pub sizes: Option<SizeList>,
    /// Iterations of each repetition [default: as many as take about 4 ms].
    #[arg(long, value_name = "N", value_parser = parse_iterations)]
    pub iterations: Option<u64>,
    /// Measurements of each size, of which the median, least and most are shown [default: 15; lmt compare by
    /// itself 9, with --thorough 15].
    #[arg(long, value_name = "N", value_parser = parse_repetitions)]
    pub repetitions: Option<u32>,
    /// Rotate through buffers larger than the last-level cache.
    #[arg(long)]
    pub off_cache: bool,
    /// What messages lie in: memory from malloc, or lmt's shared buffers.
    #[arg(long, value_enum, default_value_t = Memory::Private, value_name = "MEMORY")]
    pub buffers: Memory,
    /// Write each message as a whole before it is sent, each unlike the one before, and read it as a whole
    /// after it was received, inside the timed part, as applications do. The default of lmt bench; with lmt
    /// compare this mode alone.
    #[arg(long, alias = "touch", conflicts_with = "unmodified")]
    pub in_use: bool,
    /// Send the same bytes again and again, as IMB and OSU do; with lmt compare this mode alone.
    #[arg(long)]
    pub unmodified: bool,
    /// CPUs of ranks 0, 1, ... as 0,2 or 0-3, or none [default: rank i on the i-th allowed CPU].
    #[arg(long, value_name = "LIST", value_parser = parse_pin)]
    pub pin: Option<Pin>,
    /// Measure in between what the machine allows, and show it beside the results.
    #[arg(long)]
    pub limits: bool,
}

/// Measurements of each size, where none are asked for.
pub(crate) const REPETITIONS: u32 = 15;

impl MeasuringArgs {
    /// Whether messages are in use where they are so in one way only.
    pub fn is_in_use(&self) -> bool {
        !self.unmodified
    }

    /// The modes of a comparison, as whether messages are in use: both, in use first, or the
    /// one that was asked for.
    pub fn modes(&self) -> Vec<bool> {
        [true, false]
            .into_iter()
            .filter(|&in_use| if in_use { !self.unmodified } else { !self.in_use })
            .collect()
    }

    /// Measurements of each size.
    pub fn repetitions(&self) -> u32 {
        self.repetitions.unwrap_or(REPETITIONS)
    }

    /// The mode's option, if one was given.
    pub fn mode_option(&self) -> Option<&'static str> {
        let given = [("--in-use", self.in_use), ("--unmodified", self.unmodified)];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Sizes in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeList(pub Vec<u64>);

/// Where ranks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Where the scheduler likes.
    None,
    /// Rank i on the i-th of these.
    Cpus(Vec<usize>),
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values.
    Csv,
    /// One JSON object.
    Json,
}

pub(crate) fn parse_size_list(text: &str) -> Result<SizeList, String> {
    parse_sizes(text).map(SizeList).map_err(|error| error.to_string())
}

pub(crate) fn parse_count(text: &str, what: &str, least: u64, most: u64) -> Result<u64, String> {
    let rule = || format!("{what} must be a whole number from {least} to {most}");
    let number = text.parse().map_err(|_| rule())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(rule()) }
}

pub(crate) fn parse_ranks(text: &str) -> Result<u32, String> {
    let ranks = parse_count(text, "a benchmark's ranks", 2, MAX_RANKS.into())?;
    u32::try_from(ranks).map_err(|error| error.to_string())
}

pub(crate) fn parse_group(text: &str) -> Result<u32, String> {
    let most = lmt::launch::Group::MAX_SIZE;
    let ranks = parse_count(text, "a group's ranks", 1, most.into())?;
    u32::try_from(ranks).map_err(|error| error.to_string())
}

pub(crate) fn parse_repetitions(text: &str) -> Result<u32, String> {
    let repetitions = parse_count(text, "repetitions", 1, MAX_REPETITIONS.into())?;
    u32::try_from(repetitions).map_err(|error| error.to_string())
}

fn parse_iterations(text: &str) -> Result<u64, String> {
    parse_count(text, "iterations", 1, 1_000_000_000)
}

pub(crate) fn parse_pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::None);
    }
    let cpus = parse_cpus(text);
    cpus.map(Pin::Cpus)
        .ok_or_else(|| format!("'{text}' is neither none nor a list of CPUs such as 0,2 or 0-3"))
}

/// CPUs as `0,2` or `0-3`.
pub(crate) fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u16 = first.trim().parse().ok()?;
        let last: u16 = last.trim().parse().ok()?;
        if last < first {
            return None;
        }
        cpus.extend(usize::from(first)..=usize::from(last));
    }
    Some(cpus)
}
