//! The tests that every mechanism of lmt runs, and what they run in.
//!
//! [`group`] makes a test out of real processes: the ranks of a group, killed
//! and left behind by nobody.
#![forbid(unsafe_code)]

pub mod group;
