//! Collective operations over a group of endpoints of one machine.
//!
//! Many processes that copy out of one process's memory contend for a lock on
//! its page tables; the algorithms here keep the number of those that do so at a
//! time where it is fastest (Chakraborty, Subramoni, Panda: Contention-Aware
//! Kernel-Assisted MPI Collectives for Multi-/Many-core Systems, CLUSTER 2017).
#![deny(unsafe_code)]

mod algorithm;
pub mod algorithms;
pub mod call;
pub mod model;
pub mod program;

pub use algorithm::{Algorithm, Kind, UnknownAlgorithm};
