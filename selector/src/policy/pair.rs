//! What holds for messages from this process to one other.

use std::path::Path;
use std::sync::Arc;

use lmt_core::selection::{Situation, Source, Variant, Warmth};

use super::RulePolicy;
use crate::configuration::DmaMinSetting;
use crate::dma_min::DmaMin;
use crate::rules::{Authority, Bound, Layer, MechanismRange, Rule, Take};
use crate::topology::{Machine, Place};

/// Messages of more than this never travel in cells: what
/// [`lmt_core::config::KEYS`] allows for `eager_max_bytes`.
const EAGER_MOST_BYTES: u64 = 1 << 20;

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

/// Up to where messages travel in cells, and who says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eager<'a> {
    pub bytes: u64,
    /// The rule, with its layer; the key `eager_max_bytes` when there is none.
    pub rule: Option<(&'a Layer, &'a Rule)>,
}

/// Two processes, as far as rules ask for them.
pub(super) struct Pair<'a> {
    pub policy: &'a RulePolicy,
    pub situation: &'a Situation<'a>,
    pub place: Place,
    pub threshold: Threshold,
    /// The machine, or why it is not known; `None` where nobody asked.
    pub machine: Option<Result<Arc<Machine>, String>>,
}

impl<'a> Pair<'a> {
    /// With what the rules ask for: a machine is not read for rules that hold
    /// anywhere.
    pub(super) fn to_decide(policy: &'a RulePolicy, situation: &'a Situation<'a>) -> Self {
        let interest = policy.interest;
        let is_named = situation.config.mechanisms.is_some();
        let asks = interest.place || interest.dma_min;
        // Of the rules, the eager ones hold even where the ways are named.
        let asks = asks && (!is_named || policy.has_eager);
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
        Self { policy, situation, place, threshold, machine }
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
    fn holds_here(&self, rule: &Rule) -> bool {
        let processes = self.situation.processes.len() as u64;
        (rule.places.is_empty() || rule.places.contains(&self.place))
            && rule.min_processes.is_none_or(|least| processes >= u64::from(least))
    }

    /// Whether a rule holds for such messages, apart from their length.
    pub(super) fn holds_for(&self, rule: &Rule, variant: Variant) -> bool {
        let hints = variant.hints();
        self.holds_here(rule)
            && rule.contiguous.is_none_or(|wanted| wanted == variant.is_contiguous())
            && rule.warmth.is_none_or(|wanted| wanted == hints.warmth)
            && rule.reuse.is_none_or(|wanted| wanted == hints.reuse)
    }

    /// The rule that speaks of announced messages of this length.
    pub(super) fn rule_for(&self, bytes: u64, variant: Variant) -> Option<(&'a Layer, &'a Rule)> {
        let rules = self.layers().iter().flat_map(|layer| layer.rules.iter().map(move |rule| (layer, rule)));
        rules.into_iter().find(|(_, rule)| {
            matches!(rule.take, Take::Ways(_))
                && self.is_within(rule.above, rule.up_to, bytes)
                && self.holds_for(rule, variant)
        })
    }

    /// Up to where messages travel in cells. That is one length for a peer: it
    /// is asked before anything else is known of a message, so rules with
    /// conditions on the message say nothing here.
    pub(super) fn eager(&self) -> Option<Eager<'a>> {
        if !self.policy.has_eager {
            return None;
        }
        let key_source = self.source_of("eager_max_bytes");
        let by_key = Eager { bytes: self.situation.config.eager_max_bytes, rule: None };
        for layer in self.layers() {
            if outranks(&key_source, layer) {
                return Some(by_key);
            }
            if let Some(rule) = layer.rules.iter().find(|rule| self.is_eager_here(rule)) {
                let bytes = rule.up_to.map_or(EAGER_MOST_BYTES, |bound| self.bytes_of(bound));
                return Some(Eager { bytes: bytes.min(EAGER_MOST_BYTES), rule: Some((layer, rule)) });
            }
            if stands_in(&key_source, layer) {
                return Some(by_key);
            }
        }
        Some(by_key)
    }

    fn is_eager_here(&self, rule: &Rule) -> bool {
        rule.take == Take::Eager && is_for_all_messages(rule) && self.holds_here(rule)
    }

    /// The lengths for which a mechanism may be taken by rules, if they are
    /// bounded: of the highest authority that says so, its own name before its
    /// family's.
    pub(super) fn range_of(&self, mechanism: &str) -> Option<(&'a Layer, &'a MechanismRange)> {
        self.layers().iter().find_map(|layer| {
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

/// Whether a rule asks for nothing of a message but its length.
pub(super) const fn is_for_all_messages(rule: &Rule) -> bool {
    rule.contiguous.is_none() && rule.warmth.is_none() && rule.reuse.is_none()
}

/// Whether the name, or the family's, means the mechanism.
pub(super) fn means(name: &str, mechanism: &str) -> bool {
    mechanism.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether what this source says comes before all that a layer says.
fn outranks(source: &Source, layer: &Layer) -> bool {
    rank(source).is_none_or(|authority| authority < layer.authority)
}

/// Whether it stands in this very layer.
fn stands_in(source: &Source, layer: &Layer) -> bool {
    match source {
        Source::File { path, .. } | Source::Calibration { path, .. } => Path::new(path) == layer.path,
        _ => false,
    }
}

/// A source's authority; `None` for calls and the environment, which outrank
/// all layers.
const fn rank(source: &Source) -> Option<Authority> {
    match source {
        Source::File { .. } => Some(Authority::User),
        Source::Calibration { .. } => Some(Authority::Calibration),
        Source::Default { .. } => Some(Authority::Default),
        _ => None,
    }
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
