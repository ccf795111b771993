//! `lmt mpirun-env`: the environment in which an MPI's programs run over lmt.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::console::{complain, print};
use crate::error::BenchError;
use crate::mpirun::chosen::{asked, obstacle};
use crate::mpirun::launchers::Surroundings;
use crate::mpirun::libfabric::Libfabric;
use crate::peers::installation::{Installation, Kind, Variables};
use crate::peers::provider::Provider;
use crate::peers::transport::{PROVIDER_PATH, Transport, linked, with};

/// `lmt mpirun-env`.
#[derive(Debug, Args)]
pub struct MpirunEnvArgs {
    /// Whose MPI it is.
    #[arg(value_enum)]
    pub mpi: Kind,
    /// The provider's library, a file that ends in -fi.so [default: liblmt-fi.so beside this command
    /// or in ../lib].
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,
    /// Goes beyond one machine: lmt within each, this other provider of libfabric between them,
    /// with the domain that it is to use, such as tcp:eth0 (openmpi only).
    #[arg(long, value_name = "PROVIDER:DOMAIN", value_parser = network)]
    pub link: Option<String>,
}

/// A provider and its domain. Without a domain lnx takes all that there are, and that
/// of libfabric 2.5 crashes then, over libfabric's shm as well.
fn network(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((provider, domain))
            if ![provider, domain].iter().any(|part| part.is_empty() || part.contains('+')) =>
        {
            Ok(text.to_owned())
        }
        _ => Err("it is to be a provider of libfabric and its domain, such as tcp:eth0".to_owned()),
    }
}

/// `lmt mpirun-env`: lines for a shell.
///
/// # Errors
/// The provider is missing, or the output cannot be written.
pub fn run(args: &MpirunEnvArgs) -> Result<(), BenchError> {
    let kind = args.mpi;
    if args.link.is_some() && kind != Kind::OpenMpi {
        return Err(BenchError::Usage(
            "--link is for openmpi: MPICH cannot use libfabric's lnx, and Intel MPI's libfabric has none"
                .into(),
        ));
    }
    let provider = Provider::find(args.provider.as_deref()).map_err(BenchError::Failure)?;
    let found = installed(kind);
    // A shell that evaluates the lines sees nothing but standard error.
    match &found {
        Some(mpi) => obstacle(mpi).iter().for_each(|obstacle| complain(&obstacle.sentence(mpi))),
        None => complain(&format!(
            "no {} that works is found here; one from elsewhere may want more than these variables",
            kind.title()
        )),
    }
    let variable = |name: &str| std::env::var_os(name);
    let mut variables = variables(kind, found.as_ref(), &provider, variable)
        .map_err(|why| BenchError::Failure(why.into()))?;
    if let Some(network) = &args.link {
        variables = with(variables, linked(network));
    }
    let built_with = found.as_ref().map_or_else(String::new, built_with);
    print(&(shell(kind, &variables) + &built_with + node_remark(kind) + hosts_remark(args.link.is_some())))
}

/// Which MPI the variables are for, and its libfabric.
fn built_with(mpi: &Installation) -> String {
    let (file, libfabric) = (mpi.mpiexec.display(), Libfabric::of(mpi).named());
    let text = format!("{} {}, {file}: {libfabric}", mpi.kind.title(), mpi.version);
    format!("# {}\n", text.replace('\n', " "))
}

/// What a program that looks for the ranks of its machine finds. MPICH has no setting by which it
/// knows its node and sends over libfabric within it.
const fn node_remark(kind: Kind) -> &'static str {
    match kind {
        Kind::Mpich => {
            "# With MPIR_CVAR_NOLOCAL=1 each rank is a node of its own: MPI_Comm_split_type with MPI_COMM_TYPE_SHARED\n\
             # gives groups of one, and MPI_Win_allocate_shared of more ranks aborts (docs/libfabric.md).\n"
        }
        Kind::OpenMpi | Kind::IntelMpi | Kind::Other => "",
    }
}

/// How the variables come to other machines: mpiexec hands on those of Open MPI only.
const fn hosts_remark(is_linked: bool) -> &'static str {
    if !is_linked {
        return "";
    }
    "# On several machines: mpiexec -x FI_PROVIDER_PATH -x FI_LNX_PROV_LINKS --host a:2,b:2 -n 4 ./program\n"
}

/// The first MPI of this kind on the PATH, or in this environment.
fn installed(kind: Kind) -> Option<Installation> {
    let launchers = Surroundings::here().launchers(&[]);
    launchers.iter().filter_map(|launcher| asked(&launcher.file).ok()).find(|mpi| mpi.kind == kind)
}

/// What an MPI wants, and what has it take the provider.
pub(crate) fn variables(
    kind: Kind,
    found: Option<&Installation>,
    provider: &Provider,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Variables, &'static str> {
    let wanted = found.map_or_else(Vec::new, |mpi| mpi.variables(false));
    let own = wanted.iter().find(|(name, _)| *name == PROVIDER_PATH).map(|(_, value)| value.clone());
    // Other providers stay within reach.
    let others = own.or_else(|| variable(PROVIDER_PATH));
    Ok(with(wanted, Transport::Lmt.variables(kind, provider.folder(), others)?))
}

/// Lines that a shell (POSIX sh) takes, remarks last: also without quotes around
/// what `eval` is given all variables are set.
fn shell(kind: Kind, variables: &Variables) -> String {
    let line =
        |(name, value): &(&str, OsString)| format!("export {name}={}\n", quoted(&value.to_string_lossy()));
    let mut text: String = variables.iter().map(line).collect();
    text += &format!(
        "# eval \"$(lmt mpirun-env {})\"; mpiexec -n 2 ./program\n\
         # LMT_STATS=/path/of/a/file beside it, then lmt doctor --stats /path/of/a/file, shows which paths the bytes took.\n",
        kind.name()
    );
    text
}

/// In single quotes if a shell would take it for more than a word.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,+=@%".contains(letter);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
#[path = "mpirun_env_tests.rs"]
mod tests;
