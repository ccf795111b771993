//! Real MPIs, which use the provider as it is. `MPI_FOLDERS` names their folders,
//! in which bin/mpicc and bin/mpiexec are, with colons; without it this is skipped.
//! `make test-mpi` fetches them and runs all of this.

mod benchmarks;
mod death;
mod host;
mod hosts;
mod installation;
mod oversubscribed;
mod programs;
mod python;
#[path = "../scratch/mod.rs"]
mod scratch;
mod statistics;
