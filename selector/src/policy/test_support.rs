//! Mechanisms, machines and rules for the tests of the policy.

use std::path::PathBuf;
use std::sync::Arc;

use lmt_core::config::Config;
use lmt_core::cpu_set::CpuSet;
use lmt_core::mechanism::{Abilities, Direction, MechanismStatus, Model, Unavailable};
use lmt_core::selection::{
    Decisions, Explanation, KnownMechanism, Message, OneSided, Policy, Situation, Taken,
};

use super::RulePolicy;
use crate::configuration::Configuration;
use crate::rules::{Authority, Bound, Layer, MechanismRange, Rule, Take};
use crate::topology::{Machine, Place};

/// Two packages of two pairs of cores, each pair with an L2 of 4 MiB: DMAmin
/// is 1 MiB by cores.
pub const E5345: &str = "package:2 l2:2(size=4194304) core:2 pu:1";

const ABLE: Abilities = Abilities { read: true, write: true, cooperate: true };

pub fn known(name: &'static str, models: &'static [Model]) -> KnownMechanism {
    let standing = MechanismStatus { ours: ABLE, theirs: ABLE, reason: None };
    KnownMechanism::new(name, models, standing)
}

pub fn denied(name: &'static str) -> KnownMechanism {
    let reason = Unavailable { errno: libc_eperm(), sentence: format!("{name} was refused") };
    let standing = MechanismStatus { reason: Some(reason), ..MechanismStatus::default() };
    KnownMechanism { standing, ..known(name, &[Model::Get]) }
}

/// EPERM, which is 1 everywhere.
const fn libc_eperm() -> i32 {
    1
}

/// Reads or writes; a ring; another ring of its family; one that is refused.
pub fn mechanisms() -> Vec<KnownMechanism> {
    vec![
        known("copy", &[Model::Get, Model::Put]),
        known("ring", &[Model::Cooperative]),
        known("ring-wide", &[Model::Cooperative]),
        denied("gone"),
    ]
}

pub fn rule(line: u32, above: Option<u64>, up_to: Option<u64>, take: &[&str]) -> Rule {
    let take = Take::Ways(take.iter().map(|way| way.parse().expect("a way")).collect());
    let (above, up_to) = (above.map(Bound::Bytes), up_to.map(Bound::Bytes));
    Rule {
        above,
        up_to,
        places: Vec::new(),
        contiguous: None,
        warmth: None,
        reuse: None,
        min_processes: None,
        single_copy: None,
        take,
        max_readers: None,
        line,
    }
}

pub fn eager_rule(line: u32, up_to: u64) -> Rule {
    Rule { take: Take::Eager, ..rule(line, None, Some(up_to), &[]) }
}

pub fn range(line: u32, mechanism: &str, above: Option<u64>, up_to: Option<u64>) -> MechanismRange {
    let (above, up_to) = (above.map(Bound::Bytes), up_to.map(Bound::Bytes));
    MechanismRange { mechanism: mechanism.to_owned(), above, up_to, line }
}

pub fn layer(authority: Authority, rules: Vec<Rule>) -> Layer {
    let path = PathBuf::from(match authority {
        Authority::User => "/home/user/lmt.toml",
        Authority::Calibration => "/home/user/calibration.toml",
        Authority::Default => "default.toml",
    });
    Layer { authority, path, rules, ranges: Vec::new(), figures: Vec::new() }
}

pub fn configuration(layers: Vec<Layer>) -> Configuration {
    let config = Config { eager_max_bytes: 32 << 10, ..Config::default() };
    Configuration { layers, config, ..Configuration::default() }
}

/// A policy with its situation.
#[derive(Debug)]
pub struct World {
    pub policy: RulePolicy,
    pub config: Config,
    pub here: CpuSet,
    pub there: CpuSet,
    pub processes: Vec<CpuSet>,
    pub mechanisms: Vec<KnownMechanism>,
    pub is_connected: bool,
    pub has_fast_box: bool,
}

pub fn cpu(index: usize) -> CpuSet {
    CpuSet::from_iter([index])
}

impl World {
    /// Two processes on CPUs 0 and 1 of the E5345, which share an L2.
    pub fn new(configuration: Configuration) -> Self {
        let machine = Arc::new(Machine::synthetic(E5345).expect("a machine"));
        let config = configuration.config.clone();
        Self {
            policy: RulePolicy::new(Arc::new(configuration), machine.into()),
            config,
            here: cpu(0),
            there: cpu(1),
            processes: vec![cpu(0), cpu(1)],
            mechanisms: mechanisms(),
            is_connected: true,
            has_fast_box: true,
        }
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            here: &self.here,
            there: &self.there,
            processes: &self.processes,
            mechanisms: &self.mechanisms,
            config: &self.config,
            is_connected: self.is_connected,
            has_fast_box: self.has_fast_box,
            is_one_sided: false,
        }
    }

    /// Gets or puts between the two.
    pub fn one_sided(&self, direction: Direction) -> OneSided<'_> {
        OneSided::new(&self.situation(), direction)
    }

    pub fn decide(&self) -> Decisions {
        self.policy.clone().decide(&self.situation())
    }

    pub fn explain(&self, message: &Message) -> Explanation {
        self.policy.explain(&self.situation(), message)
    }

    /// The ways for a message, by name; `eager` first where it is.
    pub fn ways(&self, message: &Message) -> Vec<String> {
        let decisions = self.decide();
        let name = |tag| self.mechanisms.iter().find(|k| k.tag == tag).expect("known").name;
        let ways = decisions.candidates(message).as_slice().iter();
        let ways = ways.map(|choice| format!("{}:{}", name(choice.mechanism), choice.model));
        let eager = (message.bytes <= decisions.eager_max_bytes()).then(|| "eager".to_owned());
        eager.into_iter().chain(ways).collect()
    }

    pub fn ways_of_bytes(&self, bytes: u64) -> Vec<String> {
        self.ways(&Message::of_bytes(bytes))
    }

    /// As `ways`, from the explanation.
    pub fn explained_ways(&self, message: &Message) -> Vec<String> {
        let explanation = self.explain(message);
        let first = match explanation.taken {
            Taken::Eager => Some("eager".to_owned()),
            Taken::By { mechanism, model } => Some(format!("{mechanism}:{model}")),
            _ => None,
        };
        first.into_iter().chain(explanation.then).collect()
    }
}

pub const PLACES: [Place; 7] = Place::ALL;
