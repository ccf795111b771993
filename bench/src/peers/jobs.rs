//! What is measured: a job for each pattern and mode.

use super::args::{PATTERNS, PeersArgs};
use super::figures;
use super::wanted::{MODES, Mode, Wanted};
use crate::asked::job;
use crate::cache;
use crate::error::BenchError;
use crate::job::Job;
use crate::options::{MeasuringArgs, SizeList};
use crate::patterns::Pattern;
use crate::sizes::{human, parse_sizes};

/// Rounds of a quick comparison.
const QUICK_ROUNDS: u32 = 6;
/// MPI counts bytes in a C int.
const MAX_BYTES: u64 = (1 << 31) - 1;

/// What was asked for.
pub fn wanted(args: &PeersArgs, measuring: &MeasuringArgs) -> Vec<Wanted> {
    if args.figures {
        return figures::wanted();
    }
    let patterns = args.pattern.as_ref().map_or(vec![Pattern::Pingpong], |list| list.0.clone());
    let asked = measuring.modes().into_iter().map(|in_use| Mode { in_use, off_cache: measuring.off_cache });
    let modes: Vec<Mode> = if args.all_modes { MODES.to_vec() } else { asked.collect() };
    let sizes = measuring.sizes.as_ref().map(|sizes| sizes.0.clone());
    let buffers = measuring.buffers;
    let one = |pattern, mode| Wanted {
        pattern,
        mode,
        buffers,
        ranks: args.ranks.unwrap_or(2),
        sizes: sizes.clone(),
    };
    let of_pattern = |pattern| modes.iter().map(move |&mode| (pattern, mode));
    patterns.into_iter().flat_map(of_pattern).map(|(pattern, mode)| one(pattern, mode)).collect()
}

/// A job for each; so many others have buffers at the same time.
///
/// # Errors
/// There is too little memory, or a size is too large for MPI.
pub fn jobs(
    wanted: Vec<Wanted>,
    mechanisms: &[String],
    args: &PeersArgs,
    measuring: &MeasuringArgs,
    peers: usize,
) -> Result<Vec<Job>, BenchError> {
    wanted.into_iter().map(|one| one_job(one, mechanisms, args, measuring, peers as u64)).collect()
}

fn one_job(
    Wanted { pattern, mode, buffers, ranks, sizes }: Wanted,
    mechanisms: &[String],
    args: &PeersArgs,
    measuring: &MeasuringArgs,
    peers: u64,
) -> Result<Job, BenchError> {
    debug_assert!(PATTERNS.contains(&pattern), "{pattern:?}");
    let all = match sizes {
        Some(sizes) => sizes,
        None => parse_sizes(pattern.definition().default_sizes)
            .map_err(|error| BenchError::Failure(error.to_string()))?,
    };
    let sizes = if args.quick { fewer(&all) } else { all };
    if let Some(bytes) = sizes.iter().find(|&&bytes| bytes > MAX_BYTES) {
        return Err(BenchError::Usage(format!(
            "{} is more than MPI sends at once; stay below 2GiB",
            human(*bytes)
        )));
    }
    let repetitions =
        if args.quick { measuring.repetitions().min(QUICK_ROUNDS) } else { measuring.repetitions() };
    let measuring = MeasuringArgs {
        sizes: Some(SizeList(sizes)),
        repetitions: Some(repetitions),
        in_use: mode.in_use,
        unmodified: !mode.in_use,
        off_cache: mode.off_cache,
        buffers,
        // The bare methods are ping-pongs between two ranks.
        limits: ranks == 2 && matches!(pattern, Pattern::Latency | Pattern::Pingpong),
        ..measuring.clone()
    };
    let mut job = job(pattern, mechanisms.to_vec(), ranks, &measuring, true)?;
    let available = cache::available_memory_bytes();
    if job.rotation_bytes.is_some() {
        // The peers have as many buffers, at the same time.
        let share = available.map(|bytes| bytes / (peers + 1));
        job.rotation_bytes = Some(cache::rotation_bytes(ranks, cache::last_level_bytes(), share));
    }
    let needed = job.buffer_bytes().saturating_mul(u64::from(ranks)).saturating_mul(peers + 2);
    match available {
        Some(available) if needed > available => Err(BenchError::Failure(format!(
            "the buffers of all who are compared need {} and {} are available; take smaller --sizes or fewer ranks",
            human(needed >> 20 << 20),
            human(available >> 20 << 20)
        ))),
        _ => Ok(job),
    }
}

/// Of powers of two the smallest, the largest and those of four; of other sizes,
/// all.
fn fewer(sizes: &[u64]) -> Vec<u64> {
    let ends = [sizes.first(), sizes.last()];
    let keep = |bytes: &u64| {
        !bytes.is_power_of_two() || bytes.trailing_zeros().is_multiple_of(2) || ends.contains(&Some(bytes))
    };
    sizes.iter().copied().filter(keep).collect()
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;
