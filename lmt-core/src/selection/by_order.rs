//! The policy without rules: the mechanisms in their order.

use super::{
    Decisions, Explanation, Message, NOT_SHARED, NotTaken, PathName, Policy, Range, Situation, Source, Taken,
    Why,
};
use crate::mechanism::KnownMechanism;
use crate::rendezvous::{Candidates, Choice};
use crate::vocabulary::model::{Model, SharedEnds};

/// The mechanisms in the order in which they were registered, or in which the
/// configuration names them; messages up to `eager_max_bytes` travel in cells.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByOrder {
    has_no_cells: bool,
}

impl ByOrder {
    /// For an endpoint without cells, whose embedder carries short messages
    /// itself ([`crate::device`]).
    #[must_use]
    pub const fn without_eager(self) -> Self {
        Self { has_no_cells: true }
    }

    /// The longest message that travels in cells, if any does.
    fn eager_max_bytes(self, situation: &Situation<'_>) -> Option<u64> {
        let has_cells = !self.has_no_cells && !situation.is_one_sided;
        has_cells.then(|| situation.largest_eager_bytes().min(situation.config.eager_max_bytes))
    }
}

impl Policy for ByOrder {
    fn decide(&mut self, situation: &Situation<'_>) -> Decisions {
        let range = |ends| {
            let candidates: Candidates =
                ways(situation, ends).into_iter().map(|(_, choice)| choice).collect();
            Range { up_to_bytes: u64::MAX, candidates, max_readers: u32::MAX }
        };
        Decisions::new(self.eager_max_bytes(situation).unwrap_or_default(), |variant| {
            vec![range(variant.shared_ends())]
        })
    }

    fn explain(&self, situation: &Situation<'_>, message: &Message) -> Explanation {
        let ways = ways(situation, message.shared);
        let longest = self.eager_max_bytes(situation).filter(|longest| message.bytes <= *longest);
        let taken = match ways.first() {
            _ if longest.is_some() => Taken::Eager,
            Some((name, choice)) => Taken::By { mechanism: (*name).to_owned(), model: choice.model },
            None if !situation.is_connected => Taken::Unknown,
            None => Taken::Nothing,
        };
        let rule = match longest {
            Some(longest) => format!("messages up to {longest} bytes travel in cells"),
            None => "the mechanisms in their order, the first that works".to_owned(),
        };
        let is_taken =
            |name: &str| matches!(&taken, Taken::By { mechanism, .. } if mechanism.as_str() == name);
        let others = situation.mechanisms.iter().filter(|known| !is_taken(known.name));
        let not_taken = others
            .map(|known| not_taken(known, message.shared, situation.is_connected, longest.is_some()))
            .collect();
        let then =
            ways.iter().skip(usize::from(longest.is_none())).map(|(name, c)| format!("{name}:{}", c.model));
        let then = then.collect();
        let source = Source::Default { line: None };
        let place = "no topology known".to_owned();
        Explanation { bytes: message.bytes, place, taken, then, rule, source, notes: Vec::new(), not_taken }
    }
}

fn not_taken(known: &KnownMechanism, ends: SharedEnds, is_connected: bool, eager: bool) -> NotTaken {
    let reason = known.standing.reason.as_ref();
    let (why, sentence) = match (reason, known.is_available()) {
        _ if !is_connected => (Why::Unknown, "the two are not connected yet".to_owned()),
        (Some(reason), false) => (Why::Unavailable, reason.to_string()),
        (None, false) => (Why::Unavailable, "it does not work in the peer's process".to_owned()),
        _ if eager => (Why::NotNeeded, "the message is short enough for cells".to_owned()),
        _ if !known.reaches(ends) => (Why::NotShared, NOT_SHARED.to_owned()),
        _ => (Why::Later, "it comes later in the order".to_owned()),
    };
    let errno = reason.filter(|r| why == Why::Unavailable && r.errno != 0).map(|r| r.errno);
    NotTaken { mechanism: known.name.to_owned(), why, sentence, errno }
}

/// The ways that work between such ends, in order, each once, with their mechanisms' names.
fn ways(situation: &Situation<'_>, ends: SharedEnds) -> Vec<(&'static str, Choice)> {
    let reached = paths_where(situation, |known, model| known.reach.allows(model, ends));
    match &situation.config.mechanisms {
        // Nothing else may be taken: what is not known to reach the memory of both
        // is tried, or says why it does not.
        Some(_) if reached.is_empty() => paths_where(situation, |_, _| true),
        _ => reached,
    }
}

fn paths_where(
    situation: &Situation<'_>,
    is_reached: impl Fn(&KnownMechanism, Model) -> bool,
) -> Vec<(&'static str, Choice)> {
    let mut ways: Vec<(&'static str, Choice)> = Vec::new();
    let mut add = |known: &KnownMechanism, model: Model| {
        let choice = Choice { mechanism: known.tag, model };
        if known.allows(model) && is_reached(known, model) && !ways.iter().any(|(_, other)| *other == choice)
        {
            ways.push((known.name, choice));
        }
    };
    match &situation.config.mechanisms {
        None => every_path(situation).for_each(|(known, model)| add(known, model)),
        Some(names) => {
            for wanted in names.iter().filter_map(|name| name.parse::<PathName>().ok()) {
                every_path(situation)
                    .filter(|(known, model)| wanted.means(known.name, *model))
                    .for_each(|(known, model)| add(known, model));
            }
        }
    }
    ways
}

fn every_path<'a>(situation: &Situation<'a>) -> impl Iterator<Item = (&'a KnownMechanism, Model)> {
    situation.mechanisms.iter().flat_map(|known| known.models.iter().map(move |model| (known, *model)))
}

#[cfg(test)]
#[path = "by_order_tests.rs"]
mod tests;
