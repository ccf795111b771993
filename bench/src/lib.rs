//! The `lmt` command's benchmarks: what they measure, how they are run, and
//! how their results are shown.
#![deny(unsafe_code)]

pub mod apps;
pub mod args;
mod asked;
pub mod cache;
mod choice;
pub mod cli;
pub mod collectives;
pub mod commands;
pub mod compare;
pub mod config;
pub mod console;
pub mod contention;
pub mod doctor;
pub mod ending;
pub mod engine;
pub mod environment;
pub mod error;
pub mod explain;
pub mod group;
pub mod interrupt;
pub mod job;
pub mod limits;
pub mod measures;
pub mod memory;
pub mod model;
pub mod mpirun;
pub mod mpirun_env;
pub mod options;
pub mod output;
mod own_folder;
pub mod pages;
pub mod patterns;
pub mod peers;
pub mod processes;
pub mod programs;
pub mod progress;
mod rank_side;
pub mod report;
pub mod runner;
mod showing;
pub mod sizes;
pub mod statistics;
pub mod stats;
pub mod tune;
pub mod warm_up;
pub mod whole_file;

pub use lmt_selector::nearest;
