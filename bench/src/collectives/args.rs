//! What `lmt bench` takes for collective operations.

use std::path::PathBuf;

use clap::Args;
use lmt_collectives::{Algorithm, Kind};

use crate::error::BenchError;
use crate::peers::search::Search;

/// What stands for the library's own choice.
pub const AUTO: &str = "auto";
/// What stands for every algorithm of an operation.
pub const ALL: &str = "all";

/// The options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Collective operations")]
pub struct CollectiveArgs {
    /// The algorithms, with commas: auto (the library's choice), names such as knomial:4 (a wrong one is
    /// answered with the right ones), or all, which is auto and every one of this operation [default: auto].
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Measure the same operation by the MPIs found on the PATH and those that were fetched, in turns.
    #[arg(long)]
    pub peers: bool,
    /// With --peers: install MPICH, Open MPI and Intel MPI from PyPI into the cache folder first,
    /// unless they are there.
    #[arg(long, requires = "peers")]
    pub fetch: bool,
    /// With --peers: the folder of one more MPI, in which bin/mpicc and bin/mpiexec are; may be repeated.
    #[arg(long = "mpi-folder", value_name = "FOLDER", requires = "peers")]
    pub mpi_folders: Vec<PathBuf>,
    /// With --peers: where MPIs and the benchmarks built for them are kept [default: lmt in
    /// $XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "FOLDER", requires = "peers")]
    pub cache: Option<PathBuf>,
}

impl CollectiveArgs {
    /// An option that was given; it makes no sense where no collective operation is measured.
    pub fn stray(&self) -> Option<&'static str> {
        let given = [("--algorithm", self.algorithm.is_some()), ("--peers", self.peers)];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Where the MPIs are looked for.
    pub fn search(&self) -> Search<'_> {
        Search { folders: &self.mpi_folders, cache: self.cache.as_deref(), fetch: self.fetch }
    }
}

/// The algorithms that a list with commas means for an operation, each once; none
/// stands for the library's choice.
///
/// # Errors
/// There is no such algorithm, or it does not do this operation.
pub fn algorithms(kind: Kind, asked: Option<&str>) -> Result<Vec<Option<Algorithm>>, BenchError> {
    let mut meant = Vec::new();
    for part in asked.unwrap_or(AUTO).split(',').map(str::trim) {
        match part {
            AUTO => meant.push(None),
            ALL => meant.extend([None].into_iter().chain(Algorithm::of(kind).map(Some))),
            name => meant.push(Some(one(kind, name)?)),
        }
    }
    let mut each = Vec::new();
    for algorithm in meant {
        if !each.contains(&algorithm) {
            each.push(algorithm);
        }
    }
    Ok(each)
}

fn one(kind: Kind, name: &str) -> Result<Algorithm, BenchError> {
    let refused = |what: &str| {
        let able: Vec<String> = Algorithm::of(kind).map(|algorithm| algorithm.to_string()).collect();
        BenchError::Usage(format!("{what}; {kind} is done by {}, and auto chooses", able.join(", ")))
    };
    match name.parse::<Algorithm>() {
        Ok(algorithm) if algorithm.does(kind) => Ok(algorithm),
        Ok(algorithm) => Err(refused(&format!("{algorithm} does not do {kind}"))),
        Err(_) => Err(refused(&format!("there is no algorithm '{name}'"))),
    }
}

/// The name of an algorithm in tables and on the command line.
pub fn name_of(algorithm: Option<Algorithm>) -> String {
    algorithm.map_or_else(|| AUTO.to_owned(), |algorithm| algorithm.to_string())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
