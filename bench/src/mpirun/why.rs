//! What `lmt mpirun --why` says.

use std::ffi::OsString;

use super::chosen::Chosen;
use super::libfabric::Libfabric;
use crate::peers::installation::Variables;

/// Why each variable is set.
const REASONS: [(&str, &str); 12] = [
    ("FI_PROVIDER_PATH", "where libfabric finds the provider, and what else it is to find"),
    ("FI_PROVIDER", "libfabric offers this provider only"),
    ("MPIR_CVAR_CH4_NETMOD", "MPICH sends over libfabric"),
    ("MPIR_CVAR_NOLOCAL", "and does so within the machine, too"),
    ("LMT_FI", "the provider offers itself without being named"),
    ("OMPI_MCA_pml", "Open MPI sends over a library that matches messages"),
    ("OMPI_MCA_mtl", "that library is libfabric"),
    ("OMPI_MCA_mtl_ofi_provider_include", "of whose providers this one is taken"),
    ("I_MPI_FABRICS", "Intel MPI sends over libfabric within the machine, too"),
    ("I_MPI_OFI_PROVIDER", "of whose providers this one is taken"),
    ("I_MPI_ROOT", "where this Intel MPI is"),
    ("LD_LIBRARY_PATH", "where its libraries are"),
];

/// The reason for a variable.
fn reason(name: &str) -> &'static str {
    let found = REASONS.iter().find(|(known, _)| *known == name);
    found.map_or("as was asked for", |(_, reason)| reason)
}

/// A line for the MPI, one for its libfabric, one for each variable, and one for what is run.
pub fn lines(
    chosen: &Chosen,
    libfabric: &Libfabric,
    variables: &Variables,
    arguments: &[OsString],
) -> Vec<String> {
    let mpi = &chosen.mpi;
    let mut lines =
        vec![format!("{} {}, {}: {}", mpi.kind.title(), mpi.version, mpi.mpiexec.display(), chosen.reason)];
    lines.push(libfabric.named());
    let line =
        |(name, value): &(&str, OsString)| format!("{name}={}: {}", value.to_string_lossy(), reason(name));
    lines.extend(variables.iter().map(line));
    let words = arguments.iter().map(|argument| format!(" {}", argument.to_string_lossy()));
    lines.push(format!("runs {}{}", mpi.mpiexec.display(), words.collect::<String>()));
    lines
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
