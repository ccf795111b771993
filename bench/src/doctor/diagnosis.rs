//! What works, from what two processes found out of each other; and whether
//! that is the best that this kernel offers.
//!
//! **The best for this kernel** are two of the mechanisms that need nothing but
//! the kernel ([`Needs::Kernel`]), by the order of preference: the first in
//! which one process copies alone (a single copy, out of or into the other's
//! memory), and the first in which both take part (shared memory). Both must do
//! all they can, in both directions. What needs a module or a device, what
//! moves messages of some memory only, and what is preferred less, may fail.

use lmt::diagnostic::{Finding, Host, State};
use lmt::mechanism::{Description, MechanismStatus, Mechanisms, Model, Needs, Reach};
use serde::Serialize;

use crate::engine::build::all_of_this_build;
use crate::engine::met::ProbeReport;

/// What was found of one mechanism.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Its name.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What works, or why it does not.
    pub meaning: String,
    /// What would make it work.
    pub fix: Option<String>,
    /// The errno of the call that was refused, or 0.
    pub errno: i32,
    /// What it needs of the machine: kernel, module or device.
    pub needs: &'static str,
    /// Whether it moves messages wherever they lie.
    pub any_memory: bool,
    /// Whether it is one of the best for this kernel.
    pub is_best: bool,
    /// What it found by its own checks.
    pub findings: Vec<Finding>,
}

/// Every mechanism, the names of the best, whether these work, and that in one
/// sentence.
pub fn diagnose(
    host: &Host,
    meeting: &Result<ProbeReport, String>,
) -> (Vec<Diagnosis>, Vec<&'static str>, bool, String) {
    let mechanisms = all_of_this_build();
    let descriptions = mechanisms.descriptions();
    let of_any_memory = of_any_memory(&mechanisms);
    let best = best(&of_any_memory);
    let found = mechanisms.diagnostics(host);
    let all: Vec<Diagnosis> = descriptions
        .iter()
        .zip(found)
        .map(|(of, (_, findings))| {
            let standing = meeting.as_ref().map(|met| {
                met.mechanism_status.iter().find(|(name, _)| *name == of.name).map(|(_, standing)| standing)
            });
            let diagnosed = of_mechanism(of, standing, findings);
            Diagnosis {
                any_memory: of_any_memory.contains(of),
                is_best: best.contains(&of.name),
                ..diagnosed
            }
        })
        .collect();
    let (ok, verdict) = match meeting {
        Ok(_) => conclude(&all, host.is_this_machine()),
        Err(why) => (false, format!("Two processes cannot send each other messages here: {why}.")),
    };
    (all, best, ok, verdict)
}

fn copies_alone(of: &Description) -> bool {
    of.models.iter().any(|model| !matches!(*model, Model::Cooperative | Model::Stream))
}

/// Those that move messages wherever these lie.
fn of_any_memory(mechanisms: &Mechanisms) -> Vec<Description> {
    let all = mechanisms.descriptions().into_iter();
    all.filter(|of| of.reach == Reach::AnyMemory).collect()
}

fn best(descriptions: &[Description]) -> Vec<&'static str> {
    let first = |alone: bool| {
        descriptions
            .iter()
            .find(|of| of.needs == Needs::Kernel && copies_alone(of) == alone)
            .map(|of| of.name)
    };
    [first(true), first(false)].into_iter().flatten().collect()
}

/// The ways in which messages go, from this process's side: with each model
/// whether they can be sent and received.
fn ways(of: &Description, standing: &MechanismStatus) -> Vec<(Model, bool, bool)> {
    let (ours, theirs) = (standing.ours, standing.theirs);
    let allowed =
        |model: &Model| (*model, ours.allow_sending(theirs, *model), theirs.allow_sending(ours, *model));
    of.models.iter().map(allowed).collect()
}

fn of_mechanism(
    of: &Description,
    standing: Result<Option<&MechanismStatus>, &String>,
    findings: Vec<Finding>,
) -> Diagnosis {
    let reason = |standing: &MechanismStatus| {
        standing.reason.as_ref().map_or_else(
            || (0, format!("{} is refused to the other process", of.name)),
            |reason| (reason.errno, reason.sentence.clone()),
        )
    };
    let (state, errno, meaning) = match standing {
        Err(why) => (State::Blocked, 0, format!("two processes did not connect: {why}")),
        Ok(None) => (State::Unknown, 0, "the endpoint has no such mechanism".to_owned()),
        Ok(Some(standing)) => {
            let ways = ways(of, standing);
            let works = |(_, send, receive): &(Model, bool, bool)| *send && *receive;
            if ways.iter().all(works) {
                (State::Good, 0, "works between two processes, in both directions".to_owned())
            } else if ways.iter().any(|(_, send, receive)| *send || *receive) {
                let (errno, why) = reason(standing);
                let mut missing: Vec<String> = ways.iter().filter(|way| !works(way)).map(in_words).collect();
                // Two models of which the same is to be said.
                missing.dedup();
                let why = standing.reason.as_ref().map(|_| format!(" ({why})")).unwrap_or_default();
                (State::Limited, errno, format!("works, except that {}{why}", missing.join(", and ")))
            } else {
                let blocked = findings.iter().any(|finding| finding.state == State::Blocked);
                let state =
                    if of.needs == Needs::Kernel || blocked { State::Blocked } else { State::Missing };
                let (errno, why) = reason(standing);
                (state, errno, why)
            }
        }
    };
    let fix = if state == State::Good { None } else { fix_of(&findings) };
    let needs = match of.needs {
        Needs::Kernel => "kernel",
        Needs::Module => "module",
        Needs::Device => "device",
    };
    Diagnosis { name: of.name, state, meaning, fix, errno, needs, any_memory: true, is_best: false, findings }
}

/// What a way lacks.
fn in_words((model, send, receive): &(Model, bool, bool)) -> String {
    let what = match model {
        Model::Get => "the receiver cannot copy out of the sender's memory",
        Model::Put => "the sender cannot copy into the receiver's memory",
        Model::Both => "not both can copy",
        Model::Cooperative | Model::Stream => "the two cannot copy together",
    };
    match (send, receive) {
        (true, false) => format!("{what} when this process receives"),
        (false, true) => format!("{what} when this process sends"),
        _ => what.to_owned(),
    }
}

/// What its own checks advise, the gravest first.
fn fix_of(findings: &[Finding]) -> Option<String> {
    let grave = [State::Blocked, State::Missing, State::Limited];
    let of = |state: State| findings.iter().find(|finding| finding.state == state && finding.fix.is_some());
    grave.into_iter().find_map(of).and_then(|finding| finding.fix.clone())
}

/// Whether the best work; of another machine's files, whether those of the best
/// show nothing that stands in the way either.
fn conclude(all: &[Diagnosis], is_this_machine: bool) -> (bool, String) {
    let best = || all.iter().filter(|diagnosis| diagnosis.is_best);
    let names: Vec<&str> = best().map(|diagnosis| diagnosis.name).collect();
    if let Some(worst) = best().find(|diagnosis| diagnosis.state != State::Good) {
        // For all messages, not for those of some memory only.
        let takes_over =
            |other: &&Diagnosis| other.state == State::Good && other.any_memory && other.name != worst.name;
        let instead = all.iter().find(takes_over);
        let instead = instead.map_or_else(
            || "no other mechanism takes its place".to_owned(),
            |other| format!("messages go by {} instead", other.name),
        );
        let how = if worst.state == State::Limited { "does not work fully" } else { "does not work" };
        let fix = worst.fix.as_ref().map(|fix| format!("; to change that: {fix}")).unwrap_or_default();
        return (false, format!("{} {how}, and this kernel should have it; {instead}{fix}.", worst.name));
    }
    let seen = best().find_map(|diagnosis| {
        let blocked = diagnosis.findings.iter().find(|finding| finding.state == State::Blocked);
        blocked.filter(|_| !is_this_machine).map(|finding| (diagnosis.name, finding))
    });
    if let Some((name, finding)) = seen {
        let fix = finding.fix.as_ref().map(|fix| format!("; to change that: {fix}")).unwrap_or_default();
        return (false, format!("By the files given, {name} does not work there: {}{fix}.", finding.meaning));
    }
    if names.is_empty() {
        return (false, "this build has no mechanism that needs the kernel alone.".to_owned());
    }
    let rest = all.iter().filter(|diagnosis| diagnosis.state == State::Good && !diagnosis.is_best).count();
    let rest = if rest == 0 { String::new() } else { format!("; {rest} more work too") };
    (true, format!("The best mechanisms for this kernel work: {}{rest}.", names.join(" and ")))
}

#[cfg(test)]
#[path = "diagnosis_tests.rs"]
mod tests;
