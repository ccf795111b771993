//! Moves messages, above all large ones, between the processes of one machine.
//!
//! [`launch`] starts a group of processes that find each other without
//! exchanging anything, and ends them together.
#![deny(unsafe_code)]

pub mod launch;
