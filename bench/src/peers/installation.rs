//! The MPIs of this machine: which there are, and how each is used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::command::{Finished, run_within};
use crate::engine::LeftOut;
use crate::interrupt::Interrupt;

/// How long an MPI may take to say its version, in seconds.
const VERSION_LIMIT_S: u64 = 10;
/// Distributions that install several MPIs side by side tell them apart so.
const SUFFIXES: [&str; 3] = ["", ".mpich", ".openmpi"];

/// Whose MPI it is: what decides how it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// MPICH, with Hydra.
    Mpich,
    /// Open MPI.
    #[value(name = "openmpi")]
    OpenMpi,
    /// Intel MPI, with a Hydra of its own.
    #[value(name = "intelmpi")]
    IntelMpi,
    /// Another one, of which only `-n` is assumed.
    #[value(skip)]
    Other,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
            Self::IntelMpi => "intelmpi",
            Self::Other => "mpi",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
            Self::IntelMpi => "Intel MPI",
            Self::Other => "an MPI",
        }
    }
}

/// One MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Its name in tables: that of its kind, with a number if there are several.
    pub name: String,
    /// Whose it is.
    pub kind: Kind,
    /// Its version, as it says.
    pub version: String,
    /// Its compiler.
    pub mpicc: PathBuf,
    /// Its launcher.
    pub mpiexec: PathBuf,
}

/// The environment of an MPI's programs: names and values.
pub type Variables = Vec<(&'static str, OsString)>;

impl Installation {
    /// The folder of which its `bin` is a part.
    pub fn prefix(&self) -> Option<&Path> {
        self.mpiexec.parent()?.parent()
    }

    /// What its compiler and launcher want in their environment.
    pub fn variables(&self, is_root: bool) -> Variables {
        let mut variables = kind_variables(self.kind, is_root);
        // Intel MPI from PyPI does not know where it is; one that is installed
        // otherwise has been told by its setvars.sh.
        let lib = self.prefix().map(|prefix| prefix.join("lib")).filter(|_| self.kind == Kind::IntelMpi);
        if let (Some(lib), Some(prefix)) = (lib, self.prefix())
            && lib.join("libfabric.so.1").exists()
        {
            variables.push(("I_MPI_ROOT", prefix.into()));
            variables.push(("LD_LIBRARY_PATH", before(&lib, std::env::var_os("LD_LIBRARY_PATH"))));
            variables.push(("FI_PROVIDER_PATH", lib.into()));
        }
        variables
    }

    /// The launcher's arguments on where so many ranks are placed.
    pub fn placing(&self, ranks: u32, cores: usize) -> &'static [&'static str] {
        placing(self.kind, ranks as usize <= cores)
    }

    /// The arguments with which the launcher starts `ranks` ranks of `program`.
    pub fn launch_arguments(&self, ranks: u32, cores: usize, program: &Path, socket: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.placing(ranks, cores).iter().map(OsString::from).collect();
        arguments.extend(["-n".into(), ranks.to_string().into(), program.into(), socket.into()]);
        arguments
    }
}

fn kind_variables(kind: Kind, is_root: bool) -> Variables {
    match kind {
        Kind::OpenMpi if is_root => vec![
            ("OMPI_ALLOW_RUN_AS_ROOT", "1".into()),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
            ("PRTE_ALLOW_RUN_AS_ROOT", "1".into()),
            ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
        ],
        _ => Vec::new(),
    }
}

/// Where the launcher is to place the ranks. They pin themselves afterwards; but
/// some MPIs choose how they wait by what the launcher was told.
fn placing(kind: Kind, each_has_a_core: bool) -> &'static [&'static str] {
    match (kind, each_has_a_core) {
        (Kind::Mpich, true) => &["-bind-to", "core"],
        (Kind::Mpich, false) => &["-bind-to", "none"],
        (Kind::OpenMpi, true) => &["--bind-to", "core"],
        (Kind::OpenMpi, false) => &["--bind-to", "none", "--oversubscribe"],
        (Kind::IntelMpi | Kind::Other, _) => &[],
    }
}

fn before(folder: &Path, others: Option<OsString>) -> OsString {
    let others = others.filter(|others| !others.is_empty());
    let mut list = folder.as_os_str().to_owned();
    if let Some(others) = others {
        list.push(":");
        list.push(others);
    }
    list
}

/// Whose MPI says this when asked for its version, and which one it is.
pub fn identify(text: &str) -> (Kind, String) {
    let kind = if text.contains("Intel(R) MPI") {
        Kind::IntelMpi
    } else if text.contains("Open MPI") || text.contains("OpenRTE") || text.contains("PRRTE") {
        Kind::OpenMpi
    } else if text.contains("HYDRA") || text.contains("MPICH") {
        Kind::Mpich
    } else {
        Kind::Other
    };
    let is_version =
        |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.');
    let version = text.split_whitespace().map(|word| word.trim_matches([',', '(', ')'])).find(is_version);
    (kind, version.unwrap_or("of unknown version").to_owned())
}

/// Looks for compilers and launchers in these folders, in their order.
pub fn candidates(folders: impl IntoIterator<Item = PathBuf>) -> Vec<(PathBuf, PathBuf)> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut known = Vec::new();
    for folder in folders {
        // Open MPI takes the folder of its launcher for its prefix, and refuses `/` for
        // `/bin`, which is often a link to `/usr/bin`.
        let folder = folder.canonicalize().unwrap_or(folder);
        for suffix in SUFFIXES {
            let [mpicc, mpiexec] = ["mpicc", "mpiexec"].map(|name| folder.join(format!("{name}{suffix}")));
            if !mpicc.is_file() || !mpiexec.is_file() {
                continue;
            }
            // One is often reached by several names.
            let real = mpiexec.canonicalize().unwrap_or_else(|_| mpiexec.clone());
            if !known.contains(&real) {
                known.push(real);
                found.push((mpicc, mpiexec));
            }
        }
    }
    found
}

/// Asks an MPI's launcher whose it is.
///
/// # Errors
/// It does not say: a sentence.
pub fn ask(mpicc: PathBuf, mpiexec: PathBuf, interrupt: &Interrupt) -> Result<Installation, String> {
    let variables = kind_variables(Kind::OpenMpi, true);
    let finished = run_within(&mpiexec, ["--version"], &variables, VERSION_LIMIT_S, interrupt)
        .and_then(Finished::successful)
        .map_err(|sentence| format!("it does not say its version: {sentence}"))?;
    Ok(described(mpicc, mpiexec, &finished.output()))
}

/// The MPI whose launcher says this of its version.
pub fn described(mpicc: PathBuf, mpiexec: PathBuf, text: &str) -> Installation {
    let (kind, version) = identify(text);
    Installation { name: kind.name().to_owned(), kind, version, mpicc, mpiexec }
}

/// The MPIs whose `mpicc` and `mpiexec` are in these folders, and those that do
/// not say what they are.
pub fn find(
    folders: impl IntoIterator<Item = PathBuf>,
    interrupt: &Interrupt,
) -> (Vec<Installation>, Vec<LeftOut>) {
    let (mut found, mut left_out) = (Vec::<Installation>::new(), Vec::new());
    for (mpicc, mpiexec) in candidates(folders) {
        let shown = mpiexec.display().to_string();
        match ask(mpicc, mpiexec, interrupt) {
            Ok(mpi) => {
                let same = found.iter().filter(|other| other.kind == mpi.kind).count();
                let name = match same {
                    0 => mpi.name,
                    same => format!("{}{}", mpi.name, same + 1),
                };
                found.push(Installation { name, ..mpi });
            }
            Err(reason) => left_out.push(LeftOut { name: shown, reason }),
        }
    }
    (found, left_out)
}

#[cfg(test)]
#[path = "installation_tests.rs"]
mod tests;
