//! The options of `lmt model`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use lmt_collectives::model::Counting;
use lmt_collectives::{Algorithm, Kind};
use lmt_selector::contention::{Gamma, MAX_FACTOR, MAX_TIME, Parameters, Quadratic};

use crate::options::{Format, SizeList, parse_size_list};

/// The most ranks of a prediction.
const MAX_RANKS: u32 = 1024;
/// The fastest copies, and one by the slowest, in 10^9 bytes a second.
const MAX_GBPS: f64 = 1e6;

/// `lmt model`.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// bcast, scatter, gather, allgather, alltoall, reduce, allreduce, reduce_scatter, scan, exscan
    /// or barrier.
    #[arg(default_value = "bcast", value_parser = parse_kind)]
    pub kind: Kind,
    /// Whose figures: those of a machine of the paper, or of this one's calibration.
    #[arg(long, value_enum, default_value_t = MachineName::This)]
    pub machine: MachineName,
    /// Ranks, up to 1024 [default: those of the paper's runs, or the CPUs of the calibration].
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RANKS)))]
    pub ranks: Option<u32>,
    /// Lengths of the message, one rank's block or the vector: 8,64KiB,1MiB or a range of powers of
    /// two [default: 1KiB..16MiB].
    #[arg(long, value_name = "LIST", value_parser = parse_size_list)]
    pub sizes: Option<SizeList>,
    /// Only these algorithms, a column each; with a number only that, such as throttled-read:10
    /// [default: all that reach into other processes, and messages where those were measured].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_shown)]
    pub algorithms: Vec<Shown>,
    /// Who is counted where there is a root.
    #[arg(long, value_enum, default_value_t = CountingName::Ranks)]
    pub counting: CountingName,
    /// In place of the machine's: the start of a copy, in microseconds.
    #[arg(long, value_name = "US", value_parser = parse_time)]
    pub alpha_us: Option<f64>,
    /// In place of the machine's: bytes of a copy, in 10^9 bytes a second.
    #[arg(long, value_name = "GBPS", value_parser = parse_speed)]
    pub beta_gbps: Option<f64>,
    /// In place of the machine's: locking and pinning a page, in microseconds.
    #[arg(long, value_name = "US", value_parser = parse_time)]
    pub lock_us: Option<f64>,
    /// In place of the machine's: the length of a page.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub page_bytes: Option<u64>,
    /// In place of the machine's: the curve a2 c^2 + a1 c.
    #[arg(long, value_name = "A2,A1", value_parser = parse_gamma)]
    pub gamma: Option<Quadratic>,
    /// In place of the machine's: a cache line from one core to another, in microseconds.
    #[arg(long, value_name = "US", value_parser = parse_time)]
    pub line_us: Option<f64>,
    /// In place of the machine's: how many processes run at a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: Option<u32>,
    /// A file of configuration, in place of those that LMT_CONFIG names, for --machine this.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How the predictions are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where the curves go too, as SVG.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

/// Whose figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MachineName {
    /// Xeon Phi 7250, 64 ranks.
    Knl,
    /// Two Xeon E5-2680 v4, 28 ranks.
    Broadwell,
    /// Two POWER8, 160 ranks.
    Power8,
    /// As `lmt tune` has measured.
    This,
}

/// Who is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountingName {
    /// All ranks, as the paper writes it.
    Ranks,
    /// Those that copy, one less, and what it takes to hand a turn on: as groups choose.
    Readers,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// With the number that is best.
    Best(Algorithm),
    /// As it is.
    Exactly(Algorithm),
}

impl CountingName {
    /// As the model has it.
    pub fn counting(self) -> Counting {
        match self {
            Self::Ranks => Counting::Ranks,
            Self::Readers => Counting::Readers,
        }
    }
}

impl ModelArgs {
    /// A machine's figures with what is given in their place.
    pub fn over(&self, parameters: Parameters) -> Parameters {
        let gamma = self.gamma.map(|fit| Gamma::curve(fit.squared, fit.linear));
        let byte_ns = self.beta_gbps.map(|gbps| 1.0 / gbps);
        Parameters {
            alpha_us: self.alpha_us.unwrap_or(parameters.alpha_us),
            byte_ns: byte_ns.unwrap_or(parameters.byte_ns),
            lock_us: self.lock_us.unwrap_or(parameters.lock_us),
            page_bytes: self.page_bytes.unwrap_or(parameters.page_bytes),
            gamma: gamma.unwrap_or(parameters.gamma),
            line_us: self.line_us.unwrap_or(parameters.line_us),
            cpus: self.cpus.or(parameters.cpus),
            copy_ns: byte_ns.unwrap_or(parameters.copy_ns),
            combine_ns: byte_ns.unwrap_or(parameters.combine_ns),
            message: parameters.message,
        }
    }

    /// The machine that is wholly described by the options, if it is: nothing has to
    /// be known of this one then.
    pub fn described(&self) -> Option<Parameters> {
        let Self {
            alpha_us: Some(_),
            beta_gbps: Some(_),
            lock_us: Some(_),
            page_bytes: Some(_),
            gamma: Some(_),
            ..
        } = self
        else {
            return None;
        };
        let blank = &lmt_selector::contention::KNL.parameters;
        Some(self.over(Parameters { cpus: self.cpus, ..blank.clone() }))
    }
}

pub(crate) fn parse_kind(text: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("'{text}' is no collective operation; there are {}", names()))
}

fn parse_shown(text: &str) -> Result<Shown, String> {
    let algorithm = Algorithm::from_str(text).map_err(|error| error.to_string())?;
    Ok(if text.contains(':') { Shown::Exactly(algorithm) } else { Shown::Best(algorithm) })
}

fn parse_number(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    text.trim().parse().ok().filter(|number| range.contains(number))
}

fn parse_time(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0..=MAX_TIME)
        .ok_or_else(|| format!("'{text}' is no time; write microseconds from 0 to {MAX_TIME}, such as 0.25"))
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let least = MAX_GBPS.recip();
    parse_number(text, least..=MAX_GBPS).ok_or_else(|| {
        format!("'{text}' is no speed; write 10^9 bytes a second from {least} to {MAX_GBPS}, such as 3.29")
    })
}

fn parse_gamma(text: &str) -> Result<Quadratic, String> {
    let numbers = text.split_once(',').and_then(|(squared, linear)| {
        let number = |text| parse_number(text, 0.0..=MAX_FACTOR);
        Some(Quadratic { squared: number(squared)?, linear: number(linear)? })
    });
    numbers.ok_or_else(|| {
        format!(
            "'{text}' is no curve; write a2,a1 of a2 c^2 + a1 c, from 0 to {MAX_FACTOR} each, such as 0.11,1.6"
        )
    })
}
