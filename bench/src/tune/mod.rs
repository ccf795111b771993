//! `lmt tune`: measures this machine, and writes what follows from it as a
//! calibration.

mod interrupt;
mod machine;
pub mod measuring;
mod memory;
pub mod places;
pub mod plan;
mod previous;
mod progress;
pub mod rank;
mod report;
mod summary;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lmt_selector::calibration::{Calibration, Provenance, rules};

use crate::cli::TuneArgs;
use crate::commands::{complain, print};
use crate::engine::{Engine, LeftOut};
use crate::error::BenchError;
use crate::whole_file::WholeFile;
use interrupt::Interrupt;
use machine::Here;
use measuring::{End, Measuring, Outcome, Task};
use plan::Effort;
use previous::Previous;
use report::Page;
use summary::Summary;

/// Where everything goes.
struct Outputs {
    output: PathBuf,
    report: PathBuf,
    file: WholeFile,
    page: WholeFile,
    picture: Option<WholeFile>,
    previous: Previous,
}

impl Outputs {
    /// Finds out that all can be written, before the minutes of measuring and
    /// not after.
    fn prepare(args: &TuneArgs, fingerprint: &str) -> Result<Self, BenchError> {
        let output = match &args.output {
            Some(output) => output.clone(),
            None => default_output(fingerprint)?,
        };
        let report = args.report.clone().unwrap_or_else(|| output.with_extension("html"));
        if report == output {
            return Err(BenchError::Usage(format!(
                "--output and --report are both {}; name two files",
                output.display()
            )));
        }
        let file = WholeFile::create(&output, "--output")?;
        let page = WholeFile::create(&report, "--report")?;
        let picture = args.picture.as_ref().map(|path| WholeFile::create(path, "--picture")).transpose()?;
        let previous = Previous::read(&output);
        if args.output.is_none()
            && let Some(moved) = previous.make_way(&output)?
        {
            complain(&format!("the calibration before cannot be read and is {} now", moved.display()));
        }
        Ok(Self { output, report, file, page, picture, previous })
    }

    /// Writes all, and says what came of it.
    fn write(self, provenance: Provenance, outcome: &Outcome) -> Result<(), BenchError> {
        let of_courses = rules(&outcome.courses, &outcome.ways);
        let kept = keep_complete(&self.previous, &self.output, provenance.complete);
        let calibration = Calibration::new(provenance, &outcome.courses, &outcome.ways);
        self.file.write(&calibration.to_toml())?;
        let shown = Page { calibration: &calibration, measured: &outcome.courses, courses: &of_courses };
        self.page.write(&shown.to_html()?)?;
        if let Some(picture) = self.picture {
            picture.write(&shown.to_svg()?)?;
        }
        let changes = self.previous.changes(&of_courses);
        let summary = Summary { calibration: &calibration, courses: &of_courses, changes: &changes };
        print(&summary.text(&self.output, &self.report, kept.as_deref()))
    }
}

/// `lmt tune`.
///
/// # Errors
/// Nothing can be measured, a file cannot be written (found out before it is
/// measured), or a signal or a rank's end ended it early, after what was
/// measured was written.
pub fn tune<E: Engine>(engine: &E, args: &TuneArgs) -> Result<(), BenchError> {
    let begin = Instant::now();
    let interrupt = Interrupt::watch()?;
    let here = Here::find()?;
    let outputs = Outputs::prepare(args, &here.fingerprint)?;
    let output = outputs.output.clone();
    let effort = effort(args);
    let ways = engine.ways()?;
    let sizes = sizes(args)?;
    let settings =
        places::settings(here.machine.as_ref(), &here.cpus, memory::most_pairs(&sizes, ways.works.len()));
    let task = Task {
        ways: ways.works,
        settings: settings.settings,
        sizes,
        effort,
        deadline: begin + Duration::from_secs(effort.time_s),
    };
    let mut shown = progress::Course::new();
    let measured = Measuring::new(task, &interrupt, &mut shown).run();
    shown.end();
    let outcome = measured?;
    if outcome.courses.iter().all(|course| course.classes().next().is_none()) {
        return Err(nothing(&interrupt, &output, effort));
    }
    let provenance = Provenance {
        options: format!("{}in {} s", options(args), begin.elapsed().as_secs()),
        complete: matches!(outcome.end, End::Done | End::Deadline(_)) && outcome.whole_passes > 0,
        skipped: skipped(&here, settings.skipped, &ways.left_out, &outcome, effort),
        ..here.provenance()
    };
    outputs.write(provenance, &outcome)?;
    let kept = format!("what was measured by then is in {}", output.display());
    match (&outcome.end, interrupt.signal()) {
        (End::Interrupted, Some(signal)) => Err(BenchError::Interrupted {
            signal: signal as u8,
            sentence: format!("{signal} ended it early; {kept}"),
        }),
        (End::Failed(sentence), _) => Err(BenchError::Failure(format!("{sentence}; {kept}"))),
        _ => Ok(()),
    }
}

fn effort(args: &TuneArgs) -> Effort {
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    Effort { time_s: args.time.unwrap_or(effort.time_s), ..effort }
}

fn sizes(args: &TuneArgs) -> Result<Vec<u64>, BenchError> {
    match &args.sizes {
        Some(sizes) if sizes.0.iter().all(|bytes| bytes.is_power_of_two()) => Ok(sizes.0.clone()),
        Some(_) => Err(BenchError::Usage("lmt tune measures powers of two; give such --sizes".into())),
        None => Ok((0..=lmt_selector::calibration::LARGEST_BYTES.ilog2()).map(|power| 1 << power).collect()),
    }
}

/// Where endpoints look for the calibration of this machine.
fn default_output(fingerprint: &str) -> Result<PathBuf, BenchError> {
    let Some(folder) = lmt::configuration::sources().folder else {
        return Err(BenchError::Usage(
            "neither XDG_CONFIG_HOME nor HOME names a folder; give the file with --output".into(),
        ));
    };
    let folder = folder.join("calibration");
    std::fs::create_dir_all(&folder).map_err(|error| {
        BenchError::Failure(format!(
            "the folder {} cannot be created: {error}; choose another --output",
            folder.display()
        ))
    })?;
    Ok(folder.join(format!("{fingerprint}.toml")))
}

/// The options as they could be given again, each with a space behind it.
fn options(args: &TuneArgs) -> String {
    let mut options = String::new();
    if args.quick {
        options.push_str("--quick ");
    }
    if let Some(seconds) = args.time {
        options.push_str(&format!("--time {seconds} "));
    }
    if let Some(sizes) = &args.sizes {
        let sizes: Vec<String> = sizes.0.iter().map(u64::to_string).collect();
        options.push_str(&format!("--sizes {} ", sizes.join(",")));
    }
    options
}

/// What was not measured and why.
fn skipped(
    here: &Here,
    places: Vec<String>,
    left_out: &[LeftOut],
    outcome: &Outcome,
    effort: Effort,
) -> Vec<String> {
    let mut skipped: Vec<String> = here.remarks.iter().cloned().chain(places).collect();
    skipped.extend(left_out.iter().map(|LeftOut { name, reason }| format!("{name}: {reason}")));
    skipped.push(format!(
        "mechanisms below {} B: a message that short is in one cell sooner than it is announced",
        plan::MECHANISMS_FROM_BYTES
    ));
    skipped.push(
        "how many may read one process at once (max_readers): the default holds, since pairs are measured, \
         not one sender with many receivers"
            .into(),
    );
    match &outcome.end {
        End::Done => {}
        End::Interrupted => skipped.push("what a signal cut off: classes that are not here have no rule".into()),
        End::Failed(sentence) => skipped.push(format!("what was left when this happened: {sentence}")),
        End::Deadline(pass) if *pass < effort.passes => skipped.push(format!(
            "what was left when the {} s were over, in pass {} of {}",
            effort.time_s,
            pass + 1,
            effort.passes
        )),
        End::Deadline(_) => skipped.push(format!(
            "more repetitions where ways are nearly equal: the {} s were over; which is taken there matters little",
            effort.time_s
        )),
    }
    skipped.extend(outcome.notes.iter().cloned());
    skipped
}

fn nothing(interrupt: &Interrupt, output: &Path, effort: Effort) -> BenchError {
    let unchanged = format!("nothing was measured yet, and {} is as it was", output.display());
    match interrupt.signal() {
        Some(signal) => BenchError::Interrupted { signal: signal as u8, sentence: unchanged },
        None => BenchError::Failure(format!(
            "after {} s {unchanged}; give it more --time, or the machine some rest",
            effort.time_s
        )),
    }
}

/// Keeps a complete calibration that is about to be replaced by one that is
/// not; says under which name.
fn keep_complete(previous: &Previous, output: &Path, complete: bool) -> Option<PathBuf> {
    if complete || !previous.is_complete() {
        return None;
    }
    let mut name = output.as_os_str().to_owned();
    name.push(".complete");
    let kept = PathBuf::from(name);
    match std::fs::copy(output, &kept) {
        Ok(_) => Some(kept),
        Err(error) => {
            complain(&format!("the complete calibration {} cannot be kept: {error}", output.display()));
            None
        }
    }
}
