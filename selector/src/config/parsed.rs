//! What is known of a file that has been read.

use lmt_core::config_key::Value;

use super::problem::Problem;
use crate::collectives::CollectiveRule;
use crate::configuration::DmaMinSetting;
use crate::contention::Parameters;
use crate::rules::{Layer, SingleCopy};

/// Something of a mechanism that a file sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MechanismEntry {
    /// The mechanism or family, as the file names it.
    pub mechanism: String,
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
    /// Where in the file, from 1.
    pub line: u32,
}

/// Where a calibration comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Provenance {
    /// The fingerprint of the machine on which it was made.
    pub machine: Option<String>,
    /// Whether everything was measured.
    pub complete: bool,
    /// All that is told, in the file's order of names: date, kernel and so on.
    pub told: Vec<(&'static str, String)>,
}

/// One file without anything wrong in it.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What it sets of the endpoint: key, value and line.
    pub endpoint: Vec<(&'static str, Value, u32)>,
    /// How it says DMAmin is found, and the line.
    pub dma_min: Option<(DmaMinSetting, u32)>,
    /// The cap on readers, and the line.
    pub max_readers: Option<(u32, u32)>,
    /// How fast single copies are, `None` where a look says so, and the line.
    pub single_copy: Option<(Option<SingleCopy>, u32)>,
    /// What it sets of mechanisms.
    pub mechanisms: Vec<MechanismEntry>,
    /// Its rules, ranges and figures.
    pub layer: Layer,
    /// What it tells of itself, if it is a calibration.
    pub calibration: Option<Provenance>,
    /// What single copy costs, and the line.
    pub contention: Option<(Parameters, u32)>,
    /// Its rules of collective operations.
    pub collectives: Vec<CollectiveRule>,
    /// What is wrong with these, where that stops only those who make groups.
    pub collective_problems: Vec<Problem>,
}
