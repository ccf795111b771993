//! `lmt compare --peers`: side by side with the MPIs of this machine.
//!
//! One C benchmark of ours (`peer.c`) does with each MPI what `lmt bench` does
//! with us. All processes stay alive and sleep; round by round each contender has
//! one short turn, so that whatever the machine does meanwhile meets all alike,
//! and every ratio is taken within a round.

pub mod again;
pub mod args;
pub(crate) mod cache;
pub mod command;
mod contenders;
pub mod figures;
mod group;
mod html;
pub mod installation;
mod jobs;
mod measure;
pub mod mpi;
mod ours;
pub mod peer;
pub mod provider;
pub mod rank;
pub mod result;
pub mod search;
pub mod show;
mod shown;
pub mod transport;
mod wanted;

use std::path::Path;

use crate::choice::choose;
use crate::console::{complain, json, print, written};
use crate::engine::LeftOut;
use crate::environment::{Environment, allowed_cpus};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::job::Job;
use crate::options::{Format, MeasuringArgs};
use crate::peers::search::Search;
use crate::progress::Progress;
use args::PeersArgs;
use cache::Cache;
pub(crate) use contenders::Contenders;
use figures::Figure;
pub(crate) use group::{Setup, Turn as MpiTurn};
use measure::Measuring;
pub(crate) use measure::warm_up;
pub(crate) use peer::Peer;
use result::{Role, Row};
use show::{PeerCard, Scene};
pub(crate) use shown::Shown;

/// What a comparison needs, found out before anything is measured.
#[derive(Debug)]
pub struct Prepared {
    peers: Vec<Peer>,
    left_out: Vec<LeftOut>,
    jobs: Vec<Job>,
    /// From now on signals are requests.
    pub interrupt: Interrupt,
}

/// Checks what was asked for, and finds the peers.
///
/// # Errors
/// What is missing, or makes no sense.
pub fn prepare(args: &PeersArgs, measuring: &MeasuringArgs) -> Result<Prepared, BenchError> {
    let mechanisms = choose(args.mechanism.as_deref(), measuring.buffers)?.mechanisms;
    let interrupt = Interrupt::watch()?;
    let (peers, left_out) = found_peers(args.search(), &interrupt)?;
    let jobs = jobs::jobs(jobs::wanted(args, measuring), &mechanisms, args, measuring, peers.len())?;
    Ok(Prepared { peers, left_out, jobs, interrupt })
}

/// Measures what was asked for and writes it.
///
/// # Errors
/// A rank of ours failed, or the results cannot be written.
pub fn compare(prepared: Prepared, args: &PeersArgs) -> Result<Comparison, BenchError> {
    let Prepared { peers, left_out, jobs, interrupt } = prepared;
    let mut comparison = run(jobs, &peers, args, &interrupt)?;
    if args.figures {
        let names = peers.iter().map(|peer| &peer.name).chain(left_out.iter().map(|left| &left.name));
        let mut names: Vec<String> = names.cloned().collect();
        // One that cannot be fetched may be there all the same.
        names.sort_unstable();
        names.dedup();
        comparison.figures = figures::judge(&comparison.scenes, &names);
    }
    tell(&comparison, args.format)?;
    Ok(comparison)
}

/// Writes the results as they were asked for; of a table, what stands at its end.
///
/// # Errors
/// The output cannot be written.
fn tell(comparison: &Comparison, format: Option<Format>) -> Result<(), BenchError> {
    match format {
        Some(Format::Csv) => print(&written(|out| show::csv(out, &comparison.scenes))?),
        Some(Format::Json) => print(&json(comparison)?),
        Some(Format::Table) | None => print(&figures::text(&comparison.figures)),
    }
}

/// Installs the MPIs that are not there yet, and prints the folders of those that
/// are then.
///
/// # Errors
/// The cache folder cannot be used, or none could be had.
pub fn fetch_only(args: &PeersArgs) -> Result<(), BenchError> {
    let interrupt = Interrupt::watch()?;
    let cache = Cache::new(args.cache.as_deref(), |name| std::env::var_os(name))?;
    for LeftOut { name, reason } in cache.fetch(&interrupt, &mut |sentence| complain(sentence))? {
        complain(&format!("{name} is left out: {reason}"));
    }
    let folders = cache.fetched_folders();
    if folders.is_empty() {
        return Err(BenchError::Failure("no MPI could be had from PyPI".into()));
    }
    for folder in folders.iter().filter_map(|folder| folder.parent()) {
        print(&format!("{}\n", folder.display()))?;
    }
    Ok(())
}

/// Everything that the comparison has found.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Who was compared.
    pub peers: Vec<PeerCard>,
    /// One for each pattern and mode.
    pub scenes: Vec<Scene>,
    /// What the project's figures say, if that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

fn lacks_programs(folder: &Path) -> bool {
    ["mpicc", "mpiexec"].iter().any(|name| !folder.join(name).is_file())
}

/// The MPIs to compare with, each with the benchmark built for it.
///
/// # Errors
/// There is none.
pub fn peers(search: Search<'_>, interrupt: &Interrupt) -> Result<Vec<Peer>, BenchError> {
    found_peers(search, interrupt).map(|(peers, _)| peers)
}

/// The same, and those that are left out.
fn found_peers(search: Search<'_>, interrupt: &Interrupt) -> Result<(Vec<Peer>, Vec<LeftOut>), BenchError> {
    let named = search.folders.iter().map(|folder| folder.join("bin"));
    if let Some(folder) = named.clone().find(|folder| lacks_programs(folder)) {
        return Err(BenchError::Failure(format!(
            "{} lacks mpicc or mpiexec; --mpi-folder wants the folder of an MPI, in which bin/mpicc and bin/mpiexec are",
            folder.display()
        )));
    }
    let cache = Cache::new(search.cache, |name| std::env::var_os(name))?;
    let mut left_out = Vec::new();
    if search.fetch {
        left_out.extend(cache.fetch(interrupt, &mut |sentence| complain(sentence))?);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = named.chain(cache.fetched_folders()).chain(std::env::split_paths(&path));
    let (installations, unknown) = installation::find(folders, interrupt);
    left_out.extend(unknown);
    let mut peers = Vec::new();
    for mpi in installations {
        let variables = mpi.variables(nix::unistd::geteuid().is_root());
        match cache.build(&mpi, &variables, interrupt) {
            Ok(program) => {
                peers.push(Peer { name: mpi.name.clone(), role: Role::Peer, mpi, program, variables });
            }
            Err(reason) => left_out.push(LeftOut { name: mpi.name, reason }),
        }
    }
    if let Some(signal) = interrupt.signal() {
        let sentence = "it was interrupted before anything was measured".to_owned();
        return Err(BenchError::Interrupted { signal: signal as u8, sentence });
    }
    for LeftOut { name, reason } in &left_out {
        complain(&format!("{name} is left out: {reason}"));
    }
    if peers.is_empty() {
        return Err(BenchError::Failure(
            "there is no MPI to compare with: neither mpicc and mpiexec on the PATH, nor an MPI that was fetched; \
             install one, or let --fetch get three from PyPI"
                .into(),
        ));
    }
    Ok((peers, left_out))
}

/// Runs the scenes one after the other, and shows each row as it comes. For the
/// figures a scene that fails is left out.
///
/// # Errors
/// One of our ranks fails, the output cannot be written, or a signal came.
fn run(
    jobs: Vec<Job>,
    peers: &[Peer],
    args: &PeersArgs,
    interrupt: &Interrupt,
) -> Result<Comparison, BenchError> {
    let cores = allowed_cpus()?.len();
    let cards: Vec<PeerCard> = peers.iter().map(PeerCard::of).collect();
    let progress = Progress::new();
    let mut scenes = Vec::new();
    for (index, job) in jobs.into_iter().enumerate() {
        let environment = Environment::record(&job);
        let shown = Shown::new(&progress).with_table(
            args.as_table(),
            |out| show::begin_table(out, &job, &environment, &cards, index == 0),
            |out, times| Row::of(times).map_or(Ok(()), |row| show::table_row(out, &job, &cards, &row)),
        );
        let measured =
            Measuring::start(&job, peers, cores, interrupt, &shown).and_then(|measuring| measuring.run());
        let sizes = match measured {
            Err(error @ (BenchError::Failure(_) | BenchError::Mechanism { .. })) if args.figures => {
                progress.suspend(|| complain(&format!("{} is left out: {error}", show::title(&job))));
                continue;
            }
            measured => measured?,
        };
        let rows: Vec<Row> = sizes.iter().filter_map(Row::of).collect();
        shown.end(|out| show::end_table(out, &rows))?;
        drop(shown);
        scenes.push(Scene { settings: job, environment, rows });
    }
    progress.end();
    Ok(Comparison { peers: cards, scenes, figures: Vec::new() })
}
