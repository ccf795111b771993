//! The tests that every mechanism of lmt runs, and what they run in.
//!
//! [`group`] makes a test out of real processes: the ranks of a group, killed
//! and left behind by nobody. [`suite!`] is all that a mechanism must keep,
//! tested on such groups; a mechanism's crate says one line:
//!
//! ```ignore
//! lmt_conformance::suite!(mine, my_mechanism::Mine::new());
//! ```
//!
//! [`denials`] takes from processes what a kernel may deny them. [`require`] decides whether a test may be skipped on this machine.
#![deny(unsafe_code)]

pub mod denials;
pub mod group;
pub mod mapping;
pub mod mechanisms;
pub mod quiet;
pub mod require;
mod started;
pub mod suite;
