//! A provider for libfabric named `lmt`: MPICH, Open MPI and Intel MPI, and
//! whatever else is written for libfabric, send their messages through [`lmt`]
//! with it, unmodified.
//!
//! The shared library (`liblmt-fi.so`) exports one function, [`fi_prov_ini`],
//! which libfabric calls when it finds the library in `FI_PROVIDER_PATH`. It is
//! chosen only by name: `FI_PROVIDER=lmt`, or `LMT_FI=1`.
//!
//! - `abi`: libfabric's structures, as its headers have them.
//! - `border`, `lend`, `info`, `atomic::memory`: pointers become values and objects;
//!   the only files beside `entry` in which something is unsafe.
//! - `atomic`: which atomic operations there are, and what they do.
//! - `entry`: one file for each kind of object, with the functions that C calls.
//!   They check what they are handed and call `state`.
//! - `offer`: what is offered for what is asked for.
//! - `state`: a domain without any C: endpoints, queues, counters, addresses.
#![deny(unsafe_code)]

pub mod abi;
mod atomic;
mod border;
mod choice;
mod entry;
mod info;
mod lend;
mod log;
mod naming;
mod offer;
mod refuse;
mod state;
mod touch;
mod wait;

pub use entry::provider::fi_prov_ini;

/// The provider's name.
pub const NAME: &str = "lmt";
