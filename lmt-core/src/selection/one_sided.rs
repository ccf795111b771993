//! By which mechanism gets and puts of declared memory go: the policy says so, as it
//! does of messages.
//!
//! A get is to it what a message from the region's owner to this process would be, a
//! put one to the owner. Who copies is given: so of a way that a rule or a
//! configuration names, the mechanism counts and not the model.

use super::{Decisions, Explanation, Hints, Message, Policy, Situation, Taken, Variant};
use crate::mechanism::{Direction, KnownMechanism, MESSAGES_ONLY, MechanismStatus, Mechanisms};
use crate::rendezvous::Candidates;
use crate::vocabulary::model::Model;
use crate::vocabulary::peer_facts::{Abilities, Unavailable};

/// Gets or puts between two processes, of which the one here copies.
///
/// ```
/// use lmt_core::config::Config;
/// use lmt_core::cpu_set::CpuSet;
/// use lmt_core::mechanism::Direction;
/// use lmt_core::selection::{ByOrder, OneSided, Situation, Taken};
///
/// let (nowhere, config) = (CpuSet::EMPTY, Config::default());
/// let situation = Situation {
///     here: &nowhere,
///     there: &nowhere,
///     processes: &[],
///     mechanisms: &[],
///     config: &config,
///     is_connected: true,
///     has_fast_box: true,
///     is_one_sided: false,
/// };
/// let gets = OneSided::new(&situation, Direction::Get);
/// assert_eq!(gets.explain(&ByOrder::default(), 4096).taken, Taken::Nothing);
/// ```
#[derive(Clone, Debug)]
pub struct OneSided<'a> {
    situation: Situation<'a>,
    direction: Direction,
    mechanisms: Vec<KnownMechanism>,
}

impl<'a> OneSided<'a> {
    /// Those of one direction, where a message from here to there has this situation.
    pub fn new(situation: &Situation<'a>, direction: Direction) -> Self {
        let mechanisms = situation.mechanisms.iter().map(|known| turned(known, direction)).collect();
        let mut situation = Situation { is_one_sided: true, ..*situation };
        if direction == Direction::Get {
            std::mem::swap(&mut situation.here, &mut situation.there);
        }
        Self { situation, direction, mechanisms }
    }

    fn situation(&self) -> Situation<'_> {
        Situation { mechanisms: &self.mechanisms, ..self.situation }
    }

    /// What a policy decides for them.
    pub fn decide(&self, policy: &mut dyn Policy) -> Decisions {
        policy.decide(&self.situation())
    }

    /// Why one of them goes as it goes.
    pub fn explain(&self, policy: &dyn Policy, bytes: u64) -> Explanation {
        let mut explanation = policy.explain(&self.situation(), &Message::of_bytes(bytes));
        let model = model(self.direction);
        let mut names: Vec<String> = Vec::new();
        if let Taken::By { mechanism, model: taken } = &mut explanation.taken {
            *taken = model;
            names.push(mechanism.clone());
        }
        for way in std::mem::take(&mut explanation.then) {
            let name = way.split_once(':').map_or(way.as_str(), |(name, _)| name);
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
                explanation.then.push(format!("{name}:{model}"));
            }
        }
        explanation
    }
}

/// The model of a message that is copied likewise.
const fn model(direction: Direction) -> Model {
    match direction {
        Direction::Get => Model::Get,
        Direction::Put => Model::Put,
    }
}

/// A mechanism with what it can do for gets or puts. Whatever model a name asks for, it
/// means the mechanism.
fn turned(known: &KnownMechanism, direction: Direction) -> KnownMechanism {
    let models: &[Model] = match direction {
        Direction::Get => &[Model::Get, Model::Put, Model::Both],
        Direction::Put => &[Model::Put, Model::Get, Model::Both],
    };
    let can = known.copies_registered
        && match direction {
            Direction::Get => known.standing.ours.read,
            Direction::Put => known.standing.ours.write,
        };
    let abilities = Abilities { read: can, write: can, cooperate: false };
    let messages_only = || Unavailable { errno: 0, sentence: MESSAGES_ONLY.to_owned() };
    let reason = match &known.standing.reason {
        _ if can => None,
        None if !known.copies_registered => Some(messages_only()),
        reason => reason.clone(),
    };
    let standing = MechanismStatus { ours: abilities, theirs: abilities, reason };
    KnownMechanism { models, standing, ..known.clone() }
}

/// In which order mechanisms are tried for the gets or puts of one peer: by their
/// places in the endpoint's list, for each range of lengths.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// For memory here in several segments, and in one.
    lists: [Vec<(u64, Box<[usize]>)>; 2],
}

impl Orders {
    /// As a policy decides. What it leaves out follows in the usual order, if it may be
    /// used at all: a mechanism that the probe found to be of no use says why.
    pub fn new(decisions: &Decisions, mechanisms: &Mechanisms, only: Option<&[String]>) -> Self {
        let list = |contiguous| {
            let variant = Variant::of(contiguous, Hints::default());
            let order = |ways: &Candidates| {
                mechanisms.one_sided_order(ways.as_slice().iter().map(|way| way.mechanism), only)
            };
            let mut list: Vec<_> =
                decisions.ranges(variant).map(|(bytes, ways)| (bytes, order(ways))).collect();
            if list.is_empty() {
                list.push((u64::MAX, order(&Candidates::NONE)));
            }
            list
        };
        Self { lists: [list(false), list(true)] }
    }

    /// The order for a copy of so many bytes.
    pub fn of(&self, bytes: u64, contiguous: bool) -> &[usize] {
        let list = &self.lists[usize::from(contiguous)];
        let range = list.iter().find(|(up_to_bytes, _)| bytes <= *up_to_bytes).or(list.last());
        range.map_or(&[], |(_, order)| order)
    }
}

#[cfg(test)]
#[path = "one_sided_tests.rs"]
mod tests;
