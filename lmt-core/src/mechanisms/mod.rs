//! The mechanisms of one endpoint, with their per-peer and per-transfer state.
//!
//! Their state is kept in tables, so that a transfer allocates nothing once the tables have
//! grown.

mod calls;
mod counters;
mod erased;

use std::collections::VecDeque;

use crate::bell::Bell;
use crate::checkup::{Finding, Host};
use crate::keys::{Key, Value};
use crate::mechanism::{Abilities, Hello, Lmt, Model, Needs, PeerFacts, Role, Unavailable};
use crate::parcel::Parcel;
use crate::rendezvous::{MechanismTag, PeerKey};
use crate::selection::KnownMechanism;
pub(crate) use calls::Handle;
pub use counters::{Counters, Tally};
use erased::{AnyLmt, Table};

/// Whether `asked`, which may be the name of a family, means the mechanism of
/// this name.
///
/// Who copies may be said behind a colon ([`crate::selection::WayName`]); that
/// is not looked at here.
pub fn is_meant(asked: &str, name: &str) -> bool {
    let asked = match asked.split_once(':') {
        Some((name, model)) if Model::from_name(model).is_some() => name,
        _ => asked,
    };
    name.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// What a mechanism says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The models it can do, the preferred one first.
    pub models: &'static [Model],
    /// What it needs of the machine.
    pub needs: Needs,
}

/// What is known of one mechanism with one peer.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// What this process can do with the peer.
    pub ours: Abilities,
    /// What the peer can do with this process.
    pub theirs: Abilities,
    /// Why it is not available, or was given up, as seen from here.
    pub reason: Option<Unavailable>,
}

/// The list of mechanisms, in order of preference.
#[derive(Default)]
pub struct Mechanisms {
    list: Vec<Box<dyn AnyLmt>>,
    /// The tag of each mechanism in `list`, which every message looks for.
    tags: Vec<MechanismTag>,
    /// Why a mechanism in `list` does not work in this process, if so.
    absent: Vec<Option<Unavailable>>,
    /// For each peer, what is known of each mechanism in `list`.
    standings: Vec<Vec<Standing>>,
    /// As `standings`; they stay when a peer is gone, and begin anew with the
    /// next probe.
    counters: Vec<Vec<Counters>>,
    /// For each peer, how often what is known of it has changed.
    versions: Vec<u32>,
    /// What was counted of each mechanism with peers that were probed anew
    /// since.
    past: Vec<Counters>,
    /// What mechanisms have for peers' mechanisms, in order.
    parcels: VecDeque<(PeerKey, Parcel)>,
}

impl Mechanisms {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mechanism behind those that are there.
    pub fn register<M: Lmt>(&mut self, lmt: M) {
        self.tags.push(MechanismTag::of(lmt.name()));
        self.list.push(Box::new(Table::new(lmt)));
        self.absent.push(None);
    }

    /// Tells every mechanism how to wake the endpoint ([`Lmt::take_bell`]).
    pub fn give_bell(&mut self, bell: &Bell) {
        self.list.iter_mut().for_each(|mechanism| mechanism.take_bell(bell));
    }

    /// Keeps only the mechanisms that are named, in that order. What is left out
    /// is neither used nor offered to peers. A name without its last part, as
    /// `a` for `a-b` and `a-c`, means all of that family, in their order.
    pub fn restrict(&mut self, names: &[String]) {
        let mut kept = Vec::with_capacity(names.len());
        for name in names {
            while let Some(at) = self.list.iter().position(|m| is_meant(name, m.name())) {
                kept.push(self.list.remove(at));
            }
        }
        self.absent = kept.iter().map(|_| None).collect();
        self.tags = kept.iter().map(|mechanism| MechanismTag::of(mechanism.name())).collect();
        self.list = kept;
    }

    /// Where the mechanisms stand in the list that these names mean, in order,
    /// each once.
    fn meant_by<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = usize> {
        let means = |name: &String, at: usize| is_meant(name, self.list[at].name());
        names.iter().enumerate().flat_map(move |(number, name)| {
            (0..self.list.len()).filter(move |&at| {
                means(name, at) && !names[..number].iter().any(|earlier| means(earlier, at))
            })
        })
    }

    /// Why no mechanism works with a peer, as far as that is known.
    pub(crate) fn reasons(&self, peer: PeerKey) -> String {
        let reason = |(name, standing): (&str, &Standing)| {
            let reason = standing.reason.as_ref()?;
            Some(format!("{name}: {reason}"))
        };
        self.standings(peer).filter_map(reason).collect::<Vec<_>>().join("; ")
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.list.iter().map(|m| m.name()).collect()
    }

    /// What each is, in order.
    pub fn profiles(&self) -> Vec<Profile> {
        let of = |m: &dyn AnyLmt| Profile { name: m.name(), models: m.models(), needs: m.needs() };
        self.list.iter().map(|m| of(m.as_ref())).collect()
    }

    /// What each finds on a machine, by name, in order ([`Lmt::checkups`]).
    pub fn checkups(&self, host: &Host) -> Vec<(&'static str, Vec<Finding>)> {
        self.list.iter().map(|m| (m.name(), m.checkups(host))).collect()
    }

    fn position(&self, tag: MechanismTag) -> Option<usize> {
        self.tags.iter().position(|known| *known == tag)
    }

    /// The name behind a tag.
    pub fn name_of(&self, tag: MechanismTag) -> Option<&'static str> {
        self.position(tag).map(|at| self.list[at].name())
    }

    /// What every mechanism that works here tells a new peer.
    pub fn hellos(&mut self) -> Vec<(MechanismTag, Hello)> {
        let mut hellos = Vec::with_capacity(self.list.len());
        for ((mechanism, absent), tag) in self.list.iter_mut().zip(&mut self.absent).zip(&self.tags) {
            match mechanism.hello() {
                // What was refused once may be allowed by now.
                Ok(hello) => {
                    *absent = None;
                    hellos.push((*tag, hello));
                }
                Err(reason) => *absent = Some(reason),
            }
        }
        hellos
    }

    /// Probes every mechanism with a new peer. Returns what to report to it.
    pub fn probe(
        &mut self,
        peer: PeerKey,
        facts: &PeerFacts,
        mut hellos: Vec<(MechanismTag, Hello)>,
    ) -> Vec<(MechanismTag, Abilities)> {
        let mut standings = Vec::with_capacity(self.list.len());
        let mut report = Vec::with_capacity(self.list.len());
        for ((mechanism, absent), &tag) in self.list.iter_mut().zip(&self.absent).zip(&self.tags) {
            let told = hellos.iter().position(|(t, _)| *t == tag).map(|at| hellos.swap_remove(at).1);
            let outcome = match (absent, told) {
                (Some(reason), _) => Err(reason.clone()),
                (None, Some(hello)) => mechanism.probe(peer, facts, hello),
                (None, None) => Err(Unavailable {
                    errno: 0,
                    sentence: format!("{} does not work in the peer's process", mechanism.name()),
                }),
            };
            let (ours, reason) = match outcome {
                Ok(abilities) => (abilities, None),
                Err(reason) => (Abilities::default(), Some(reason)),
            };
            report.push((tag, ours));
            standings.push(Standing { ours, theirs: Abilities::default(), reason });
        }
        let index = peer as usize;
        if self.standings.len() <= index {
            self.standings.resize_with(index + 1, Vec::new);
        }
        self.standings[index] = standings;
        self.changed(peer);
        self.count_anew(peer);
        report
    }

    /// Takes what the peer found that it can do with this process.
    pub fn learn(&mut self, peer: PeerKey, report: &[(MechanismTag, Abilities)]) {
        for (tag, theirs) in report {
            let Some(at) = self.position(*tag) else { continue };
            if let Some(standing) = self.standings.get_mut(peer as usize).and_then(|s| s.get_mut(at)) {
                standing.theirs = *theirs;
            }
        }
        self.changed(peer);
    }

    /// What is known of each mechanism with this peer, by name.
    pub fn standings(&self, peer: PeerKey) -> impl Iterator<Item = (&'static str, &Standing)> {
        let known = self.standings.get(peer as usize).map_or(&[][..], Vec::as_slice);
        self.list.iter().map(|m| m.name()).zip(known)
    }

    /// The mechanisms in order, each with what is known of it with this peer.
    pub fn known(&self, peer: PeerKey) -> Vec<KnownMechanism> {
        let standings = self.standings.get(peer as usize).map_or(&[][..], Vec::as_slice);
        let known = |at: usize| {
            let mut standing = standings.get(at).cloned().unwrap_or_default();
            if standing.reason.is_none() {
                standing.reason = self.absent[at].clone();
            }
            let known = &self.list[at];
            let name = known.name();
            let (models, reach) = (known.models(), known.reach());
            let tag = self.tags[at];
            let copies_declared = known.copies_declared();
            // Who does not work with the peer need not look.
            let works = standing.ours != Abilities::default();
            let times_plain_copy = if works { known.times_plain_copy(Some(peer)) } else { None };
            KnownMechanism { name, tag, models, reach, copies_declared, times_plain_copy, standing }
        };
        (0..self.list.len()).map(known).collect()
    }

    /// How many times as long as a plain copy the mechanism's copies take, as far as
    /// this process has found ([`crate::mechanism::Lmt::times_plain_copy`]); nothing
    /// where there is none of this name, or it does not say.
    pub fn times_plain_copy(&self, name: &str) -> Option<f32> {
        self.list.iter().find(|mechanism| mechanism.name() == name)?.times_plain_copy(None)
    }

    /// Changes with all that [`Self::known`] tells of this peer.
    #[inline]
    pub(crate) fn version(&self, peer: PeerKey) -> u32 {
        self.versions.get(peer as usize).copied().unwrap_or_default()
    }

    fn changed(&mut self, peer: PeerKey) {
        let index = peer as usize;
        if self.versions.len() <= index {
            self.versions.resize(index + 1, 0);
        }
        self.versions[index] = self.versions[index].wrapping_add(1);
    }

    /// What can be set of each mechanism that has something to set.
    pub fn keys(&self) -> Vec<(&'static str, &'static [Key])> {
        let all = self.list.iter().map(|mechanism| (mechanism.name(), mechanism.keys()));
        all.filter(|(_, keys)| !keys.is_empty()).collect()
    }

    /// The value of a mechanism's key, if there is such a mechanism and it has
    /// such a key.
    pub fn get(&self, mechanism: &str, key: &str) -> Option<Value> {
        self.list.iter().find(|m| m.name() == mechanism)?.get(key)
    }

    /// Sets a mechanism's key, before the mechanisms are given to an endpoint.
    ///
    /// # Errors
    /// One sentence: there is no such mechanism or key, or it cannot have this
    /// value.
    pub fn set(&mut self, mechanism: &str, key: &str, value: Value) -> Result<(), String> {
        let Some(found) = self.list.iter_mut().find(|m| m.name() == mechanism) else {
            return Err(format!("there is no mechanism `{mechanism}`"));
        };
        if let Some(key) = found.keys().iter().find(|k| k.name == key) {
            key.check(&value).map_err(|rule| format!("{} is {value}; it must be {rule}", key.name))?;
        }
        found.set(key, value)
    }

    /// Notes that a mechanism is of no more use in one model with this peer.
    /// The sender stops proposing it; a receiver that could not copy knows that
    /// it cannot read the peer. Of all else the sender, which proposes, is told.
    /// `reason` says what happened in the middle of a message.
    pub fn give_up(
        &mut self,
        peer: PeerKey,
        tag: MechanismTag,
        model: Model,
        role: Role,
        reason: Unavailable,
    ) {
        let Some(at) = self.position(tag) else { return };
        if let Some(standing) = self.standings.get_mut(peer as usize).and_then(|s| s.get_mut(at)) {
            let lost = match (role, model) {
                (Role::Sender, Model::Get) => &mut standing.theirs.read,
                (Role::Sender, Model::Put | Model::Both) => &mut standing.ours.write,
                (Role::Sender, Model::Cooperative | Model::Stream) => &mut standing.ours.cooperate,
                (Role::Receiver, Model::Get | Model::Both) => &mut standing.ours.read,
                (Role::Receiver, _) => return,
            };
            *lost = false;
            let failed = format!("{model:?} failed in the middle of a message: {}", reason.sentence);
            match &mut standing.reason {
                None => standing.reason = Some(Unavailable { sentence: failed, ..reason }),
                Some(known) if known.sentence.contains(&failed) => {}
                // Each way can be lost once or twice, so this stays short.
                Some(known) if known.sentence.contains(&reason.sentence) => {
                    known.sentence = format!("{}; {model:?} failed likewise", known.sentence);
                }
                Some(known) => known.sentence = format!("{}; {failed}", known.sentence),
            }
        }
        self.changed(peer);
    }

    /// Forgets a peer that is gone; its transfers must be finished before.
    pub fn forget(&mut self, peer: PeerKey) {
        self.list.iter_mut().for_each(|m| m.forget(peer));
        self.parcels.retain(|(to, _)| *to != peer);
        if let Some(standings) = self.standings.get_mut(peer as usize) {
            standings.clear();
        }
        self.changed(peer);
    }
}

#[cfg(test)]
#[path = "mechanisms_tests.rs"]
mod tests;
