//! `lmt doctor`: what works on this machine, and what would make the rest work.
//!
//! Whether a mechanism works is found out between two real processes
//! ([`crate::engine::endpoint::probe_second_process`]); everything else explains
//! that. No mechanism is named here: each brings its own checks.

mod configuration;
mod cpus;
mod diagnosis;
mod files;
pub(crate) mod limits;
mod memory;
mod moved;
mod mpi;
mod rights;
mod show;
pub(crate) mod sys;
mod topology;
mod variables;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use lmt::diagnostic::{Finding, Host};
use serde::Serialize;

pub use diagnosis::{Diagnosis, diagnose};

use crate::args::{DoctorArgs, DoctorFormat};
use crate::console::{json, print};
use crate::engine::endpoint::probe_second_process;
use crate::engine::met::ProbeReport;
use crate::error::BenchError;
use crate::statistics::Statistics;

/// Ranks that are thought of when none are given.
const RANKS: u32 = 2;

/// A finding and the heading under which it stands.
#[derive(Debug, Serialize)]
pub struct Grouped {
    /// The heading.
    pub group: &'static str,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of this command.
    pub lmt: &'static str,
    /// Where another machine's files were read; none for this machine.
    pub root: Option<PathBuf>,
    /// How many ranks were thought of.
    pub ranks: u32,
    /// What was found of the machine and of this process.
    pub findings: Vec<Grouped>,
    /// What was found of each mechanism, in order of preference.
    pub mechanisms: Vec<Diagnosis>,
    /// The names of the mechanisms that are the best for this kernel.
    pub best: Vec<&'static str>,
    /// Whether they work.
    pub ok: bool,
    /// The same in one sentence.
    pub verdict: String,
}

/// `lmt doctor`.
///
/// # Errors
/// [`BenchError::MechanismsMissing`], with everything said, when the best mechanisms for
/// this kernel do not work; an output that nobody takes.
pub fn run(args: &DoctorArgs) -> Result<(), BenchError> {
    let report = examine(args)?;
    print(&match args.format {
        DoctorFormat::Json => json(&report)?,
        DoctorFormat::Table => {
            let colour =
                io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            show::table(&report, colour)
        }
    })?;
    if report.ok { Ok(()) } else { Err(BenchError::MechanismsMissing) }
}

fn examine(args: &DoctorArgs) -> Result<Report, BenchError> {
    let holds_any = |root: &&PathBuf| ["proc", "sys", "dev"].iter().any(|folder| root.join(folder).is_dir());
    if let Some(root) = args.root.as_ref().filter(|root| !holds_any(root)) {
        let sentence =
            format!("--root {} holds no proc, sys or dev; name the folder that they are in", root.display());
        return Err(BenchError::Usage(sentence));
    }
    let host = args.root.as_ref().map_or_else(Host::default, |root| Host::under(root));
    let statistics = args.stats.as_deref().map(Statistics::read).transpose().map_err(BenchError::Failure)?;
    let ranks = args.ranks.unwrap_or(RANKS);
    let meeting = probe_second_process();
    let (mechanisms, best, ok, verdict) = diagnose(&host, &meeting);
    Ok(Report {
        lmt: env!("CARGO_PKG_VERSION"),
        root: (!host.is_this_machine()).then(|| args.root.clone()).flatten(),
        ranks,
        findings: findings(&host, ranks, meeting.as_ref().ok(), statistics.as_ref()),
        mechanisms,
        best,
        ok,
        verdict,
    })
}

fn findings(
    host: &Host,
    ranks: u32,
    meeting: Option<&ProbeReport>,
    statistics: Option<&Statistics>,
) -> Vec<Grouped> {
    // Another machine's files do not tell of its MPI.
    let of_mpi = if host.is_this_machine() { mpi::findings() } else { Vec::new() };
    let groups: [(&'static str, Vec<Finding>); 7] = [
        ("kernel and rights", rights::findings(host)),
        ("memory", memory::findings(host, ranks)),
        ("descriptors and files", files::findings(host, ranks, meeting)),
        ("processors", [cpus::findings(host, ranks), topology::findings()].concat()),
        ("environment", [variables::findings(), configuration::findings()].concat()),
        ("MPI", of_mpi),
        ("what a run has moved", statistics.map_or_else(Vec::new, moved::findings)),
    ];
    let with_heading = |(group, findings): (&'static str, Vec<Finding>)| {
        findings.into_iter().map(move |finding| Grouped { group, finding })
    };
    groups.into_iter().flat_map(with_heading).collect()
}

#[cfg(test)]
pub(crate) mod fixture;
