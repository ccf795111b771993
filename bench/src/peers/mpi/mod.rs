//! `lmt compare --mpi`: each MPI of the machine over lmt, by the libfabric
//! provider, against the same MPI over libfabric's own shared memory and over what
//! it takes by itself.
//!
//! The benchmark, the turns, the rounds and the passes are those of `--peers`.

mod judge;
mod show;

use std::path::{Path, PathBuf};

use super::args::PeersArgs;
use super::jobs::jobs;
use super::measure::Measuring;
use super::peer::Peer;
use super::provider::Provider;
use super::result::{Role, Row};
use super::show::{PeerCard, Scene};
use super::shown::Shown;
use super::transport::{self, ALL, PROVIDER_PATH, Transport};
use super::wanted::{Mode, Wanted};
use super::{Comparison, tell};
use crate::console::{complain, print};
use crate::engine::LeftOut;
use crate::environment::{Environment, allowed_cpus};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::job::Job;
use crate::memory::Memory;
use crate::options::MeasuringArgs;
use crate::own_folder::OwnFolder;
use crate::patterns::Pattern;
use crate::progress::Progress;
use crate::sizes::parse_sizes;
use crate::statistics::Statistics;

/// What is measured unless sizes are named: a short message, and the long ones.
const SIZES: &str = "8,64KiB..16MiB";

/// All of it: finds the MPIs, measures them and writes what was found.
///
/// # Errors
/// The provider is missing, a variable chooses already, or no MPI can be measured.
pub fn compare(args: &PeersArgs, measuring: &MeasuringArgs) -> Result<Comparison, BenchError> {
    let provider = Provider::find(args.provider.as_deref()).map_err(BenchError::Failure)?;
    nothing_chosen(|name| std::env::var_os(name).is_some())?;
    let interrupt = Interrupt::watch()?;
    let found = super::peers(args.search(), &interrupt)?;
    let job = job(args, measuring)?;
    let progress = Progress::new();
    let mut comparison = Comparison { peers: Vec::new(), scenes: Vec::new(), figures: Vec::new() };
    for peer in &found {
        let mut run = Run { peer, job: &job, interrupt: &interrupt, progress: &progress };
        match run.measure(&provider) {
            Ok(measured) => {
                let figures = judge::judge(&peer.name, &measured);
                let card = PeerCard::of(peer);
                if args.as_table() {
                    print(&show::table(&card, &measured, &figures, comparison.scenes.is_empty())?)?;
                }
                comparison.peers.push(card);
                comparison.figures.extend(figures);
                comparison.scenes.push(measured.scene);
            }
            Err(BenchError::Failure(sentence)) => complain(&format!("{} is left out: {sentence}", peer.name)),
            Err(error) => return Err(error),
        }
    }
    progress.end();
    if comparison.scenes.is_empty() {
        return Err(BenchError::Failure("none of the MPIs could be measured over lmt".into()));
    }
    if !args.as_table() {
        tell(&comparison, args.format)?;
    }
    Ok(comparison)
}

/// What was measured of one MPI.
struct Measured {
    scene: Scene,
    /// Transports that it cannot take, and why.
    left_out: Vec<LeftOut>,
    /// What its ranks over lmt have moved, by their own account.
    statistics: Statistics,
}

/// The name of an MPI with a transport.
fn name_of(mpi: &str, transport: Transport) -> String {
    format!("{mpi}/{}", transport.name())
}

/// A variable that is set already would choose for all transports.
///
/// # Errors
/// There is one.
pub(crate) fn nothing_chosen(is_set: impl Fn(&str) -> bool) -> Result<(), BenchError> {
    let names = transport::choosing();
    match names.into_iter().find(|name| is_set(name)) {
        Some(name) => Err(BenchError::Failure(format!(
            "{name} is set in the environment and would choose a transport for all that are compared; unset it"
        ))),
        None => Ok(()),
    }
}

/// What each MPI's transports do.
fn job(args: &PeersArgs, measuring: &MeasuringArgs) -> Result<Job, BenchError> {
    let sizes = match &measuring.sizes {
        Some(sizes) => sizes.0.clone(),
        None => parse_sizes(SIZES).map_err(|error| BenchError::Failure(error.to_string()))?,
    };
    let mode = Mode { in_use: measuring.is_in_use(), off_cache: measuring.off_cache };
    let wanted =
        Wanted { pattern: Pattern::Pingpong, mode, buffers: Memory::Private, ranks: 2, sizes: Some(sizes) };
    let mut jobs = jobs(vec![wanted], &[], args, measuring, ALL.len())?;
    let job = jobs.pop().ok_or_else(|| BenchError::Failure("there is nothing to measure".into()))?;
    // There are no ranks of our own that could verify, or try bare methods.
    Ok(Job { limits: false, verify: false, ..job })
}

/// One MPI under measurement.
struct Run<'a> {
    peer: &'a Peer,
    job: &'a Job,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

impl Run<'_> {
    fn measure(&mut self, provider: &Provider) -> Result<Measured, BenchError> {
        let folder = OwnFolder::new(&std::env::temp_dir())
            .map_err(|error| BenchError::Failure(format!("no temporary folder can be made: {error}")))?;
        let told = folder.path().join("statistics");
        let (contenders, left_out) = contenders(self.peer, provider, &told);
        let cores = allowed_cpus()?.len();
        // Sizes are shown all at once, later.
        let shown = Shown::new(self.progress);
        let measuring = Measuring::start(self.job, &contenders, cores, self.interrupt, &shown)?;
        let rows: Vec<Row> = measuring.run()?.iter().filter_map(Row::of).collect();
        if rows.is_empty() {
            return Err(BenchError::Failure("it could not be measured over lmt".into()));
        }
        // Without any its messages went another way, which the figures say.
        let statistics = Statistics::read(&told).unwrap_or_default();
        let settings = self.job.clone();
        let scene = Scene { environment: Environment::record(&settings), settings, rows };
        Ok(Measured { scene, left_out, statistics })
    }
}

/// An MPI with each transport that it can take.
fn contenders(peer: &Peer, provider: &Provider, told: &Path) -> (Vec<Peer>, Vec<LeftOut>) {
    let (mut contenders, mut left_out) = (Vec::new(), Vec::new());
    let of_peer =
        peer.variables.iter().find(|(name, _)| *name == PROVIDER_PATH).map(|(_, value)| value.clone());
    let others = of_peer.or_else(|| std::env::var_os(PROVIDER_PATH));
    for transport in ALL {
        let name = name_of(&peer.name, transport);
        match transport.variables(peer.mpi.kind, provider.folder(), others.clone()) {
            Ok(mut more) => {
                let is_ours = transport == Transport::Lmt;
                if is_ours {
                    more.push(("LMT_STATS", PathBuf::from(told).into()));
                }
                let role = if is_ours { Role::Ours } else { Role::Peer };
                let variables = transport::with(peer.variables.clone(), more);
                contenders.push(Peer { name, role, variables, ..peer.clone() });
            }
            Err(reason) => left_out.push(LeftOut { name, reason: reason.to_owned() }),
        }
    }
    (contenders, left_out)
}

#[cfg(test)]
#[path = "mpi_tests.rs"]
mod tests;
