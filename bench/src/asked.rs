//! The job that is made of what was asked for.

use crate::cache;
use crate::environment::allowed_cpus;
use crate::error::BenchError;
use crate::job::Job;
use crate::options::{MeasuringArgs, Pin};
use crate::patterns::Pattern;
use crate::sizes::parse_sizes;

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
