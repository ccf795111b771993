//! `lmt app`: applications that use collective operations, with each mechanism, as in
//! tables 1 and 2 of the KNEM paper (Goglin, Moreaud: Journal of Parallel and
//! Distributed Computing 73, 2013).
#![forbid(unsafe_code)]

pub mod application;
pub mod args;
pub mod asp;
pub mod comm;
pub mod is;
pub mod job;
pub mod random;
pub mod rank;
mod show;
mod start;
mod words;

use nix::unistd::Pid;

use crate::asked::place;
use crate::cache;
use crate::choice::choose;
use crate::console::{complain, print};

use crate::environment::Environment;
use crate::error::BenchError;
use crate::group::{self, Group};
use crate::job::Event;
use crate::processes::{Processes, failure};
use crate::progress::Progress;
use crate::sizes::human;
use args::{AppArgs, algorithms};
use job::{AppJob, Outcome};
use rank::{Assignment, RANK_COMMAND};
use show::Shown;

/// Runs an application with each mechanism, and shows what came of it.
///
/// # Errors
/// What was asked for does not exist, a rank failed, or the verification did.
pub fn run(args: &AppArgs) -> Result<(), BenchError> {
    let (problem, running) = args.app.parts()?;
    let algorithms = algorithms(problem, running.algorithm.as_deref())?;
    cache::check_memory("the ranks need", problem.memory_bytes(), "take a smaller problem")?;
    let job = AppJob {
        problem,
        algorithms,
        mechanisms: choose(running.mechanism.as_deref(), running.buffers)?.mechanisms,
        ranks: running.ranks,
        repetitions: running.repetitions,
        buffers: running.buffers,
        cpus: place(running.pin.as_ref(), running.ranks)?,
        fault: running.fault,
    };
    let needed = problem.bytes(job.ranks);
    if let Some(available) = cache::available_memory_bytes().filter(|&available| needed > available) {
        return Err(BenchError::Failure(format!(
            "{} of this size needs {} and {} are available; take a smaller one",
            problem.name(),
            human(needed >> 20 << 20),
            human(available >> 20 << 20)
        )));
    }
    let environment = Environment::of(&job.cpus, format!("{}, used in the run before", job.buffers.source()));
    let outcomes = measure(&job)?;
    if outcomes.is_empty() {
        return Err(BenchError::Failure("no algorithm of those that were named can do it".into()));
    }
    print(&Shown::new(&job, &outcomes).written(running.format, &environment)?)?;
    match outcomes.iter().filter(|outcome| !outcome.verified).count() {
        0 => Ok(()),
        wrong => Err(BenchError::Failure(format!(
            "verification failed in {wrong} of {} runs; their results are wrong",
            outcomes.len()
        ))),
    }
}

/// Starts the ranks, and hears of all runs.
fn measure(job: &AppJob) -> Result<Vec<Outcome>, BenchError> {
    let parent = Pid::this().as_raw();
    let assignment = |rank| Assignment { rank, parent, job: job.clone() };
    let assignments: Vec<Assignment> = (0..job.ranks).map(assignment).collect();
    let progress = Progress::new();
    let mut outcomes = Vec::new();
    let mut hear = |event| {
        match event {
            Event::Progress { done, total } => progress.show(done, total),
            Event::Note(note) => progress.suspend(|| complain(&note)),
            Event::Outcome(outcome) => outcomes.push(outcome),
            // Of use to other commands.
            _ => {}
        }
        Ok(())
    };
    let mut ranks: Group = Processes::start(RANK_COMMAND, &assignments)?;
    let cards = group::cards(&mut ranks, job.ranks as usize, &mut hear)?;
    ranks.tell(&cards).map_err(|error| failure("a rank cannot be told its peers", &error))?;
    let result = group::follow_ranks(&mut ranks, job.ranks, &mut hear);
    progress.end();
    result.map(|()| outcomes)
}
