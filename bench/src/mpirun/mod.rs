//! `lmt mpirun`: runs the mpiexec of the MPI that is in use, with its programs over lmt.

pub mod built;
pub mod chosen;
pub mod launchers;
pub mod libfabric;
mod strings;
mod why;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::console::complain;
use crate::error::BenchError;
use crate::mpirun_env::variables;
use crate::peers::installation::Variables;
use crate::peers::provider::Provider;
use chosen::{Chosen, choose, obstacle};
use launchers::Surroundings;
use libfabric::Libfabric;

/// The variable by which ranks show their statistics at their end.
const STATISTICS: &str = "LMT_STATS";

/// `lmt mpirun`.
#[derive(Debug, Args)]
pub struct MpirunArgs {
    /// Print what is set, and why.
    #[arg(long)]
    pub why: bool,
    /// Have each rank show at its end which paths its bytes took (LMT_STATS=1, unless that is set).
    #[arg(long)]
    pub stats: bool,
    /// The MPI: mpich, openmpi or intelmpi, its folder, or its mpiexec [default: that beside the Python
    /// of a virtual environment that is to run, else the first on the PATH].
    #[arg(long, value_name = "FOLDER_OR_NAME")]
    pub mpi: Option<OsString>,
    /// The provider's library, a file that ends in -fi.so [default: liblmt-fi.so beside this command,
    /// in ../lib/lmt or ../lib, or in a folder of FI_PROVIDER_PATH].
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,
    /// What mpiexec is given, such as -n 2 python program.py. From here on nothing is an option of lmt.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

/// `lmt mpirun`: returns only if the MPI's mpiexec does not run.
///
/// # Errors
/// There is no MPI or no provider, the MPI cannot take it, or mpiexec cannot be started.
pub fn run(args: &MpirunArgs) -> Result<(), BenchError> {
    let failed = BenchError::Failure;
    let provider = Provider::find(args.provider.as_deref()).map_err(failed)?;
    let chosen = choose(args.mpi.as_deref(), &Surroundings::here(), &args.arguments).map_err(failed)?;
    let mpi = &chosen.mpi;
    let others = chosen.others_named();
    if let Some(obstacle) = obstacle(mpi) {
        let others = others.map(|others| format!("; {others}")).unwrap_or_default();
        return Err(BenchError::Failure(obstacle.sentence(mpi) + &others));
    }
    if let Some(others) = others {
        complain(&format!("took {} {} ({}); {others}", mpi.kind.title(), mpi.version, mpi.mpiexec.display()));
    }
    let variables = wanted(&chosen, &provider, args.stats)?;
    if args.why {
        why::lines(&chosen, &Libfabric::of(mpi), &variables, &args.arguments)
            .iter()
            .for_each(|line| complain(line));
    }
    let error = Command::new(&mpi.mpiexec).args(&args.arguments).envs(variables).exec();
    Err(BenchError::Failure(format!("{} cannot be started: {error}", mpi.mpiexec.display())))
}

/// What is set.
fn wanted(chosen: &Chosen, provider: &Provider, has_statistics: bool) -> Result<Variables, BenchError> {
    let mpi = &chosen.mpi;
    let variable = |name: &str| std::env::var_os(name);
    let mut wanted = variables(mpi.kind, Some(mpi), provider, variable)
        .map_err(|why| BenchError::Failure(format!("{}: {why}", mpi.mpiexec.display())))?;
    if has_statistics && variable(STATISTICS).is_none() {
        wanted.push((STATISTICS, "1".into()));
    }
    Ok(wanted)
}
