//! What single copy costs, as a part of tuning.

use lmt_selector::calibration::Course;
use lmt_selector::contention::{MessageCost, Parameters};

use super::COPIES_FROM_S;
use crate::contention::measuring::Stop;
use crate::contention::parameters;
use crate::interrupt::Interrupt;

/// By this length, or the longest that was measured up to it, the time of a byte
/// of a message is found.
const LONG_BYTES: u64 = 1 << 20;

/// What single copy costs on these CPUs, if there is time to measure it.
///
/// # Errors
/// Why it was not measured, in a sentence; tuning goes on.
pub fn contention(cpus: Option<&[usize]>, interrupt: &Interrupt) -> Result<Parameters, String> {
    let why = match cpus.map(|cpus| parameters(cpus, interrupt)) {
        Some(Ok(parameters)) => return Ok(parameters),
        None => format!("that is measured where there are {COPIES_FROM_S} s or more"),
        Some(Err(Stop::Refused(sentence))) => sentence,
        Some(Err(Stop::Interrupted)) => "a signal came".to_owned(),
        Some(Err(Stop::Error(error))) => error.to_string(),
    };
    Err(format!("what it costs to copy out of another process, for collective operations: {why}"))
}

/// The same with what messages take of one pair on cache: the shortest length, and
/// the fastest way of a long one.
pub fn with_messages(parameters: Parameters, courses: &[Course]) -> Parameters {
    let is_plain = |course: &&Course| course.load.pairs == 1 && !course.load.off_cache;
    let message = courses.iter().find(is_plain).and_then(message);
    Parameters { message, ..parameters }
}

fn message(course: &Course) -> Option<MessageCost> {
    let fastest = |of: u64| {
        let class = course.class(of)?;
        let medians = class.ways().filter_map(|(_, samples)| samples.median_ns());
        Some((of, medians.min_by(f64::total_cmp)?))
    };
    let lengths = || course.classes().map(|(bytes, _)| bytes);
    let (short_bytes, short_ns) = fastest(lengths().min()?)?;
    let (long_bytes, long_ns) = fastest(lengths().filter(|bytes| *bytes <= LONG_BYTES).max()?)?;
    let bytes = long_bytes.checked_sub(short_bytes).filter(|bytes| *bytes > 0)?;
    Some(MessageCost { start_us: short_ns / 1e3, byte_ns: (long_ns - short_ns).max(0.0) / bytes as f64 })
}

#[cfg(test)]
#[path = "copying_tests.rs"]
mod tests;
