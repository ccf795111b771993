//! The launchers of MPIs that can be meant, and which one is taken.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::peers::command::on_path;

/// The names of launchers: the one that everybody types, then those by which distributions
/// tell several MPIs apart.
const NAMES: [&str; 3] = ["mpiexec", "mpiexec.mpich", "mpiexec.openmpi"];

/// The launcher of an MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Its file.
    pub file: PathBuf,
    /// Where it was found, for a sentence.
    pub place: &'static str,
}

/// Where the user's shell and this command are.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The variable PATH.
    pub path: OsString,
    /// The virtual environment that is active (VIRTUAL_ENV).
    pub active: Option<PathBuf>,
    /// The folder of this command.
    pub own_folder: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Self {
        let own = std::env::current_exe().ok();
        Self {
            path: std::env::var_os("PATH").unwrap_or_default(),
            active: std::env::var_os("VIRTUAL_ENV").map(PathBuf::from),
            own_folder: own.and_then(|file| file.parent().map(Path::to_owned)),
        }
    }

    /// The folders in which a launcher is looked for, the first to be preferred: the virtual
    /// environment of the Python that is to run, since its mpi4py is built for the MPI beside
    /// it; the PATH; the active virtual environment; and this command's own folder.
    fn folders(&self, arguments: &[OsString]) -> Vec<(PathBuf, &'static str)> {
        let python = arguments.iter().find_map(|argument| self.folder_of_python(argument));
        let active = self.active.as_ref().map(|folder| folder.join("bin"));
        let placed = |folders: Vec<PathBuf>, place| folders.into_iter().map(move |folder| (folder, place));
        placed(python.into_iter().collect(), "beside the Python that is to run")
            .chain(placed(std::env::split_paths(&self.path).collect(), "on the PATH"))
            .chain(placed(active.into_iter().collect(), "in the active virtual environment"))
            .chain(placed(self.own_folder.iter().cloned().collect(), "beside this command"))
            .collect()
    }

    /// The folder of a Python in an environment of its own.
    fn folder_of_python(&self, argument: &OsStr) -> Option<PathBuf> {
        let program = Path::new(argument);
        let name = program.file_name()?.to_string_lossy();
        let version = name.strip_prefix("python")?;
        if !version.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
            return None;
        }
        let file = match program.parent().is_some_and(|parent| parent != Path::new("")) {
            true => program.to_owned(),
            false => on_path(program, &self.path)?,
        };
        let folder = file.parent()?;
        let prefix = folder.parent()?;
        let is_environment = prefix.join("pyvenv.cfg").is_file() || prefix.join("conda-meta").is_dir();
        is_environment.then(|| folder.to_owned())
    }

    /// The launchers there, each once, in the order in which they are preferred.
    pub fn launchers(&self, arguments: &[OsString]) -> Vec<Launcher> {
        let (mut found, mut known) = (Vec::new(), Vec::new());
        for (folder, place) in self.folders(arguments) {
            for file in launchers_of(folder) {
                // One is often reached by several names.
                let real = file.canonicalize().unwrap_or_else(|_| file.clone());
                if !known.contains(&real) {
                    known.push(real);
                    found.push(Launcher { file, place });
                }
            }
        }
        found
    }
}

fn launchers_of(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    // Open MPI takes the folder of its launcher for its prefix, and refuses `/` for
    // `/bin`, which is often a link to `/usr/bin`.
    let folder = folder.canonicalize().unwrap_or(folder);
    NAMES.into_iter().map(move |name| folder.join(name)).filter(|file| file.is_file())
}

/// The launcher of the MPI in this folder, or the one that this file is.
pub fn launcher_in(place: &Path) -> Option<PathBuf> {
    let place = std::path::absolute(place).ok()?;
    match place.is_file() {
        true => Some(place),
        false => [place.join("bin"), place].into_iter().flat_map(launchers_of).next(),
    }
}

#[cfg(test)]
#[path = "launchers_tests.rs"]
mod tests;
