//! The ways for one kind of message, in order.

use lmt_core::mechanism::{Model, Reach};
use lmt_core::rendezvous::{Candidates, Choice};
use lmt_core::selection::{KnownMechanism, PathName, Source, Variant};

use super::pair::Pair;
use crate::rules::{Authority, Layer, MechanismRange, Rule, Take};

/// Why a way stands where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The program brings the mechanism.
    Own,
    /// It is for shared buffers, in which the message is.
    Shared,
    /// It is named.
    Named,
    /// A built-in rule does not name it; the list of mechanisms has it here.
    Listed,
    /// It works.
    Usual,
}

/// One way that works.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub known: &'a KnownMechanism,
    pub model: Model,
    pub origin: Origin,
    /// What is set for the mechanism, where the length is not within it.
    pub out_of: Option<(&'a Layer, &'a MechanismRange)>,
}

impl Way<'_> {
    fn is(&self, known: &KnownMechanism, model: Model) -> bool {
        self.known.tag == known.tag && self.model == model
    }

    pub(super) const fn is_in_range(&self) -> bool {
        self.out_of.is_none()
    }

    pub(super) const fn choice(&self) -> Choice {
        Choice { mechanism: self.known.tag, model: self.model }
    }

    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.known.name, self.model)
    }
}

/// Who has set the order.
#[derive(Clone, Copy, Debug)]
pub(super) enum DecidedBy<'a> {
    /// The configuration names mechanisms, and no rule of a higher file fits.
    Names(&'a [String]),
    /// A rule.
    Rule(&'a Layer, &'a Rule),
    /// Nobody: it is the order in which the mechanisms were registered.
    Nobody,
}

/// All that is decided for messages of one kind and length.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    pub decided_by: DecidedBy<'a>,
    /// The best first, before the cap on readers.
    pub ways: Vec<Way<'a>>,
    /// What works beyond so many as a message can try.
    pub beyond: Vec<Way<'a>>,
    pub max_readers: u32,
    /// Who has set the cap.
    pub cap_source: Source,
    /// So many layers were asked for a rule before somebody spoke.
    pub passed: usize,
}

impl Plan<'_> {
    /// Whether others read as many messages of this process as they may.
    pub(super) const fn is_at_reader_limit(&self, readers: u32) -> bool {
        readers >= self.max_readers
    }

    /// Puts the ways in order for a message while so many are being read, as
    /// [`lmt_core::selection::Decisions::candidates`] does.
    pub(super) fn apply_reader_limit(&mut self, readers: u32) {
        if self.is_at_reader_limit(readers) {
            self.ways.sort_by_key(|way| way.model.reads_sender());
        }
    }
}

impl<'a> Pair<'a> {
    /// What is decided for such messages of this length.
    pub(super) fn plan(&self, bytes: u64, variant: Variant) -> Plan<'a> {
        let all = self.layers().len();
        let Some(names) = &self.situation.config.mechanisms else {
            return match self.rule_for(bytes, variant, all) {
                Some(decided_by) => self.plan_by_rule(bytes, variant, decided_by, None),
                None => self.plan_by_order(bytes, variant),
            };
        };
        let rank = self.rank_of_names();
        let decided_by = rank.and_then(|rank| self.rule_for(bytes, variant, rank.above));
        match decided_by {
            Some(decided_by) => self.plan_by_rule(bytes, variant, decided_by, Some(names)),
            None => self.plan_by_names(bytes, variant, names),
        }
    }

    /// A rule's ways, and then what else works; of those that are named, where
    /// a lower file names mechanisms.
    fn plan_by_rule(
        &self,
        bytes: u64,
        variant: Variant,
        (at, rule): (usize, &'a Rule),
        names: Option<&[String]>,
    ) -> Plan<'a> {
        let layer = &self.layers()[at];
        let mut list = List::new(self, variant);
        if layer.authority == Authority::Default && names.is_none() {
            list.add_all(Origin::Own);
        }
        // Who allocates shared buffers wants them used, whatever was measured of
        // others; a rule that names such a mechanism says where it stands.
        if !rule_names_shared(self, rule) && names.is_none() {
            list.add_all(Origin::Shared);
        }
        if let Take::Ways(ways) = &rule.take {
            ways.iter().for_each(|name| list.add(name, Origin::Named));
            if layer.authority == Authority::Default && names.is_none() {
                list.add_unnamed(ways);
            }
        }
        match names.map(paths_of_names) {
            None => list.add_all(Origin::Usual),
            Some(names) => {
                let is_left = |way: &Way<'_>| names.iter().any(|name| name.means(way.known.name, way.model));
                list.ways.retain(is_left);
                names.iter().for_each(|name| list.add(name, Origin::Usual));
            }
        }
        let (max_readers, cap_source) = self.cap(Some((at, rule)));
        let others = match (names, self.rank_of_names()) {
            (Some(_), Some(rank)) => rank.up_to,
            _ => self.layers().len(),
        };
        let (ways, beyond) = self.in_range_first(list.ways, bytes, at + 1, others);
        Plan { decided_by: DecidedBy::Rule(layer, rule), ways, beyond, max_readers, cap_source, passed: at }
    }

    /// What is named and nothing else. Set in a file, it heeds what this file
    /// and higher ones say of the lengths of mechanisms.
    fn plan_by_names(&self, bytes: u64, variant: Variant, names: &'a [String]) -> Plan<'a> {
        let mut list = List::new(self, variant);
        paths_of_names(names).iter().for_each(|name| list.add(name, Origin::Named));
        if list.ways.is_empty() {
            // Nothing else may be taken, so what is not known to reach the memory
            // of both is tried, or says why it does not.
            list.any_memory = true;
            paths_of_names(names).iter().for_each(|name| list.add(name, Origin::Named));
        }
        let rank = self.rank_of_names();
        let (max_readers, cap_source) = self.cap_of_names();
        let heard = rank.map_or(0, |rank| rank.up_to);
        let (ways, beyond) = self.in_range_first(list.ways, bytes, heard, heard);
        let passed = rank.map_or(0, |rank| rank.above);
        Plan { decided_by: DecidedBy::Names(names), ways, beyond, max_readers, cap_source, passed }
    }

    fn plan_by_order(&self, bytes: u64, variant: Variant) -> Plan<'a> {
        let mut list = List::new(self, variant);
        list.add_all(Origin::Own);
        list.add_all(Origin::Shared);
        list.add_all(Origin::Usual);
        let (max_readers, cap_source) = self.cap(None);
        let passed = self.layers().len();
        let (ways, beyond) = self.in_range_first(list.ways, bytes, passed, passed);
        Plan { decided_by: DecidedBy::Nobody, ways, beyond, max_readers, cap_source, passed }
    }

    /// Puts mechanisms outside of their own ranges behind the others, and takes
    /// apart what no message can try. Ranges of lower files than that which has
    /// named a way say nothing of it: for those that the rule names the first
    /// `of_named` layers count, for the others the first `of_others`.
    fn in_range_first(
        &self,
        mut ways: Vec<Way<'a>>,
        bytes: u64,
        of_named: usize,
        of_others: usize,
    ) -> (Vec<Way<'a>>, Vec<Way<'a>>) {
        for way in &mut ways {
            let layers = if way.origin == Origin::Named { of_named } else { of_others };
            let range = self.range_of(way.known.name, layers);
            way.out_of = range.filter(|(_, range)| !self.is_within(range.above, range.up_to, bytes));
        }
        // Stable: within both groups the order stays.
        ways.sort_by_key(|way| !way.is_in_range());
        let beyond = ways.split_off(ways.len().min(Candidates::MAX));
        (ways, beyond)
    }
}

/// Whether a rule names a mechanism for shared buffers.
fn rule_names_shared(pair: &Pair<'_>, rule: &Rule) -> bool {
    let Take::Ways(ways) = &rule.take else { return false };
    let mut shared = pair.situation.mechanisms.iter().filter(|known| known.reach != Reach::AnyMemory);
    shared.any(|known| ways.iter().any(|way| way.means_mechanism(known.name)))
}

/// The ways that names mean. What is none was refused when it was read.
fn paths_of_names(names: &[String]) -> Vec<PathName> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Ways that work, each once.
struct List<'p, 'a> {
    pair: &'p Pair<'a>,
    variant: Variant,
    ways: Vec<Way<'a>>,
    /// Whether ways are added whatever memory they reach.
    any_memory: bool,
}

impl<'p, 'a> List<'p, 'a> {
    const fn new(pair: &'p Pair<'a>, variant: Variant) -> Self {
        Self { pair, variant, ways: Vec::new(), any_memory: false }
    }

    /// Adds what a name means, in the usual order.
    fn add(&mut self, name: &PathName, origin: Origin) {
        for known in self.pair.situation.mechanisms.iter().filter(|k| name.means_mechanism(k.name)) {
            match name.model {
                Some(model) => self.push(known, model, origin),
                None => self.push_models(known, origin),
            }
        }
    }

    /// Adds the mechanisms that these names do not mean, each before the named one that
    /// comes next in the usual order: so a mechanism without a place in the built-in rules
    /// has one by its registration.
    fn add_unnamed(&mut self, names: &[PathName]) {
        let all = self.pair.situation.mechanisms;
        for (at, known) in all.iter().enumerate() {
            if names.iter().any(|name| name.means_mechanism(known.name)) {
                continue;
            }
            let before = self.ways.len();
            self.push_models(known, Origin::Listed);
            let added = self.ways.len() - before;
            let is_of = |way: &Way<'_>, next: &KnownMechanism| {
                way.origin == Origin::Named && way.known.tag == next.tag
            };
            let mut next = all[at + 1..].iter();
            let place = next.find_map(|next| self.ways.iter().position(|way| is_of(way, next)));
            self.ways[place.unwrap_or(before)..].rotate_right(added);
        }
    }

    /// Adds all, all of the program's own, or all that are for shared buffers.
    fn add_all(&mut self, origin: Origin) {
        let own = &self.pair.policy.own;
        let is_wanted = |known: &&KnownMechanism| match origin {
            Origin::Own => own.iter().any(|mine| mine == known.name),
            Origin::Shared => known.reach != Reach::AnyMemory,
            Origin::Named | Origin::Listed | Origin::Usual => true,
        };
        for known in self.pair.situation.mechanisms.iter().filter(is_wanted) {
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
        let is_reached = self.any_memory || known.reach.allows(model, self.variant.shared_ends());
        if known.allows(model) && is_reached && !self.ways.iter().any(|way| way.is(known, model)) {
            self.ways.push(Way { known, model, origin, out_of: None });
        }
    }
}
