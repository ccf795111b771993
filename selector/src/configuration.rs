//! Everything that is configured, with where each part comes from.

use std::collections::BTreeMap;

use lmt_core::config::Config;
use lmt_core::config_key::Value;
use lmt_core::selection::Source;

use crate::collectives::CollectiveRule;
use crate::config::ConfigFailure;
use crate::contention::Parameters;
use crate::rules::{Layer, SingleCopy};

/// How DMAmin is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DmaMinSetting {
    /// From the cores that share the cache.
    #[default]
    ByCores,
    /// From the processes that are known to use it.
    ByProcesses,
    /// It is given.
    Bytes(u64),
}

/// What is set of the selector itself (`[selection]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SelectionSettings {
    /// How DMAmin is found.
    pub dma_min: DmaMinSetting,
    /// How many messages of one process may be read at once where no rule says
    /// otherwise.
    pub max_readers: u32,
    /// How fast single copies are taken to be; `None` where a look says it.
    pub single_copy: Option<SingleCopy>,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        Self { dma_min: DmaMinSetting::default(), max_readers: 8, single_copy: None }
    }
}

/// Something of a mechanism that is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MechanismSetting {
    /// The mechanism or family.
    pub mechanism: String,
    /// The key, one of [`lmt_core::mechanism::Settings::keys`].
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Who set it.
    pub source: Source,
}

/// Everything that is configured.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The endpoint's settings.
    pub config: Config,
    /// Who set each key of `config` and of the selection that is not as built
    /// in.
    pub sources: BTreeMap<&'static str, Source>,
    /// The selector's settings.
    pub selection: SelectionSettings,
    /// What is set of mechanisms; each key once.
    pub mechanisms: Vec<MechanismSetting>,
    /// What single copy costs here, where a file tells it: a calibration does.
    pub contention: Option<Parameters>,
    /// Rules, in order of authority.
    pub layers: Vec<Layer>,
    /// Rules of collective operations, in order of authority: the environment, the
    /// user's files, a calibration; within each as they stand there.
    pub collectives: Vec<CollectiveRule>,
    /// What is wrong with such rules, where it was left to those who make groups to
    /// refuse them ([`Known::collectives`](crate::config::Known::collectives)).
    pub collective_failure: Option<ConfigFailure>,
    /// What a user should know though nothing is wrong, a sentence each: for
    /// instance that a calibration was made on another machine.
    pub remarks: Vec<String>,
}
