//! Which mechanisms work: found out with a second process, or assumed.

use std::path::Path;

use lmt::cpu_set::CpuSet;
use lmt::mechanism::{Abilities, MechanismStatus, Unavailable, is_meant};
use lmt::selection::KnownMechanism;
use nix::sched::{CpuSet as KernelSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::engine::endpoint::probe_two_processes;
use crate::error::BenchError;
use crate::nearest::unknown;

/// What works, and how that is known.
#[derive(Debug)]
pub struct Availability {
    /// How it is known, in a sentence.
    pub sentence: String,
}

/// Everything that a mechanism could be asked for.
const ABLE: Abilities = Abilities { read: true, write: true, cooperate: true };

/// Whether all names that are assumed to work mean something.
///
/// # Errors
/// The first that does not, with the nearest that would.
pub fn check_assumed(assumed: &[String], existing: &[&'static str]) -> Result<(), BenchError> {
    let exists = |name: &str| existing.iter().any(|known| is_meant(name, known));
    match assumed.iter().find(|name| !exists(name)) {
        Some(name) => Err(BenchError::Usage(unknown("mechanism", name, existing))),
        None => Ok(()),
    }
}

impl Availability {
    /// Fills in what works: between two processes, which read `config` where it
    /// is given, on `cpus` where they are this machine's, and then what is assumed.
    ///
    /// # Errors
    /// The two processes did not meet, and not everything is assumed.
    pub fn find(
        known: &mut [KnownMechanism],
        assumed: &[String],
        cpus: Option<CpuSet>,
        config: Option<&Path>,
    ) -> Result<Self, BenchError> {
        let is_assumed = |name: &str| assumed.iter().any(|meant| is_meant(meant, name));
        let mut how = String::from("found out with a second process");
        if known.iter().all(|known| is_assumed(known.name)) {
            how.clear();
        } else {
            let pinned = cpus.map(Pinned::to);
            let meeting = probe_two_processes(|command| {
                // The same files as the explanation's; others may be broken.
                if let Some(config) = config {
                    command.env("LMT_CONFIG", config);
                }
            });
            let meeting = meeting.map_err(BenchError::Failure)?;
            match pinned {
                None => how += " of this machine, which is not the one explained",
                Some(Ok(_)) => {}
                Some(Err(why)) => how += &format!(", elsewhere than on the CPUs named: {why}"),
            }
            for known in known.iter_mut() {
                let found = meeting.mechanism_status.iter().find(|(name, _)| *name == known.name);
                known.standing =
                    found.map_or_else(|| not_connected(known.name), |(_, standing)| standing.clone());
            }
        }
        for known in known.iter_mut().filter(|known| is_assumed(known.name)) {
            known.standing = MechanismStatus { ours: ABLE, theirs: ABLE, reason: None };
        }
        if !assumed.is_empty() {
            let and = if how.is_empty() { "" } else { "; " };
            how += &format!("{and}taken to work: {}", assumed.join(", "));
        }
        Ok(Self { sentence: how })
    }
}

fn not_connected(name: &str) -> MechanismStatus {
    let sentence = format!("{name} was not tried");
    MechanismStatus { reason: Some(Unavailable { errno: 0, sentence }), ..MechanismStatus::default() }
}

/// This thread, and what it starts, runs on some CPUs while this lives.
struct Pinned(KernelSet);

impl Pinned {
    fn to(cpus: CpuSet) -> Result<Self, String> {
        let this_thread = Pid::from_raw(0);
        let before = sched_getaffinity(this_thread).map_err(|errno| format!("sched_getaffinity: {errno}"))?;
        let mut set = KernelSet::new();
        for cpu in cpus.iter() {
            set.set(cpu).map_err(|errno| format!("CPU {cpu}: {errno}"))?;
        }
        sched_setaffinity(this_thread, &set)
            .map_err(|errno| format!("sched_setaffinity to {cpus}: {errno}"))?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before is allowed again; if not, all that follows is
        // printing.
        let _restored = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}
