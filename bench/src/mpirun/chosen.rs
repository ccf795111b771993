//! Which MPI is taken, and which others there are.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::built::{Obstacle, without_libfabric};
use super::launchers::{Launcher, Surroundings, launcher_in};
use super::libfabric::Libfabric;
use crate::interrupt::Interrupt;
use crate::peers::installation::{Installation, Kind, ask};

/// The MPI that is taken.
#[derive(Debug)]
pub struct Chosen {
    /// Itself.
    pub mpi: Installation,
    /// Why this one.
    pub reason: String,
    /// Others that could have been meant.
    pub others: Vec<Installation>,
}

impl Chosen {
    /// How the others are named, if there are any.
    pub fn others_named(&self) -> Option<String> {
        let named = |mpi: &Installation| {
            format!("--mpi {} takes {} {}", mpi.mpiexec.display(), mpi.kind.title(), mpi.version)
        };
        let all: Vec<String> = self.others.iter().map(named).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Chooses: the one that is named, by its kind, its folder or its launcher, or the
/// first that is found.
///
/// # Errors
/// There is none, or it does not say what it is: a sentence.
pub fn choose(
    named: Option<&OsStr>,
    surroundings: &Surroundings,
    arguments: &[OsString],
) -> Result<Chosen, String> {
    let launchers = || surroundings.launchers(arguments);
    match named {
        None => first(&launchers(), |launcher| asked(&launcher.file)),
        Some(named) => match kind_of(named) {
            Some(kind) => of_kind(kind, &launchers(), |launcher| asked(&launcher.file)),
            None => in_folder(Path::new(named)),
        },
    }
}

fn kind_of(name: &OsStr) -> Option<Kind> {
    Kind::from_str(name.to_str()?, false).ok()
}

type Asked = Result<Installation, String>;

fn first(launchers: &[Launcher], asked: impl Fn(&Launcher) -> Asked) -> Result<Chosen, String> {
    let Some((first, others)) = launchers.split_first() else {
        return Err("there is no mpiexec on the PATH; pip install mpich brings one, and --mpi FOLDER names one that is elsewhere".to_owned());
    };
    let others = others.iter().filter_map(|launcher| asked(launcher).ok());
    let others: Vec<Installation> = others.filter(|mpi| mpi.kind != Kind::Other).collect();
    let mpi = asked(first)
        .map_err(|why| format!("{} cannot be used: {why}{}", first.file.display(), names(&others)))?;
    Ok(Chosen { mpi, reason: format!("its mpiexec is the first {}", first.place), others })
}

/// The others, as the end of a sentence on what would do.
fn names(others: &[Installation]) -> String {
    match others.first() {
        Some(other) => format!("; --mpi {} takes {}", other.mpiexec.display(), other.kind.title()),
        None => String::new(),
    }
}

fn of_kind(kind: Kind, launchers: &[Launcher], asked: impl Fn(&Launcher) -> Asked) -> Result<Chosen, String> {
    let mut found = launchers.iter().filter_map(|launcher| asked(launcher).ok());
    let mpi = found.find(|mpi| mpi.kind == kind).ok_or_else(|| {
        format!("there is no {} on the PATH; --mpi FOLDER names one that is elsewhere", kind.title())
    })?;
    Ok(Chosen { mpi, reason: format!("--mpi {} names its kind", kind.name()), others: Vec::new() })
}

fn in_folder(place: &Path) -> Result<Chosen, String> {
    let shown = place.display();
    let launcher = launcher_in(place).ok_or_else(|| {
        format!("--mpi {shown} is no folder with an mpiexec in it or in its bin; name one, or mpich, openmpi or intelmpi")
    })?;
    let mpi = asked(&launcher).map_err(|why| format!("--mpi {shown} cannot be used: {why}"))?;
    Ok(Chosen { mpi, reason: format!("--mpi {shown} names it"), others: Vec::new() })
}

/// Asks a launcher whose it is. Signals end this process as ever: it becomes another program.
///
/// # Errors
/// It does not say: a sentence.
pub fn asked(launcher: &Path) -> Result<Installation, String> {
    let name = launcher.file_name().unwrap_or_default().to_string_lossy().replace("mpiexec", "mpicc");
    let mpicc: PathBuf = launcher.with_file_name(name);
    ask(mpicc, launcher.to_owned(), &Interrupt::never())
}

/// Why this MPI surely cannot take the provider, if that is so.
pub fn obstacle(mpi: &Installation) -> Option<Obstacle> {
    if mpi.kind == Kind::Other {
        return Some(Obstacle {
            reason: "it is neither MPICH nor Open MPI nor Intel MPI".to_owned(),
            remedy: "one of these, which --mpi names",
        });
    }
    without_libfabric(mpi).or_else(|| Libfabric::of(mpi).obstacle())
}

#[cfg(test)]
#[path = "chosen_tests.rs"]
mod tests;
