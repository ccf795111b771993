//! `lmt explain`: which way messages between two places take, or which algorithm a
//! collective operation, and why.

mod args;
mod availability;
mod collective;
mod copies;
mod show;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use lmt::configuration;
use lmt::cpu_set::CpuSet;
use lmt::mechanism::Mechanisms;
use lmt::selection::{Explanation, KnownMechanism, Message, Policy, Situation};
use lmt_selector::configuration::Configuration;
use lmt_selector::policy::RulePolicy;
use lmt_selector::topology::Machine;

pub use args::ExplainArgs;
use args::{CpuList, ExplainFormat};

use crate::console::{json, print};
use crate::error::BenchError;
use availability::Availability;

/// What is told, for programs.
#[derive(Debug, serde::Serialize)]
struct Answer {
    /// The machine in words.
    machine: String,
    /// Whether it is the one that this runs on.
    is_this_machine: bool,
    /// How it was found out what works.
    availability: String,
    /// One for each length.
    explanations: Vec<Explanation>,
}

/// `lmt explain`.
///
/// # Errors
/// The configuration or the topology cannot be read, or a CPU or mechanism that
/// was named does not exist.
pub fn run(args: &ExplainArgs) -> Result<(), BenchError> {
    if let Some(kind) = args.collective {
        return collective::run(kind, args);
    }
    let machine = configuration::machine().map_err(BenchError::Failure)?;
    let (here, there) = places(args, &machine)?;
    let configuration = configuration(args.config.as_deref())?;
    let mut mechanisms = Mechanisms::new();
    lmt::list::register_all(&mut mechanisms);
    let existing = mechanisms.names();
    availability::check_assumed(&args.assume, &existing)?;
    if let Some(names) = &configuration.config.mechanisms {
        mechanisms.restrict(names);
    }
    let mut known = mechanisms.known(0);
    let cpus = here.union(&there);
    let cpus = machine.is_this_system().then_some(cpus);
    let availability = Availability::find(&mut known, &args.assume, cpus, args.config.as_deref())?;
    for known in known.iter_mut().filter(|known| known.is_available()) {
        known.times_plain_copy = mechanisms.times_plain_copy(known.name);
    }
    let policy = RulePolicy::new(Arc::new(configuration), Arc::clone(&machine).into())
        .with_existing_mechanisms(existing);
    let answer = Answer {
        machine: format!("{}: {machine}", machine.source()),
        is_this_machine: machine.is_this_system(),
        availability: availability.sentence,
        explanations: explain(args, &policy, &known, &[here, there]),
    };
    print(&match args.format {
        ExplainFormat::Json => json(&answer)?,
        ExplainFormat::Text if args.table => show::table(&answer),
        ExplainFormat::Text => show::text(&answer),
    })
}

fn explain(
    args: &ExplainArgs,
    policy: &RulePolicy,
    mechanisms: &[KnownMechanism],
    [here, there]: &[CpuSet; 2],
) -> Vec<Explanation> {
    let mut processes = vec![*here, *there];
    processes.resize(args.processes as usize, CpuSet::EMPTY);
    let config = &policy.configuration().config;
    let situation = Situation {
        here,
        there,
        processes: &processes,
        mechanisms,
        config,
        is_connected: true,
        has_fast_box: true,
        is_one_sided: false,
    };
    let message = |bytes| Message {
        contiguous: args.contiguous(),
        shared: args.shared_ends(),
        hints: args.hints(),
        readers: args.readers,
        ..Message::of_bytes(bytes)
    };
    args.lengths().into_iter().map(|bytes| policy.explain(&situation, &message(bytes))).collect()
}

/// As an endpoint reads it, but with this file in place of those that
/// LMT_CONFIG names.
pub(crate) fn configuration(file: Option<&Path>) -> Result<Configuration, BenchError> {
    let mut sources = crate::config::sources();
    if let Some(file) = file {
        sources.environment.retain(|(name, _)| name != "LMT_CONFIG");
        sources.environment.push(("LMT_CONFIG".to_owned(), OsString::from(file)));
    }
    lmt_selector::config::load(&sources).map_err(|failure| BenchError::Failure(failure.to_string()))
}

/// Where the two processes may run: as asked for, or anywhere they may.
fn places(args: &ExplainArgs, machine: &Machine) -> Result<(CpuSet, CpuSet), BenchError> {
    let anywhere = match CpuSet::of_this_thread() {
        mine if machine.is_this_system() && !mine.is_empty() => mine,
        _ => *machine.allowed(),
    };
    let place = |option, cpus: Option<&CpuList>| match cpus {
        None => Ok(anywhere),
        Some(cpus) => exists(option, &cpus.0, machine),
    };
    Ok((place("--from", args.from.as_ref())?, place("--to", args.to.as_ref())?))
}

fn exists(option: &str, cpus: &[usize], machine: &Machine) -> Result<CpuSet, BenchError> {
    let set = CpuSet::from_iter(cpus.iter().copied());
    let Some(missing) = cpus.iter().find(|cpu| machine.cpu(**cpu).is_none()) else { return Ok(set) };
    let what = if machine.offline().contains(*missing) { "is offline" } else { "does not exist" };
    let source = machine.source();
    let online = machine.online();
    Err(BenchError::Usage(format!(
        "{option} names CPU {missing}, which {what} on {source}; its CPUs are {online}"
    )))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
