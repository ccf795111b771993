//! Whether the MPI on the PATH can use the libfabric provider
//! (`docs/libfabric.md`), and whether it would.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lmt::checkup::{Finding, State};

use super::sys::Library;
use crate::interrupt::Interrupt;
use crate::peers::command::run_within;
use crate::peers::installation::{Installation, Kind, ask};
use crate::peers::provider::Provider;
use crate::peers::transport::{PROVIDER_PATH, Transport};

/// The oldest libfabric whose providers' interface ours is.
const OLDEST: (u32, u32) = (1, 17);
/// Where an MPI's libfabric may be, below the MPI's folder: as MPICH, Open MPI and
/// Intel MPI from PyPI have it, and Intel's own packages.
const PLACES: [&str; 6] =
    ["lib", "lib64", "lib/mpich", "lib/openmpi", "opt/mpi/libfabric/lib", "libfabric/lib"];
/// The name of libfabric's library, of version 1 and 2.
const LIBFABRIC: &str = "libfabric.so.1";
/// How long an MPI may take to say what it is built of, in seconds.
const LIMIT_S: u64 = 10;

pub(super) fn findings() -> Vec<Finding> {
    let provider = Provider::find(None);
    let found = first_on_path(&std::env::var_os("PATH").unwrap_or_default());
    let mut findings = vec![of_mpi(found.as_ref())];
    if let Some(Ok(mpi)) = &found {
        findings.push(of_libfabric(mpi));
    }
    findings.push(of_provider(&provider));
    if let (Some(Ok(mpi)), Ok(provider)) = (&found, &provider) {
        findings.push(of_environment(mpi, provider, |name| std::env::var_os(name)));
    }
    findings
}

/// The launcher that `mpiexec` means in this shell, and whose it is.
fn first_on_path(path: &OsStr) -> Option<Result<Installation, String>> {
    let folder = std::env::split_paths(path).find(|folder| folder.join("mpiexec").is_file())?;
    Some(ask(folder.join("mpicc"), folder.join("mpiexec"), &Interrupt::never()))
}

fn of_mpi(found: Option<&Result<Installation, String>>) -> Finding {
    let name = "MPI";
    match found {
        None => Finding::new(name, State::Missing, "there is no mpiexec on the PATH"),
        Some(Err(why)) => Finding::new(name, State::Unknown, why.clone()),
        Some(Ok(mpi)) if mpi.kind == Kind::Other => Finding::new(
            name,
            State::Unknown,
            format!("{} is neither of MPICH nor of Open MPI nor of Intel MPI", mpi.mpiexec.display()),
        ),
        Some(Ok(mpi)) => Finding::new(
            name,
            State::Good,
            format!("{} {}, {}", mpi.kind.title(), mpi.version, mpi.mpiexec.display()),
        ),
    }
}

/// Whether it speaks libfabric, and which one.
fn of_libfabric(mpi: &Installation) -> Finding {
    let name = "libfabric of the MPI";
    if let Some((meaning, fix)) = without_libfabric(mpi) {
        return Finding::new(name, State::Blocked, meaning).fixed_by(fix);
    }
    let prefix = mpi.prefix().unwrap_or(Path::new("/"));
    let files = PLACES.iter().map(|place| prefix.join(place).join(LIBFABRIC)).filter(|file| file.is_file());
    // Distributions' MPIs use the one of the system.
    let file = files.into_iter().next().unwrap_or_else(|| PathBuf::from(LIBFABRIC));
    let loaded = Library::load(&file).map(|library| library.libfabric_version());
    of_version(name, &file, loaded)
}

fn of_version(name: &str, file: &Path, loaded: Result<Option<(u32, u32)>, String>) -> Finding {
    let file = file.display();
    match loaded {
        Ok(Some((major, minor))) if (major, minor) >= OLDEST => {
            Finding::new(name, State::Good, format!("{major}.{minor}, {file}"))
        }
        Ok(Some((major, minor))) => Finding::new(
            name,
            State::Blocked,
            format!("{file} is {major}.{minor}, and the provider is written for {}.{}", OLDEST.0, OLDEST.1),
        )
        .fixed_by("an MPI with a newer libfabric"),
        Ok(None) => Finding::new(name, State::Unknown, format!("{file} does not say its version")),
        Err(why) => Finding::new(name, State::Unknown, format!("it cannot be loaded here: {why}")),
    }
}

/// What an MPI without libfabric says, and what to do.
fn without_libfabric(mpi: &Installation) -> Option<(String, &'static str)> {
    let said = |program: &str, arguments: &[&str]| {
        let program = mpi.mpiexec.with_file_name(program);
        let none: [(&str, &str); 0] = [];
        run_within(&program, arguments, &none, LIMIT_S, &Interrupt::never()).ok().map(|ended| ended.output())
    };
    match mpi.kind {
        Kind::Mpich => {
            let text = said("mpichversion", &[])?;
            let device = device_without_libfabric(&text)?;
            Some((
                format!("this MPICH is built for {device}"),
                "an MPICH that is built --with-device=ch4:ofi",
            ))
        }
        Kind::OpenMpi => {
            let text = said("ompi_info", &["--parsable"])?;
            let lacks = text.contains("mca:mtl:") && !text.contains("mca:mtl:ofi:");
            lacks.then(|| {
                (
                    "this Open MPI is built without the component mtl ofi".to_owned(),
                    "an Open MPI that is built --with-ofi",
                )
            })
        }
        Kind::IntelMpi | Kind::Other => None,
    }
}

/// The device that `mpichversion` tells of, unless libfabric (ofi) is in it.
fn device_without_libfabric(text: &str) -> Option<&str> {
    let device = text.lines().find_map(|line| line.strip_prefix("MPICH Device:"))?.trim();
    (!device.contains("ofi")).then_some(device)
}

fn of_provider(provider: &Result<Provider, String>) -> Finding {
    let name = "libfabric provider";
    let provider = match provider {
        Ok(provider) => provider,
        Err(why) => return Finding::new(name, State::Missing, why.clone()).fixed_by("make fi"),
    };
    let file = provider.file().display();
    match Library::load(provider.file()).map(|library| library.has(c"fi_prov_ini")) {
        Ok(true) => Finding::new(name, State::Good, format!("{file} can be loaded")),
        Ok(false) => {
            Finding::new(name, State::Blocked, format!("{file} is no provider: it lacks fi_prov_ini"))
                .fixed_by("make fi")
        }
        Err(why) => Finding::new(name, State::Blocked, format!("it cannot be loaded: {why}"))
            .fixed_by("install the library that is missing, or make fi on this machine"),
    }
}

/// Whether programs that are started from here would take it.
fn of_environment(
    mpi: &Installation,
    provider: &Provider,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Finding {
    let name = "messages of MPI programs";
    let wanted = match Transport::Lmt.variables(mpi.kind, provider.folder(), None) {
        Ok(wanted) => wanted,
        Err(why) => return Finding::new(name, State::Unknown, why),
    };
    let is_set = |(name, value): &&(&str, OsString)| match *name {
        // Others may stand beside ours.
        PROVIDER_PATH => {
            variable(name).is_some_and(|set| std::env::split_paths(&set).any(|folder| folder == *value))
        }
        name => variable(name).as_ref() == Some(value),
    };
    let lacking: Vec<&str> = wanted.iter().filter(|one| !is_set(one)).map(|(name, _)| *name).collect();
    match lacking.is_empty() {
        true => {
            Finding::new(name, State::Good, "this environment sends them through lmt; LMT_STATS shows it")
        }
        false => Finding::new(
            name,
            State::Limited,
            format!("they take the MPI's own transport: this environment lacks {}", lacking.join(", ")),
        )
        .fixed_by(format!("eval \"$(lmt mpirun-env {})\"", mpi.kind.name())),
    }
}

#[cfg(test)]
#[path = "mpi_tests.rs"]
mod tests;
