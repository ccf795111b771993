//! Every call that the provider offers, against libfabric's man pages.

// A call through a table reads two pointers first, as libfabric's inline functions do.
#![allow(clippy::multiple_unsafe_ops_per_block)]

mod addresses;
mod atomics;
mod between;
mod death;
mod faults;
mod harness;
mod idle;
mod messages;
mod misuse;
mod multi;
mod naming;
mod others;
mod owner;
mod remote;
mod slots;
mod waiting;
