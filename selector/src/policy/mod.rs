//! Decides by rules: which way a message takes, from what is configured, where
//! the two processes run and what works between them.
//!
//! [`RulePolicy`] answers lmt-core twice: [`Policy::decide`] makes the table of
//! a peer, in which each message is looked up, and [`Policy::explain`] tells of
//! one message why. Both ask the same [`pair::Pair`], so that they agree.

mod authority;
mod explain;
mod notes;
mod pair;
mod ways;
mod why;
mod words;

use std::fmt;
use std::sync::Arc;

use lmt_core::mechanism::{Reach, SharedEnds};
use lmt_core::rendezvous::Candidates;
use lmt_core::selection::{
    Decisions, Explanation, Hints, KnownMechanism, Message, Policy, Range, Reuse, Situation, Variant,
};

use crate::configuration::{Configuration, DmaMinSetting};
use crate::rules::{Bound, Rule};
use crate::topology::Machine;
use pair::Pair;

/// Where the topology comes from.
#[derive(Clone)]
pub enum MachineSource {
    /// It is here.
    Known(Arc<Machine>),
    /// It is read when it is first needed, and kept by the function: an endpoint
    /// that never meets a peer does not wait for it. The error is a sentence;
    /// every pair then shares nothing but the machine.
    Lazy(fn() -> Result<Arc<Machine>, String>),
}

impl MachineSource {
    fn get(&self) -> Result<Arc<Machine>, String> {
        match self {
            Self::Known(machine) => Ok(Arc::clone(machine)),
            Self::Lazy(load) => load(),
        }
    }
}

impl From<Arc<Machine>> for MachineSource {
    fn from(machine: Arc<Machine>) -> Self {
        Self::Known(machine)
    }
}

impl fmt::Debug for MachineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known(_) => "Known",
            Self::Lazy(_) => "Lazy",
        })
    }
}

/// Decides by rules.
///
/// ```
/// use std::sync::Arc;
/// use lmt_core::selection::Policy;
/// use lmt_selector::configuration::Configuration;
/// use lmt_selector::policy::RulePolicy;
/// use lmt_selector::topology::Machine;
///
/// let machine = Arc::new(Machine::synthetic("package:1 l2:1(size=4194304) core:2 pu:1")?);
/// let policy = RulePolicy::new(Arc::new(Configuration::default()), machine.into());
/// assert!(!policy.counts_processes());
/// # Ok::<(), lmt_selector::topology::TopologyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RulePolicy {
    configuration: Arc<Configuration>,
    machine: MachineSource,
    /// Mechanisms of the program's own.
    own: Vec<String>,
    /// All mechanisms that exist, also those that are left out.
    existing: Vec<String>,
    has_eager: bool,
    interest: Dependencies,
}

/// What the rules make differences by; what they do not is not looked at.
#[derive(Clone, Copy, Debug)]
struct Dependencies {
    place: bool,
    dma_min: bool,
    processes: bool,
    contiguous: bool,
    reuse: bool,
    /// Whether a mechanism makes a difference by shared buffers.
    shared: bool,
}

impl Dependencies {
    fn of(configuration: &Configuration) -> Self {
        let rules = || configuration.layers.iter().flat_map(|layer| &layer.rules);
        let any = |condition: fn(&Rule) -> bool| rules().any(condition);
        let ranges = configuration.layers.iter().flat_map(|layer| &layer.ranges);
        let mut bounds =
            ranges.map(|r| (r.above, r.up_to)).chain(rules().map(|rule| (rule.above, rule.up_to)));
        let by_dma_min = Some(Bound::DmaMin);
        let dma_min = bounds.any(|(above, up_to)| above == by_dma_min || up_to == by_dma_min);
        let by_processes = configuration.selection.dma_min == DmaMinSetting::ByProcesses;
        Self {
            place: any(|rule| !rule.places.is_empty()),
            dma_min,
            processes: any(|rule| rule.min_processes.is_some()) || (dma_min && by_processes),
            contiguous: any(|rule| rule.contiguous.is_some()),
            reuse: any(|rule| rule.reuse.is_some()),
            shared: false,
        }
    }

    /// The variant that stands for all that no rule tells from this one. The
    /// sender's cache always counts: it decides who copies.
    fn representative(self, variant: Variant) -> Variant {
        let ends = if self.shared { variant.shared_ends() } else { SharedEnds::default() };
        let hints = variant.hints();
        let reuse = if self.reuse { hints.reuse } else { Reuse::Unknown };
        let hints = Hints { warmth: hints.warmth, reuse };
        Variant::of(variant.is_contiguous() || !self.contiguous, hints).shared(ends)
    }
}

impl RulePolicy {
    /// A policy of this configuration on this machine.
    pub fn new(configuration: Arc<Configuration>, machine: MachineSource) -> Self {
        let interest = Dependencies::of(&configuration);
        Self { configuration, machine, own: Vec::new(), existing: Vec::new(), has_eager: true, interest }
    }

    /// The mechanisms that the program has registered itself: they go before
    /// what the built-in rules name, since whoever brings one wants it used.
    #[must_use]
    pub fn with_own_mechanisms(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.own = names.into_iter().map(Into::into).collect();
        self
    }

    /// The mechanisms that exist, also those that the configuration leaves out:
    /// an explanation then says that it does.
    #[must_use]
    pub fn with_existing_mechanisms(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.existing = names.into_iter().map(Into::into).collect();
        self
    }

    /// For an endpoint without cells, whose embedder carries short messages
    /// itself ([`lmt_core::device`]).
    #[must_use]
    pub const fn without_eager(mut self) -> Self {
        self.has_eager = false;
        self
    }

    /// What is configured.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }
}

impl Policy for RulePolicy {
    fn decide(&mut self, situation: &Situation<'_>) -> Decisions {
        let copies_shared = |known: &KnownMechanism| known.reach != Reach::AnyMemory;
        self.interest.shared = situation.mechanisms.iter().any(copies_shared);
        let pair = Pair::to_decide(self, situation);
        let eager_max_bytes = pair.eager().map_or(0, |eager| eager.bytes);
        let cuts = pair.cuts();
        let mut made: [Option<Vec<Range>>; Variant::COUNT] = [const { None }; Variant::COUNT];
        Decisions::new(eager_max_bytes, |variant| {
            let variant = self.interest.representative(variant);
            made[variant.index()].get_or_insert_with(|| ranges(&pair, variant, &cuts)).clone()
        })
    }

    fn counts_processes(&self) -> bool {
        self.interest.processes
    }

    fn explain(&self, situation: &Situation<'_>, message: &Message) -> Explanation {
        explain::explain(&Pair::to_explain(self, situation), message)
    }
}

/// What is decided between the cuts; neighbours for which it is the same are
/// one.
fn ranges(pair: &Pair<'_>, variant: Variant, cuts: &[u64]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for &up_to_bytes in cuts {
        let plan = pair.plan(up_to_bytes, variant);
        let candidates: Candidates = plan.ways.iter().map(|way| way.choice()).collect();
        match ranges.last_mut() {
            Some(last)
                if last.candidates.as_slice() == candidates.as_slice()
                    && last.max_readers == plan.max_readers =>
            {
                last.up_to_bytes = up_to_bytes;
            }
            _ => ranges.push(Range { up_to_bytes, candidates, max_readers: plan.max_readers }),
        }
    }
    ranges
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

#[cfg(test)]
mod agreement_tests;
#[cfg(test)]
mod authority_tests;
#[cfg(test)]
mod test_support;
