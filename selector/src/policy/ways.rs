//! The ways for one kind of message, in order.

use lmt_core::mechanism::Model;
use lmt_core::rendezvous::{Candidates, Choice};
use lmt_core::selection::{KnownMechanism, Source, Variant, WayName};

use super::pair::Pair;
use crate::rules::{Authority, Layer, Rule, Take};

/// Why a way stands where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The program brings the mechanism.
    Own,
    /// It is named.
    Named,
    /// It works.
    Usual,
}

/// One way that works.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub known: &'a KnownMechanism,
    pub model: Model,
    pub origin: Origin,
    /// Whether the length is within what is set for the mechanism.
    pub is_in_range: bool,
}

impl Way<'_> {
    pub(super) const fn choice(&self) -> Choice {
        Choice { mechanism: self.known.tag, model: self.model }
    }

    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.known.name, self.model)
    }
}

/// Who has set the order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spoke<'a> {
    /// The configuration names mechanisms, and no rule counts.
    Names(&'a [String]),
    /// A rule.
    Rule(&'a Layer, &'a Rule),
    /// Nobody: it is the order in which the mechanisms were registered.
    Nobody,
}

/// All that is decided for messages of one kind and length.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    pub spoke: Spoke<'a>,
    /// The best first, before the cap on readers.
    pub ways: Vec<Way<'a>>,
    pub max_readers: u32,
}

impl Plan<'_> {
    /// Whether others read as many messages of this process as they may.
    pub(super) const fn is_crowded(&self, readers: u32) -> bool {
        readers >= self.max_readers
    }

    /// Puts the ways in order for a message while so many are being read, as
    /// [`lmt_core::selection::Decisions::candidates`] does.
    pub(super) fn crowd(&mut self, readers: u32) {
        if self.is_crowded(readers) {
            self.ways.sort_by_key(|way| way.model == Model::Get);
        }
    }
}

impl<'a> Pair<'a> {
    /// What is decided for such messages of this length.
    pub(super) fn plan(&self, bytes: u64, variant: Variant) -> Plan<'a> {
        let selection = &self.policy.configuration.selection;
        if let Some(names) = &self.situation.config.mechanisms {
            let named = names.iter().filter_map(|name| name.parse::<WayName>().ok());
            let mut list = List::new(self, variant);
            named.for_each(|name| list.add(&name, Origin::Named));
            let max_readers = if self.cap_is_chosen() { selection.max_readers } else { u32::MAX };
            list.ways.truncate(Candidates::MAX);
            return Plan { spoke: Spoke::Names(names), ways: list.ways, max_readers };
        }
        let rule = self.rule_for(bytes, variant);
        let mut list = List::new(self, variant);
        if rule.is_none_or(|(layer, _)| layer.authority == Authority::Default) {
            list.add_all(Origin::Own);
        }
        if let Some((_, Rule { take: Take::Ways(names), .. })) = rule {
            names.iter().for_each(|name| list.add(name, Origin::Named));
        }
        list.add_all(Origin::Usual);
        let max_readers = rule.and_then(|(_, rule)| rule.max_readers).unwrap_or(selection.max_readers);
        let spoke = rule.map_or(Spoke::Nobody, |(layer, rule)| Spoke::Rule(layer, rule));
        Plan { spoke, ways: self.in_range_first(list.ways, bytes), max_readers }
    }

    /// Whether the cap was set by somebody who could as well have named
    /// mechanisms: an order that was asked for by name yields to no other cap.
    fn cap_is_chosen(&self) -> bool {
        let source = self.policy.configuration.sources.get("max_readers");
        source.is_some_and(|s| !matches!(s, Source::Default { .. } | Source::Calibration { .. }))
    }

    fn in_range_first(&self, mut ways: Vec<Way<'a>>, bytes: u64) -> Vec<Way<'a>> {
        for way in &mut ways {
            let range = self.range_of(way.known.name);
            way.is_in_range = range.is_none_or(|(_, range)| self.is_within(range.above, range.up_to, bytes));
        }
        let (mut first, behind): (Vec<_>, Vec<_>) = ways.into_iter().partition(|way| way.is_in_range);
        first.extend(behind);
        first.truncate(Candidates::MAX);
        first
    }
}

/// Ways that work, each once.
struct List<'p, 'a> {
    pair: &'p Pair<'a>,
    variant: Variant,
    ways: Vec<Way<'a>>,
}

impl<'p, 'a> List<'p, 'a> {
    const fn new(pair: &'p Pair<'a>, variant: Variant) -> Self {
        Self { pair, variant, ways: Vec::new() }
    }

    /// Adds what a name means, in the usual order.
    fn add(&mut self, name: &WayName, origin: Origin) {
        for known in self.pair.situation.mechanisms.iter().filter(|k| name.means_mechanism(k.name)) {
            match name.model {
                Some(model) => self.push(known, model, origin),
                None => self.push_models(known, origin),
            }
        }
    }

    /// Adds all, or all of the program's own.
    fn add_all(&mut self, origin: Origin) {
        let own = &self.pair.policy.own;
        let is_wanted = |name: &str| origin != Origin::Own || own.iter().any(|mine| mine == name);
        for known in self.pair.situation.mechanisms.iter().filter(|k| is_wanted(k.name)) {
            self.push_models(known, origin);
        }
    }

    /// The mechanism's models in its own order, but that of the two with one
    /// copy the sender's cache decides.
    fn push_models(&mut self, known: &'a KnownMechanism, origin: Origin) {
        let mut models = known.models.to_vec();
        let at = |model| models.iter().position(|m| *m == model);
        if let (Some(puts_first), Some(put), Some(get)) =
            (Pair::puts_first(self.variant), at(Model::Put), at(Model::Get))
            && (put < get) != puts_first
        {
            models.swap(put, get);
        }
        models.into_iter().for_each(|model| self.push(known, model, origin));
    }

    fn push(&mut self, known: &'a KnownMechanism, model: Model, origin: Origin) {
        let is_there = |way: &Way<'_>| way.known.tag == known.tag && way.model == model;
        if known.allows(model) && !self.ways.iter().any(is_there) {
            self.ways.push(Way { known, model, origin, is_in_range: true });
        }
    }
}
