//! Collective operations over a group of endpoints of one machine.
//!
//! Many processes that copy out of one process's memory contend for a lock on
//! its page tables; the algorithms here keep the number of those that do so at a
//! time where it is fastest (Chakraborty, Subramoni, Panda: Contention-Aware
//! Kernel-Assisted MPI Collectives for Multi-/Many-core Systems, CLUSTER 2017).
#![deny(unsafe_code)]

#[cfg_attr(loom, allow(dead_code))] // Codes are for signatures.
mod algorithm;
#[cfg(not(loom))]
pub mod algorithms;
#[cfg(not(loom))]
mod backoff;
#[cfg(not(loom))]
mod board;
pub mod call;
#[cfg(not(loom))]
mod calls;
#[cfg(not(loom))]
mod check;
#[cfg(not(loom))]
mod choice;
#[cfg(not(loom))]
mod copies;
#[cfg(not(loom))]
mod create;
#[cfg(not(loom))]
mod domains;
#[cfg(not(loom))]
mod engine;
mod entry_barrier;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod explain;
#[cfg(not(loom))]
mod group;
#[cfg_attr(loom, allow(dead_code))] // Slots are the mapping's.
mod layout;
#[cfg(not(loom))]
mod lent;
#[cfg(not(loom))]
pub mod model;
#[cfg(not(loom))]
mod operation;
#[cfg(not(loom))]
mod others;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
mod plan;
#[cfg(not(loom))]
pub mod program;
#[cfg(not(loom))]
mod reduction;
#[cfg(not(loom))]
mod ring;
#[cfg(not(loom))]
mod rules;
#[cfg(not(loom))]
mod running;
#[cfg(not(loom))]
mod scope;
#[cfg(not(loom))]
mod signature;
#[cfg(all(test, not(loom)))]
mod simulation;
mod sync;
#[cfg_attr(loom, allow(dead_code))] // The head is written before anybody else is there.
mod words;

pub use algorithm::{Algorithm, Kind, UnknownAlgorithm};
#[cfg(not(loom))]
pub use algorithms::Unsuitable;
pub use call::Block;
#[cfg(not(loom))]
pub use copies::Copies;
#[cfg(not(loom))]
pub use create::{MAX_RANKS, slot_bytes};
#[cfg(not(loom))]
pub use error::GroupError;
#[cfg(not(loom))]
pub use group::Group;
#[cfg(not(loom))]
pub use lent::Memory;
#[cfg(not(loom))]
pub use operation::Operation;
#[cfg(not(loom))]
pub use reduction::{Element, Operator, Reduction, Undefined};
#[cfg(not(loom))]
pub use rules::check_rule;
#[cfg(not(loom))]
pub use scope::{Pending, Scope};
