//! What carries an MPI's messages, and the variables that choose it: the one place
//! that knows them. For MPICH and Open MPI they are in `docs/libfabric.md`, for
//! libfabric in fabric(7).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::installation::{Kind, Variables};

/// The folders in which libfabric looks for providers.
pub const PROVIDER_PATH: &str = "FI_PROVIDER_PATH";

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The provider `lmt`.
    Lmt,
    /// libfabric's own provider for shared memory, `shm`.
    Shm,
    /// What the MPI takes when nothing is said.
    Default,
}

/// All of them, ours first.
pub const ALL: [Transport; 3] = [Transport::Lmt, Transport::Shm, Transport::Default];

impl Transport {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lmt => "lmt",
            Self::Shm => "shm",
            Self::Default => "default",
        }
    }

    /// The variables, beside those that the MPI wants anyway, that have an MPI of
    /// this kind take it. `folder` is the one of our provider, `others` where the
    /// MPI's libfabric finds its own, if it has to be told.
    ///
    /// # Errors
    /// One sentence on why it cannot be had.
    pub fn variables(
        self,
        kind: Kind,
        folder: &Path,
        others: Option<OsString>,
    ) -> Result<Variables, &'static str> {
        let by_name = self.choice(kind)?;
        let mut variables: Variables = by_name.iter().map(|&(name, value)| (name, value.into())).collect();
        if self == Self::Lmt {
            // Folders of others come behind: Intel MPI asks for one of its own, too.
            let others = others.iter().flat_map(std::env::split_paths).filter(|other| other != folder);
            let all: Vec<PathBuf> = std::iter::once(folder.to_owned()).chain(others).collect();
            // Ours has no colon, and the others come from such a list.
            variables.insert(0, (PROVIDER_PATH, std::env::join_paths(all).unwrap_or_else(|_| folder.into())));
        }
        Ok(variables)
    }

    fn choice(self, kind: Kind) -> Result<&'static [(&'static str, &'static str)], &'static str> {
        match (self, kind) {
            (Self::Default, _) => Ok(&[]),
            (Self::Lmt, Kind::Mpich) => {
                Ok(&[("FI_PROVIDER", "lmt"), ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")])
            }
            (Self::Shm, Kind::Mpich) => {
                Ok(&[("FI_PROVIDER", "shm"), ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")])
            }
            (Self::Lmt, Kind::OpenMpi) => Ok(&[
                ("LMT_FI", "1"),
                ("OMPI_MCA_pml", "cm"),
                ("OMPI_MCA_mtl", "ofi"),
                ("OMPI_MCA_mtl_ofi_provider_include", "lmt"),
            ]),
            (Self::Shm, Kind::OpenMpi) => {
                Err("Open MPI cannot use it: it wants FI_REMOTE_COMM, which libfabric's shm does not offer")
            }
            (Self::Lmt, Kind::IntelMpi) => Ok(&[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "lmt")]),
            (Self::Shm, Kind::IntelMpi) => Ok(&[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "shm")]),
            (_, Kind::Other) => {
                Err("it is neither MPICH nor Open MPI nor Intel MPI, and how it chooses is not known")
            }
        }
    }
}

/// What has Open MPI send through lmt on each machine and through another provider of
/// its libfabric, such as `tcp:eth0`, between machines; beside what has it take lmt.
/// libfabric's provider lnx joins the two (fi_lnx(7)): lmt comes first, so that it is
/// the one for the machine.
pub fn linked(network: &str) -> Variables {
    vec![
        ("FI_LNX_PROV_LINKS", format!("lmt+{network}").into()),
        ("OMPI_MCA_mtl_ofi_provider_include", "lnx".into()),
        ("OMPI_MCA_mtl_ofi_av", "table".into()),
    ]
}

/// The names of all variables by which any MPI chooses. One that is set already
/// chooses for every transport.
pub fn choosing() -> Vec<&'static str> {
    let mut names = Vec::new();
    for kind in [Kind::Mpich, Kind::OpenMpi, Kind::IntelMpi] {
        for transport in ALL {
            names.extend(transport.choice(kind).unwrap_or_default().iter().map(|(name, _)| *name));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Adds variables to others; of two values of one the later holds.
pub fn with(mut variables: Variables, more: Variables) -> Variables {
    variables.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    variables.extend(more);
    variables
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
