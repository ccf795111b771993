//! `lmt tune`: measures this machine, and writes what follows from it as a
//! calibration.

mod collectives;
mod copying;
mod machine;
pub mod measuring;
mod memory;
mod outputs;
pub mod places;
pub mod plan;
mod previous;
mod progress;
pub mod rank;
mod report;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use lmt_selector::calibration::Provenance;
use lmt_selector::contention::Parameters;

use crate::args::TuneArgs;
use crate::engine::{self, LeftOut};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::processes::Word;
use collectives::Found;
use machine::Here;
use measuring::{End, Measuring, Outcome, Task};
use outputs::{Copying, Outputs};
use plan::Effort;
use rank::Answer;

impl Word for Answer {
    fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { sentence, .. } => Some(sentence),
            _ => None,
        }
    }
}

/// Copies, within a process and out of another, are measured where there is so much time for everything, in seconds:
/// they take some ten of them.
pub(crate) const COPIES_FROM_S: u64 = 60;
/// How they are.
const COPIES: lmt_copy::Effort = lmt_copy::Effort::FULL;

/// `lmt tune`.
///
/// # Errors
/// Nothing can be measured, a file cannot be written (found out before it is
/// measured), or a signal, a rank's end or the deadline ended it before each
/// size was measured once, after what was measured was written.
pub fn tune(args: &TuneArgs) -> Result<(), BenchError> {
    let begin = Instant::now();
    let interrupt = Interrupt::watch()?;
    let here = Here::find()?;
    let outputs = Outputs::prepare(args, &here.fingerprint)?;
    let output = outputs.output.clone();
    let effort = effort(args);
    let with_collectives = !args.no_collectives && effort.time_s >= COPIES_FROM_S;
    let of_collectives = if with_collectives { collectives::share(effort) } else { Duration::ZERO };
    let effort = effort.without(of_collectives);
    let ways = engine::ways()?;
    let sizes = sizes(args)?;
    let settings =
        places::settings(here.machine.as_ref(), &here.cpus, memory::max_pairs(&sizes, ways.works.len()));
    let task = Task {
        ways: ways.works,
        settings: settings.settings,
        sizes,
        effort,
        deadline: begin + Duration::from_secs(effort.time_s),
    };
    let has_time = effort.time_s + of_collectives.as_secs() >= COPIES_FROM_S;
    let copy_routine = has_time.then(|| lmt_copy::measure(COPIES).0.to_string());
    let contention = copying::contention(has_time.then_some(&here.cpus[..]), &interrupt);
    let mut shown = progress::Course::new();
    let measured = Measuring::new(task, &interrupt, &mut shown).run();
    shown.end();
    let outcome = measured?;
    if outcome.courses.iter().all(|course| course.classes().next().is_none()) {
        return Err(nothing(&interrupt, &output, effort));
    }
    let mut skipped = skipped(&here, settings.skipped, &ways.left_out, &outcome, effort);
    let copying = copies(copy_routine, contention, &outcome, &mut skipped);
    let mut end = outcome.end.clone();
    let mut collectives = Found::default();
    if with_collectives && matches!(end, End::Done | End::Deadline(_)) {
        let deadline = begin + Duration::from_secs(effort.time_s) + of_collectives;
        let sizes = args.sizes.as_ref().map(|sizes| &sizes.0[..]);
        let figures = copying.1.clone();
        let task = collectives::Task { cpus: &here.cpus, figures, sizes, effort, deadline };
        collectives = collectives::measure(&task, &interrupt);
        if interrupt.signal().is_some() {
            end = End::Interrupted;
        }
    }
    let complete = matches!(end, End::Done | End::Deadline(_)) && outcome.whole_passes > 0;
    skipped.extend(without_collectives(args, &collectives));
    let provenance = Provenance {
        options: format!("{}in {} s", options(args), begin.elapsed().as_secs()),
        complete,
        skipped,
        ..here.provenance()
    };
    let (copy_routine, contention) = copying;
    outputs.write(provenance, &outcome, Copying { copy_routine, contention, collectives })?;
    ended(&end, complete, &interrupt, &output, effort)
}

/// What copies cost, and why not where that is not known.
fn copies(
    copy_routine: Option<String>,
    contention: Result<Parameters, String>,
    outcome: &Outcome,
    skipped: &mut Vec<String>,
) -> (Option<String>, Option<Parameters>) {
    if copy_routine.is_none() {
        skipped.push(format!(
            "by what bytes are copied: that is measured where there are {COPIES_FROM_S} s or more"
        ));
    }
    let contention = contention.map(|parameters| copying::with_messages(parameters, &outcome.courses));
    (copy_routine, contention.map_err(|sentence| skipped.push(sentence)).ok())
}

/// How the command ends once all is written.
fn ended(
    end: &End,
    complete: bool,
    interrupt: &Interrupt,
    output: &Path,
    effort: Effort,
) -> Result<(), BenchError> {
    let kept = format!("what was measured by then is in {}", output.display());
    match (end, interrupt.signal()) {
        (End::Interrupted, Some(signal)) => Err(BenchError::Interrupted {
            signal: signal as u8,
            sentence: format!("{signal} ended it early; {kept}"),
        }),
        (End::Failed(sentence), _) => Err(BenchError::Failure(format!("{sentence}; {kept}"))),
        (End::Deadline(_), _) if !complete => Err(BenchError::Failure(format!(
            "the {} s were over before every size was measured once; {kept}; give it more --time",
            effort.time_s
        ))),
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

/// What was not measured of collective operations and why.
fn without_collectives(args: &TuneArgs, found: &Found) -> Vec<String> {
    let why = match args.no_collectives {
        true => "--no-collectives".to_owned(),
        false => format!("that is done where there are {COPIES_FROM_S} s or more, after all else"),
    };
    let nothing = format!("which algorithms of collective operations are faster than those chosen: {why}");
    let nothing = (found.cases == 0 && found.skipped.is_empty()).then_some(nothing);
    let skipped = found.skipped.iter().map(|sentence| format!("collective operations: {sentence}"));
    skipped.chain(nothing).collect()
}

/// The options as they could be given again, each with a space behind it.
fn options(args: &TuneArgs) -> String {
    let mut options = String::new();
    if args.quick {
        options.push_str("--quick ");
    }
    if args.no_collectives {
        options.push_str("--no-collectives ");
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
            "more repetitions where paths are nearly equal: the {} s were over; which is taken there matters little",
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
