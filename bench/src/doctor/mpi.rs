//! Whether the MPI on the PATH can use the libfabric provider
//! (`docs/libfabric.md`), and whether it would.

use std::ffi::{OsStr, OsString};

use lmt::diagnostic::{Finding, State};

use super::sys::Library;
use crate::interrupt::Interrupt;
use crate::mpirun::built::{Obstacle, without_libfabric};
use crate::mpirun::libfabric::Libfabric;
use crate::peers::command::on_path;
use crate::peers::installation::{Installation, Kind, ask};
use crate::peers::provider::Provider;
use crate::peers::transport::{PROVIDER_PATH, Transport};

pub(super) fn findings() -> Vec<Finding> {
    let provider = Provider::find(None);
    let found = first_on_path(&std::env::var_os("PATH").unwrap_or_default());
    let mut findings = vec![of_mpi(found.as_ref())];
    let mpi = found.and_then(Result::ok);
    let obstacle = mpi.as_ref().and_then(without_libfabric);
    if let Some(mpi) = &mpi {
        findings.push(of_libfabric(mpi, obstacle.as_ref()));
    }
    findings.push(of_provider(&provider));
    if let (Some(mpi), Ok(provider), None) = (&mpi, &provider, &obstacle) {
        findings.push(of_environment(mpi, provider, |name| std::env::var_os(name)));
    }
    findings
}

/// The launcher that `mpiexec` means in this shell, and whose it is.
fn first_on_path(path: &OsStr) -> Option<Result<Installation, String>> {
    let mpiexec = on_path("mpiexec", path)?;
    Some(ask(mpiexec.with_file_name("mpicc"), mpiexec, &Interrupt::never()))
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
fn of_libfabric(mpi: &Installation, obstacle: Option<&Obstacle>) -> Finding {
    match obstacle {
        Some(obstacle) => blocked(obstacle),
        None => of_version(&Libfabric::of(mpi)),
    }
}

const LIBFABRIC: &str = "libfabric of the MPI";

fn blocked(obstacle: &Obstacle) -> Finding {
    Finding::new(LIBFABRIC, State::Blocked, obstacle.reason.clone()).fixed_by(obstacle.remedy)
}

fn of_version(libfabric: &Libfabric) -> Finding {
    if let Some(obstacle) = libfabric.obstacle() {
        return blocked(&obstacle);
    }
    let is_known = libfabric.is_certain && matches!(libfabric.version, Ok(Some(_)));
    Finding::new(LIBFABRIC, if is_known { State::Good } else { State::Unknown }, libfabric.named())
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
