//! An MPI that is compared with.

use super::installation::{Installation, Variables};
use super::result::Role;

/// An MPI with the benchmark built for it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name in tables.
    pub name: String,
    /// Whether it is what others are compared with, or carried by lmt itself.
    pub role: Role,
    /// Which.
    pub mpi: Installation,
    /// The benchmark.
    pub program: std::path::PathBuf,
    /// What it wants in its environment.
    pub variables: Variables,
}
