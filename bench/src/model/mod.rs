//! `lmt model`: what collective operations are predicted to take, on this machine
//! or on one that is not there.

mod args;
mod show;

use lmt_collectives::model::{Choice, Model};
use lmt_collectives::{Algorithm, Kind};
use lmt_selector::contention::{BROADWELL, KNL, POWER8, Parameters};

pub use args::ModelArgs;
pub(crate) use args::parse_kind;
use args::{MachineName, Shown};
use show::Predictions;

use crate::console::print;
use crate::error::BenchError;
use crate::explain;
use crate::options::Format;
use crate::sizes::parse_sizes;
use crate::whole_file::WholeFile;

/// The lengths, if nothing else is asked for.
const SIZES: &str = "1KiB..16MiB";

/// A machine with its figures.
struct Machine {
    name: String,
    ranks: u32,
    parameters: Parameters,
}

/// What is predicted of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The message, block or vector.
    pub bytes: u64,
    /// For each column the algorithm, with its number, and its microseconds.
    pub times: Vec<Option<(Algorithm, f64)>>,
    /// The fastest of the columns.
    pub choice: Option<Choice>,
}

/// `lmt model`.
///
/// # Errors
/// There is no calibration with such figures, or the picture cannot be written.
pub fn run(args: &ModelArgs) -> Result<(), BenchError> {
    without_stray_file(args)?;
    let machine = machine(args)?;
    machine.parameters.check().map_err(|wrong| BenchError::Usage(wrong.to_string()))?;
    let ranks = args.ranks.unwrap_or(machine.ranks);
    let sizes = match (&args.sizes, args.kind) {
        (Some(sizes), _) => sizes.0.clone(),
        (None, Kind::Barrier) => vec![0],
        (None, _) => parse_sizes(SIZES).map_err(|error| BenchError::Usage(error.to_string()))?,
    };
    let columns = columns(args, &machine.parameters)?;
    let picture = args.picture.as_ref().map(|path| WholeFile::create(path, "--picture")).transpose()?;
    let model = Model::new(&machine.parameters, args.counting.counting());
    let rows = sizes.iter().map(|&bytes| row(&model, args.kind, ranks, bytes, &columns)).collect();
    let Machine { name, parameters, .. } = machine;
    let counting = args.counting.counting();
    let shown = Predictions { kind: args.kind, machine: name, parameters, ranks, counting, columns, rows };
    if let Some(picture) = picture {
        picture.write(&shown.svg()?)?;
    }
    print(&match args.format {
        Format::Table => shown.table(),
        Format::Csv => shown.csv(),
        Format::Json => shown.json()?,
    })
}

/// Refuses a file that would not be read.
fn without_stray_file(args: &ModelArgs) -> Result<(), BenchError> {
    let why = match args.machine {
        _ if args.config.is_none() => return Ok(()),
        MachineName::This if args.described().is_none() => return Ok(()),
        MachineName::This => "the other options describe the machine wholly",
        _ => "--machine names a machine of the paper",
    };
    Err(BenchError::Usage(format!("--config would not be read, since {why}; leave one of the two out")))
}

fn machine(args: &ModelArgs) -> Result<Machine, BenchError> {
    let published = match args.machine {
        MachineName::Knl => &KNL,
        MachineName::Broadwell => &BROADWELL,
        MachineName::Power8 => &POWER8,
        MachineName::This => return this(args),
    };
    let parameters = args.over(published.parameters.clone());
    Ok(Machine { name: published.text.to_owned(), ranks: published.ranks, parameters })
}

/// What the options describe, or this machine.
fn this(args: &ModelArgs) -> Result<Machine, BenchError> {
    if let Some(parameters) = args.described() {
        return Ok(Machine {
            name: "the machine that the options describe".to_owned(),
            ranks: 64,
            parameters,
        });
    }
    let configuration = explain::configuration(args.config.as_deref())?;
    let source = configuration.sources.get("contention").map(ToString::to_string).unwrap_or_default();
    let Some(parameters) = configuration.contention else {
        return Err(BenchError::Usage(
            "no file says what single copy costs on this machine; run lmt tune, or take --machine knl, broadwell or \
             power8, or describe one by --alpha-us, --beta-gbps, --lock-us, --page-bytes and --gamma"
                .into(),
        ));
    };
    let parameters = args.over(parameters);
    Ok(Machine {
        name: format!("this one, {source}"),
        ranks: parameters.cpus.unwrap_or(2).max(2),
        parameters,
    })
}

/// What is shown: what is asked for, or what reaches into other processes; the three
/// of the paper's figure 12 come first.
fn columns(args: &ModelArgs, parameters: &Parameters) -> Result<Vec<Shown>, BenchError> {
    let algorithm = |shown: &Shown| match *shown {
        Shown::Best(algorithm) | Shown::Exactly(algorithm) => algorithm,
    };
    if let Some(stray) = args.algorithms.iter().map(algorithm).find(|algorithm| !algorithm.does(args.kind)) {
        let all: Vec<String> = Algorithm::of(args.kind).map(|algorithm| algorithm.to_string()).collect();
        let kind = args.kind;
        return Err(BenchError::Usage(format!(
            "{stray} is no algorithm to {kind}; there are {}",
            all.join(", ")
        )));
    }
    if !args.algorithms.is_empty() {
        return Ok(args.algorithms.clone());
    }
    let is_shown = |algorithm: &Algorithm| match algorithm {
        Algorithm::Hierarchical(_) => false,
        Algorithm::Slots => args.kind == Kind::Barrier,
        algorithm => algorithm.needs_single_copy() || parameters.message.is_some(),
    };
    let mut shown: Vec<Algorithm> = Algorithm::of(args.kind).filter(is_shown).collect();
    shown.sort_by_key(|algorithm| matches!(algorithm, Algorithm::Knomial(_) | Algorithm::Messages));
    Ok(shown.into_iter().map(Shown::Best).collect())
}

fn row(model: &Model<'_>, kind: Kind, ranks: u32, bytes: u64, columns: &[Shown]) -> Row {
    let time = |shown: &Shown| match *shown {
        Shown::Best(algorithm) => model.best_of(kind, algorithm, ranks, bytes),
        Shown::Exactly(algorithm) => {
            model.predict_us(kind, algorithm, ranks, bytes).map(|time_us| (algorithm, time_us))
        }
    };
    let times: Vec<Option<(Algorithm, f64)>> = columns.iter().map(time).collect();
    let candidates: Vec<Algorithm> = times.iter().flatten().map(|(algorithm, _)| *algorithm).collect();
    Row { bytes, choice: model.choose_as_named(kind, ranks, bytes, &candidates), times }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
