//! By which mechanism the ranks of a collective operation copy out of, and into, each
//! other's memory.

use std::sync::Arc;

use lmt::configuration;
use lmt::cpu_set::CpuSet;
use lmt::mechanism::Mechanisms;
use lmt::selection::{Explanation, KnownMechanism, OneSided, Situation};
use lmt_collectives::Copies;
use lmt_selector::configuration::Configuration;
use lmt_selector::policy::RulePolicy;

use super::args::ExplainArgs;
use super::availability::Availability;
use super::places;
use crate::error::BenchError;

/// What is asked for mechanisms.
pub struct Asked {
    policy: RulePolicy,
    known: Vec<KnownMechanism>,
    place: CpuSet,
    processes: Vec<CpuSet>,
    /// How it is known what works.
    pub availability: String,
}

impl Asked {
    /// For a group of so many ranks with this configuration: what works is found out
    /// with a second process.
    ///
    /// # Errors
    /// The topology cannot be read, or the two processes did not meet.
    pub fn new(configuration: &Configuration, ranks: u32, args: &ExplainArgs) -> Result<Self, BenchError> {
        let machine = configuration::machine().map_err(BenchError::Failure)?;
        let (place, _) = places(args, &machine)?;
        let mut mechanisms = Mechanisms::new();
        lmt::list::register_all(&mut mechanisms);
        let existing = mechanisms.names();
        if let Some(names) = &configuration.config.mechanisms {
            mechanisms.restrict(names);
        }
        let mut known = mechanisms.known(0);
        let cpus = machine.is_this_system().then_some(place);
        let availability = Availability::find(&mut known, &[], cpus, args.config.as_deref())?.sentence;
        let policy = RulePolicy::new(Arc::new(configuration.clone()), machine.into())
            .with_existing_mechanisms(existing);
        let processes = vec![place; ranks as usize];
        Ok(Self { policy, known, place, processes, availability })
    }

    /// Why the longest of these go as they go.
    pub fn explain(&self, copies: &Copies) -> Explanation {
        let situation = Situation {
            here: &self.place,
            there: &self.place,
            processes: &self.processes,
            mechanisms: &self.known,
            config: &self.policy.configuration().config,
            is_connected: true,
            has_fast_box: true,
            is_one_sided: true,
        };
        OneSided::new(&situation, copies.direction).explain(&self.policy, copies.most_bytes)
    }
}
