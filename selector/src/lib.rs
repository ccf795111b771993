//! Which mechanism a message takes, and why.
//!
//! It decides and moves no byte: it knows lmt-core's vocabulary and no
//! mechanism by name.
#![deny(unsafe_code)]

pub mod calibration;
pub mod collectives;
pub mod config;
pub mod configuration;
pub mod contention;
pub mod dma_min;
pub mod nearest;
pub mod policy;
pub mod rules;
pub mod size;
pub mod topology;
