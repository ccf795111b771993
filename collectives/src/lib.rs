//! Collective operations over a group of endpoints of one machine.
//!
//! Many processes that copy out of one process's memory contend for a lock on
//! its page tables; the algorithms here keep the number of those that do so at a
//! time where it is fastest (Chakraborty, Subramoni, Panda: Contention-Aware
//! Kernel-Assisted MPI Collectives for Multi-/Many-core Systems, CLUSTER 2017).
#![deny(unsafe_code)]

mod algorithm;
pub mod algorithms;
mod board;
pub mod call;
mod check;
mod choice;
mod create;
mod domains;
mod engine;
mod error;
mod group;
mod layout;
mod lent;
pub mod model;
mod operation;
mod patience;
pub mod program;
mod reduction;
mod running;
mod scope;
mod signature;
#[cfg(test)]
mod simulation;
mod sync;

pub use algorithm::{Algorithm, Kind, UnknownAlgorithm};
pub use algorithms::Unsuitable;
pub use call::Block;
pub use create::{MOST_RANKS, SLOT_BYTES};
pub use error::GroupError;
pub use group::Group;
pub use lent::Memory;
pub use operation::Operation;
pub use reduction::{Element, Operator, Reduction, Undefined};
pub use scope::{Pending, Scope};
