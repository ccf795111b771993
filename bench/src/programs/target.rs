//! The MPIs that programs run with, and how their messages are led over lmt or left
//! where they are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::files::Places;
use super::table::{Program, Source};
use crate::engine::LeftOut;
use crate::interrupt::Interrupt;
use crate::peers::cache::Cache;
use crate::peers::command;
use crate::peers::installation::{self, Installation, Kind, Variables};
use crate::peers::provider::Provider;
use crate::peers::transport::{self, PROVIDER_PATH, Transport};

/// The names of Debian's launcher of Open MPI, the surest first.
const LAUNCHERS: [&str; 2] = ["mpiexec.openmpi", "mpiexec"];
/// Each rank is one thread: what libraries start beside it would share the ranks' cores.
const ONE_THREAD: [&str; 2] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"];

/// The MPIs of this machine.
#[derive(Debug)]
pub struct Targets {
    debian: Result<Installation, String>,
    pypi: Vec<Installation>,
}

impl Targets {
    /// Looks for them: on this PATH, and among what was fetched.
    pub fn find(path: &OsString, cache: &Cache, interrupt: &Interrupt) -> (Self, Vec<LeftOut>) {
        let (pypi, left_out) = installation::find(cache.fetched_folders(), interrupt);
        (Self { debian: on_path(path, interrupt), pypi }, left_out)
    }

    /// Those that a program runs with.
    ///
    /// # Errors
    /// There is none: a sentence.
    pub fn of(&self, source: Source) -> Result<Vec<&Installation>, String> {
        let found: Vec<&Installation> = match source {
            Source::Debian => vec![self.debian.as_ref().map_err(Clone::clone)?],
            Source::PyPi => self.pypi.iter().collect(),
            Source::IntelMpi => self.pypi.iter().filter(|mpi| mpi.kind == Kind::IntelMpi).collect(),
        };
        match found.is_empty() {
            true => Err("its MPI is not there; --fetch gets it from PyPI".to_owned()),
            false => Ok(found),
        }
    }
}

fn on_path(path: &OsString, interrupt: &Interrupt) -> Result<Installation, String> {
    let mut why = None;
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let found = LAUNCHERS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    for launcher in found.filter(|launcher| launcher.is_file()) {
        // Open MPI takes the folder of its launcher for its prefix, and refuses `/`.
        let folder = launcher.parent().and_then(|folder| folder.canonicalize().ok());
        let launcher =
            folder.map_or(launcher.clone(), |folder| folder.join(launcher.file_name().unwrap_or_default()));
        // What is compiled, a program's entry says: which compiler belongs to it does not matter.
        match installation::ask(launcher.with_file_name("mpicc"), launcher, interrupt) {
            Ok(mpi) if mpi.kind == Kind::OpenMpi => return Ok(mpi),
            Ok(_) => {}
            Err(sentence) => why = why.or(Some(sentence)),
        }
    }
    Err(why.unwrap_or_else(|| "there is no mpiexec of Open MPI on the PATH; install openmpi-bin".to_owned()))
}

/// One program with one MPI and so many ranks.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The program.
    pub program: &'a Program,
    /// The MPI.
    pub mpi: &'a Installation,
    /// Processes.
    pub ranks: u32,
    /// What stands for what in the program's command and files.
    pub places: Places,
}

impl Case<'_> {
    /// Its name in sentences.
    pub fn name(&self) -> String {
        format!(
            "{} with {} ranks under {} {}",
            self.program.name,
            self.ranks,
            self.mpi.kind.title(),
            self.mpi.version
        )
    }

    /// Its name in file names.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}", self.program.name, self.mpi.name, self.ranks)
    }

    /// The environment over this transport.
    ///
    /// # Errors
    /// The MPI cannot take it: a sentence.
    pub fn variables(
        &self,
        transport: Transport,
        provider: &Provider,
        is_root: bool,
    ) -> Result<Variables, String> {
        let mut wanted = self.mpi.variables(is_root);
        wanted.extend(ONE_THREAD.map(|name| (name, OsString::from("1"))));
        let prefix = self.mpi.prefix().map(|prefix| prefix.join("lib"));
        // mpi4py takes the MPI whose library it finds first.
        if let Some(lib) = prefix.filter(|_| !self.program.pypi.is_empty()) {
            wanted = transport::with(wanted, vec![("LD_LIBRARY_PATH", lib.into())]);
        }
        let own = wanted.iter().find(|(name, _)| *name == PROVIDER_PATH).map(|(_, value)| value.clone());
        let more = transport.variables(self.mpi.kind, provider.folder(), own)?;
        Ok(transport::with(wanted, more))
    }

    /// The launcher's and the program's arguments.
    pub fn arguments(&self, cores: usize) -> Vec<OsString> {
        let placing = self.mpi.placing(self.ranks, cores).iter().map(OsString::from);
        let ranks = ["-n".into(), self.ranks.to_string().into()];
        let command = self.program.command.iter().map(|part| OsString::from(self.places.fill(part)));
        placing.chain(ranks).chain(command).collect()
    }

    /// The first program that it needs and that is not there. One of its own folder is made by
    /// `prepare`.
    pub fn missing(&self, path: &OsString) -> Option<String> {
        let own = self.program.command.iter().take(1).filter(|name| !name.starts_with("./"));
        let needed = own.chain(&self.program.needs);
        let mut filled = needed.map(|name| self.places.fill(name));
        filled.find(|name| !is_there(name, path))
    }
}

fn is_there(name: &str, path: &OsString) -> bool {
    match name.contains('/') {
        true => Path::new(name).is_file(),
        false => command::on_path(name, path).is_some(),
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
