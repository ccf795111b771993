//! What holds for messages from this process to one other.

use std::sync::Arc;

use lmt_core::selection::{PathName, Situation, Source, Variant, Warmth};

use super::RulePolicy;
use crate::configuration::DmaMinSetting;
use crate::dma_min::DmaMin;
use crate::rules::{Bound, Layer, MechanismRange, Rule, SingleCopy, Take};
use crate::topology::{Machine, Place};

/// What DMAmin is taken to be where no cache is known: that of the machine for
/// which it was derived (ICPP 2009 section 3.5).
pub(super) const DMA_MIN_UNKNOWN_BYTES: u64 = 1 << 20;

/// What DMAmin is for a pair.
#[derive(Clone, Debug)]
pub(super) enum Threshold {
    /// By the formula.
    Derived(DmaMin),
    /// It is set.
    Given(u64),
    /// No cache is known.
    Unknown,
}

impl Threshold {
    pub(super) const fn bytes(&self) -> u64 {
        match self {
            Self::Derived(dma_min) => dma_min.bytes,
            Self::Given(bytes) => *bytes,
            Self::Unknown => DMA_MIN_UNKNOWN_BYTES,
        }
    }
}

/// Two processes, as far as rules ask for them.
pub(super) struct Pair<'a> {
    pub policy: &'a RulePolicy,
    pub situation: &'a Situation<'a>,
    pub place: Place,
    pub threshold: Threshold,
    /// How fast the kernel's copies are, of the fastest mechanism that works.
    pub single_copy: SingleCopy,
    /// The machine, or why it is not known; `None` where nobody asked.
    pub machine: Option<Result<Arc<Machine>, String>>,
}

impl<'a> Pair<'a> {
    /// With what the rules ask for: a machine is not read for rules that hold
    /// anywhere.
    pub(super) fn to_decide(policy: &'a RulePolicy, situation: &'a Situation<'a>) -> Self {
        let interest = policy.interest;
        let asks = interest.place || interest.dma_min;
        Self::new(policy, situation, asks.then(|| policy.machine.get()))
    }

    /// With all that there is to tell.
    pub(super) fn to_explain(policy: &'a RulePolicy, situation: &'a Situation<'a>) -> Self {
        Self::new(policy, situation, Some(policy.machine.get()))
    }

    fn new(
        policy: &'a RulePolicy,
        situation: &'a Situation<'a>,
        machine: Option<Result<Arc<Machine>, String>>,
    ) -> Self {
        let known = machine.as_ref().and_then(|machine| machine.as_ref().ok());
        let place = known.map_or(Place::Other, |machine| machine.place(situation.here, situation.there));
        let threshold = threshold(policy, situation, known.map(Arc::as_ref));
        let set = policy.configuration.selection.single_copy;
        let single_copy = set.unwrap_or_else(|| SingleCopy::of(fastest_single_copy(situation)));
        Self { policy, situation, place, threshold, single_copy, machine }
    }

    pub(super) fn layers(&self) -> &'a [Layer] {
        &self.policy.configuration.layers
    }

    pub(super) fn source_of(&self, key: &str) -> Source {
        self.policy.configuration.sources.get(key).cloned().unwrap_or(Source::Default { line: None })
    }

    pub(super) const fn bytes_of(&self, bound: Bound) -> u64 {
        match bound {
            Bound::Bytes(bytes) => bytes,
            Bound::DmaMin => self.threshold.bytes(),
        }
    }

    /// Whether a length is within bounds, of which the lower is not in it.
    pub(super) fn is_within(&self, above: Option<Bound>, up_to: Option<Bound>, bytes: u64) -> bool {
        above.is_none_or(|bound| bytes > self.bytes_of(bound))
            && up_to.is_none_or(|bound| bytes <= self.bytes_of(bound))
    }

    /// Whether a rule holds for these two processes.
    pub(super) fn holds_here(&self, rule: &Rule) -> bool {
        let processes = self.situation.processes.len() as u64;
        (rule.places.is_empty() || rule.places.contains(&self.place))
            && rule.min_processes.is_none_or(|least| processes >= u64::from(least))
            && rule.single_copy.is_none_or(|wanted| wanted == self.single_copy)
    }

    /// Whether a rule holds for such messages, apart from their length.
    pub(super) fn holds_for(&self, rule: &Rule, variant: Variant) -> bool {
        let hints = variant.hints();
        self.holds_here(rule)
            && rule.contiguous.is_none_or(|wanted| wanted == variant.is_contiguous())
            && rule.warmth.is_none_or(|wanted| wanted == hints.warmth)
            && rule.reuse.is_none_or(|wanted| wanted == hints.reuse)
    }

    /// The rule of the first `layers` that speaks of announced messages of this
    /// length, with the index of its layer.
    pub(super) fn rule_for(&self, bytes: u64, variant: Variant, layers: usize) -> Option<(usize, &'a Rule)> {
        let layers = self.layers().iter().take(layers).enumerate();
        let rules = layers.flat_map(|(at, layer)| layer.rules.iter().map(move |rule| (at, rule)));
        rules.into_iter().find(|(_, rule)| {
            matches!(rule.take, Take::Ways(_))
                && self.is_within(rule.above, rule.up_to, bytes)
                && self.holds_for(rule, variant)
        })
    }

    /// The lengths for which a mechanism may be taken by rules, if one of the
    /// first `layers` bounds them: of the highest authority that says so, its own
    /// name before its family's.
    pub(super) fn range_of(&self, mechanism: &str, layers: usize) -> Option<(&'a Layer, &'a MechanismRange)> {
        self.layers().iter().take(layers).find_map(|layer| {
            let meant = layer.ranges.iter().filter(|range| means(&range.mechanism, mechanism));
            // The longest name that fits is the nearest.
            meant.max_by_key(|range| range.mechanism.len()).map(|range| (layer, range))
        })
    }

    /// Every length at which something may change, and the greatest of all.
    pub(super) fn cuts(&self) -> Vec<u64> {
        let rules = self.layers().iter().flat_map(|layer| &layer.rules);
        let ranges = self.layers().iter().flat_map(|layer| &layer.ranges);
        let bounds = rules.map(|r| [r.above, r.up_to]).chain(ranges.map(|r| [r.above, r.up_to]));
        let mut cuts: Vec<u64> = bounds.flatten().flatten().map(|bound| self.bytes_of(bound)).collect();
        cuts.push(u64::MAX);
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// Whether messages are written by their sender first: it has just written
    /// them (knem-jpdc, section 5.3); `None` where nobody has said.
    pub(super) const fn puts_first(variant: Variant) -> Option<bool> {
        match variant.hints().warmth {
            Warmth::Unknown => None,
            Warmth::Warm => Some(true),
            Warmth::Cold => Some(false),
        }
    }
}

/// How many times a plain copy's time single copies take, of the fastest mechanism
/// that works between the two and has looked.
pub(super) fn fastest_single_copy(situation: &Situation<'_>) -> Option<f32> {
    let works = situation.mechanisms.iter().filter(|known| known.is_available());
    works.filter_map(|known| known.times_plain_copy).min_by(f32::total_cmp)
}

/// Whether a rule asks for nothing of a message but its length.
pub(super) const fn is_for_all_messages(rule: &Rule) -> bool {
    rule.contiguous.is_none() && rule.warmth.is_none() && rule.reuse.is_none()
}

/// Whether the name, or the family's, means the mechanism.
pub(super) fn means(name: &str, mechanism: &str) -> bool {
    PathName { name: name.to_owned(), model: None }.means_mechanism(mechanism)
}

fn threshold(policy: &RulePolicy, situation: &Situation<'_>, machine: Option<&Machine>) -> Threshold {
    let setting = policy.configuration.selection.dma_min;
    if let DmaMinSetting::Bytes(bytes) = setting {
        return Threshold::Given(bytes);
    }
    let derived = machine.and_then(|machine| {
        // One that has not said where it runs may run anywhere.
        let receiver = if situation.there.is_empty() { machine.online() } else { situation.there };
        match setting {
            DmaMinSetting::ByProcesses => DmaMin::by_processes(machine, receiver, situation.processes),
            _ => DmaMin::by_cores(machine, receiver),
        }
    });
    derived.map_or(Threshold::Unknown, Threshold::Derived)
}

/// What bounds cells where a peer gives no fast box.
pub(super) const INBOX_EAGER_KEY: &str = "inbox_eager_max_bytes";
