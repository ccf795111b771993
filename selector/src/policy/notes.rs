//! What else has to do with a message's way: by whom limits were set, and why it
//! is not what was asked for first.

use super::explain::Case;
use super::pair::{INBOX_EAGER_KEY, fastest_single_copy};
use super::ways::{DecidedBy, Origin, Way};
use super::words::{self, in_order, length};
use crate::rules::{SingleCopy, Take};

impl Case<'_, '_> {
    /// That cells would carry more if the peer gave a fast box.
    pub(super) fn without_fast_box(&self) -> Option<String> {
        let limit = self.limit.filter(|limit| limit.lacks_fast_box)?;
        let source = self.pair.source_of(INBOX_EAGER_KEY);
        Some(format!(
            "cells end at {} ({INBOX_EAGER_KEY}, {source}), for the peer gives no fast box to this endpoint",
            length(limit.bytes)
        ))
    }

    /// That cells would carry more without an earlier rule.
    pub(super) fn cut(&self) -> Option<String> {
        let limit = self.limit?;
        let cut = limit.cut.filter(|_| !limit.lacks_fast_box)?;
        let by = match limit.rule {
            Some((layer, rule)) => words::source(layer, rule.line),
            None => self.pair.source_of("eager_max_bytes"),
        };
        let cutting = words::source(cut.layer, cut.rule.line);
        Some(format!(
            "cells end at {} and not at {} ({by}), since an earlier rule ({cutting}) has longer messages go by rendezvous",
            length(limit.bytes),
            length(cut.uncut_bytes),
        ))
    }

    /// Files that outrank what spoke and have rules, of which none fits.
    pub(super) fn without_a_rule(&self) -> Option<String> {
        if self.eager.is_some() {
            return None;
        }
        let passed = self.pair.layers().iter().take(self.plan.passed);
        let with_rules =
            passed.filter(|layer| layer.rules.iter().any(|rule| matches!(rule.take, Take::Ways(_))));
        let paths: Vec<String> = with_rules.map(|layer| layer.path.display().to_string()).collect();
        (!paths.is_empty()).then(|| format!("no rule of {} fits it", paths.join(", nor of ")))
    }

    /// That a lower file leaves mechanisms out, while a rule has set the order.
    pub(super) fn restricted(&self) -> Option<String> {
        let names = self.pair.situation.config.mechanisms.as_ref()?;
        if self.eager.is_some() || !matches!(self.plan.decided_by, DecidedBy::Rule(..)) {
            return None;
        }
        let source = self.pair.names_source();
        Some(format!("only what `mechanisms` names is used ({source}): {}", in_order(names)))
    }

    fn taken_path(&self) -> Option<&Way<'_>> {
        self.plan.ways.first().filter(|_| self.eager.is_none())
    }

    /// That the way taken is not one that the rule names, and why.
    pub(super) fn unusual(&self) -> Option<String> {
        let taken = self.taken_path()?;
        if !matches!(self.plan.decided_by, DecidedBy::Rule(..)) || taken.origin != Origin::Usual {
            return None;
        }
        let all = self.plan.ways.iter().chain(&self.plan.beyond);
        let named: Vec<&Way<'_>> = all.filter(|way| way.origin == Origin::Named).collect();
        if named.is_empty() {
            let or_left = match &self.pair.situation.config.mechanisms {
                Some(_) => " or is left by `mechanisms`",
                None => "",
            };
            return Some(format!("no path that the rule names works here{or_left}"));
        }
        let names = |is_wanted: &dyn Fn(&Way<'_>) -> bool| {
            let wanted = named.iter().filter(|way| is_wanted(way));
            wanted.map(|way| way.name()).collect::<Vec<String>>().join(", ")
        };
        // What is out of range and read stands behind for both reasons; the
        // range is the one that stays.
        let out_of_range = names(&|way| !way.is_in_range());
        let crowded = names(&|way| way.is_in_range());
        let mut reasons = Vec::new();
        if !out_of_range.is_empty() {
            reasons.push(format!("{out_of_range} for the length, which is out of its range"));
        }
        if !crowded.is_empty() {
            reasons.push(format!("{crowded} for the cap on readers"));
        }
        Some(format!("the paths of the rule that work here come later: {}", reasons.join("; ")))
    }

    /// That the way taken is out of its own range, and why it is taken still.
    pub(super) fn out_of_range(&self) -> Option<String> {
        let taken = self.taken_path()?;
        let (layer, range) = taken.out_of?;
        let has_others = self.plan.ways.iter().any(|way| way.known.tag != taken.known.tag);
        let still = if self.plan.ways.iter().any(Way::is_in_range) {
            "but the cap on readers puts the paths last that are within theirs"
        } else if has_others {
            "but nothing that works here is within its own range"
        } else {
            "but nothing else works"
        };
        Some(format!(
            "{} is set for {} only ({}), {still}",
            taken.known.name,
            self.pair.range_lengths(range),
            words::source(layer, range.line)
        ))
    }

    /// How fast single copies are, where a rule asks for it.
    pub(super) fn single_copy(&self) -> Option<String> {
        let mut rules = self.pair.layers().iter().flat_map(|layer| &layer.rules);
        let asks = rules.any(|rule| rule.single_copy.is_some());
        if !asks || !self.pair.situation.is_connected {
            return None;
        }
        if let Some(set) = self.pair.policy.configuration.selection.single_copy {
            let source = self.pair.source_of("single_copy");
            return Some(format!("single copies are {}, as set by {source}", set.name()));
        }
        let Some(times) = fastest_single_copy(self.pair.situation) else {
            return Some("single copies are slow: none that was measured works here".to_owned());
        };
        Some(format!(
            "single copies are {}: one takes {times:.1} times a plain copy's time here, and up to {} is fast",
            self.pair.single_copy.name(),
            SingleCopy::MAX_FAST_RATIO
        ))
    }
}
