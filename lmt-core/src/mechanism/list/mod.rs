//! The mechanisms of one endpoint, with their per-peer and per-transfer state.
//!
//! Their state is kept in tables, so that a transfer allocates nothing once the tables have
//! grown.

mod calls;
mod counters;
mod erased;

use std::collections::VecDeque;

#[cfg(doc)]
use super::Diagnosis;
use super::diagnostic::{Finding, Host};
use super::known::{KnownMechanism, MechanismStatus};
use super::oob_message::OobMessage;
use super::{Description, Lmt, Settings};
use crate::base::doorbell::Doorbell;
use crate::vocabulary::config_key::{Key, Value};
use crate::vocabulary::identity::{MechanismTag, PeerKey};
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::peer_facts::{Abilities, Hello, PeerFacts, Probed, Unavailable};
pub(crate) use calls::Handle;
pub use counters::{Counters, Tally};
use erased::{AnyLmt, Table};

/// What is said of a mechanism that offers no regions.
pub(crate) const MESSAGES_ONLY: &str = "it moves messages and cannot reach a peer's registered memory";

/// Whether `asked`, which may be the name of a family, means the mechanism of
/// this name.
///
/// Who copies may be said behind a colon ([`crate::selection::PathName`]); that
/// is not looked at here.
pub fn is_meant(asked: &str, name: &str) -> bool {
    let asked = match asked.split_once(':') {
        Some((name, model)) if Model::from_name(model).is_some() => name,
        _ => asked,
    };
    name.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// A mechanism, with what it was asked once.
struct Registered {
    lmt: Box<dyn AnyLmt>,
    description: Description,
    /// Whether it reaches registered memory.
    copies_registered: bool,
    has_oob_messages: bool,
    /// Why it does not work in this process, if so.
    absent: Option<Unavailable>,
}

/// The list of mechanisms, in order of preference.
#[derive(Default)]
pub struct Mechanisms {
    list: Vec<Registered>,
    /// The tag of each mechanism in `list`, which every message looks for.
    tags: Vec<MechanismTag>,
    /// For each peer, what is known of each mechanism in `list`.
    mechanism_status: Vec<Vec<MechanismStatus>>,
    /// As `mechanism_status`: what [`Probed::times_plain_copy`] said.
    times_plain_copy: Vec<Vec<Option<f32>>>,
    /// As `mechanism_status`; they stay when a peer is gone, and begin anew with the
    /// next probe.
    counters: Vec<Vec<Counters>>,
    /// For each peer, how often what is known of it has changed.
    versions: Vec<u32>,
    /// What was counted of each mechanism with peers that were probed anew
    /// since.
    past: Vec<Counters>,
    /// What mechanisms have for peers' mechanisms, in order.
    oob_messages: VecDeque<(PeerKey, OobMessage)>,
}

impl Mechanisms {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mechanism behind those that are there, as it is.
    pub(crate) fn add<M: Lmt>(&mut self, lmt: M) {
        let description = lmt.description();
        let mut table = Table::new(lmt);
        let (copies_registered, has_oob_messages) = (table.has_regions(), table.has_oob_messages());
        let lmt = Box::new(table);
        self.tags.push(MechanismTag::of(description.name));
        self.list.push(Registered { lmt, description, copies_registered, has_oob_messages, absent: None });
    }

    /// Tells every mechanism that works in the background how to wake the endpoint.
    pub fn give_doorbell(&mut self, doorbell: &Doorbell) {
        let all = self.list.iter_mut().filter_map(|m| m.lmt.background());
        all.for_each(|background| background.take_doorbell(doorbell));
    }

    /// Keeps only the mechanisms that are named, in that order. What is left out
    /// is neither used nor offered to peers. A name without its last part, as
    /// `a` for `a-b` and `a-c`, means all of that family, in their order.
    pub fn restrict(&mut self, names: &[String]) {
        let mut kept = Vec::with_capacity(names.len());
        for name in names {
            while let Some(at) = self.list.iter().position(|m| is_meant(name, m.description.name)) {
                kept.push(self.list.remove(at));
            }
        }
        self.tags = kept.iter().map(|mechanism| MechanismTag::of(mechanism.description.name)).collect();
        self.list = kept;
    }

    /// Where the mechanisms stand in the list that these names mean, in order,
    /// each once.
    fn meant_by<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = usize> {
        let means = |name: &String, at: usize| is_meant(name, self.list[at].description.name);
        names.iter().enumerate().flat_map(move |(number, name)| {
            (0..self.list.len()).filter(move |&at| {
                means(name, at) && !names[..number].iter().any(|earlier| means(earlier, at))
            })
        })
    }

    /// Why no mechanism works with a peer, as far as that is known.
    pub(crate) fn reasons(&self, peer: PeerKey) -> String {
        let reason = |(name, standing): (&str, &MechanismStatus)| {
            let reason = standing.reason.as_ref()?;
            Some(format!("{name}: {reason}"))
        };
        self.mechanism_status(peer).filter_map(reason).collect::<Vec<_>>().join("; ")
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.list.iter().map(|m| m.description.name).collect()
    }

    /// What each is, in order.
    pub fn descriptions(&self) -> Vec<Description> {
        self.list.iter().map(|m| m.description).collect()
    }

    /// What each finds on a machine, by name, in order ([`Diagnosis::diagnostics`]).
    pub fn diagnostics(&self, host: &Host) -> Vec<(&'static str, Vec<Finding>)> {
        let found = |m: &Registered| m.lmt.diagnosis().map_or_else(Vec::new, |d| d.diagnostics(host));
        self.list.iter().map(|m| (m.description.name, found(m))).collect()
    }

    fn position(&self, tag: MechanismTag) -> Option<usize> {
        self.tags.iter().position(|known| *known == tag)
    }

    /// The name behind a tag.
    pub fn name_of(&self, tag: MechanismTag) -> Option<&'static str> {
        self.position(tag).map(|at| self.list[at].description.name)
    }

    /// What every mechanism that works here tells a new peer.
    pub fn hellos(&mut self) -> Vec<(MechanismTag, Hello)> {
        let mut hellos = Vec::with_capacity(self.list.len());
        for (mechanism, tag) in self.list.iter_mut().zip(&self.tags) {
            match mechanism.lmt.hello() {
                // What was refused once may be allowed by now.
                Ok(hello) => {
                    mechanism.absent = None;
                    hellos.push((*tag, hello));
                }
                Err(reason) => mechanism.absent = Some(reason),
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
        let mut mechanism_status = Vec::with_capacity(self.list.len());
        let mut times_plain_copy = Vec::with_capacity(self.list.len());
        let mut report = Vec::with_capacity(self.list.len());
        for (mechanism, &tag) in self.list.iter_mut().zip(&self.tags) {
            let told = hellos.iter().position(|(t, _)| *t == tag).map(|at| hellos.swap_remove(at).1);
            let outcome = match (&mechanism.absent, told) {
                (Some(reason), _) => Err(reason.clone()),
                (None, Some(hello)) => mechanism.lmt.probe(peer, facts, hello),
                (None, None) => Err(Unavailable {
                    errno: 0,
                    sentence: format!("{} does not work in the peer's process", mechanism.description.name),
                }),
            };
            let (found, times) = match outcome {
                Ok(Probed { abilities, times_plain_copy, .. }) => (abilities, times_plain_copy),
                Err(reason) => (Err(reason), None),
            };
            let (ours, reason) = match found {
                Ok(abilities) => (abilities, None),
                Err(reason) => (Abilities::default(), Some(reason)),
            };
            report.push((tag, ours));
            mechanism_status.push(MechanismStatus { ours, theirs: Abilities::default(), reason });
            times_plain_copy.push(times);
        }
        let index = peer as usize;
        if self.mechanism_status.len() <= index {
            self.mechanism_status.resize_with(index + 1, Vec::new);
            self.times_plain_copy.resize_with(index + 1, Vec::new);
        }
        self.mechanism_status[index] = mechanism_status;
        self.times_plain_copy[index] = times_plain_copy;
        self.changed(peer);
        self.count_anew(peer);
        report
    }

    /// Takes what the peer found that it can do with this process.
    pub fn learn(&mut self, peer: PeerKey, report: &[(MechanismTag, Abilities)]) {
        for (tag, theirs) in report {
            let Some(at) = self.position(*tag) else { continue };
            if let Some(standing) = self.mechanism_status.get_mut(peer as usize).and_then(|s| s.get_mut(at)) {
                standing.theirs = *theirs;
            }
        }
        self.changed(peer);
    }

    /// What is known of each mechanism with this peer, by name.
    pub fn mechanism_status(&self, peer: PeerKey) -> impl Iterator<Item = (&'static str, &MechanismStatus)> {
        let known = self.mechanism_status.get(peer as usize).map_or(&[][..], Vec::as_slice);
        self.list.iter().map(|m| m.description.name).zip(known)
    }

    /// The mechanisms in order, each with what is known of it with this peer.
    pub fn known(&self, peer: PeerKey) -> Vec<KnownMechanism> {
        let mechanism_status = self.mechanism_status.get(peer as usize).map_or(&[][..], Vec::as_slice);
        let known = |at: usize| {
            let mut standing = mechanism_status.get(at).cloned().unwrap_or_default();
            let &Registered { description, copies_registered, ref absent, .. } = &self.list[at];
            if standing.reason.is_none() {
                standing.reason = absent.clone();
            }
            let Description { name, models, reach, .. } = description;
            let tag = self.tags[at];
            // Of no use where it does not work with the peer, or no more.
            let works = standing.ours != Abilities::default();
            let times = self.times_plain_copy.get(peer as usize).filter(|_| works);
            let times_plain_copy = times.and_then(|times| times.get(at).copied().flatten());
            KnownMechanism { name, tag, models, reach, copies_registered, times_plain_copy, standing }
        };
        (0..self.list.len()).map(known).collect()
    }

    /// How many times as long as a plain copy the mechanism's copies take, as far as
    /// this process has found ([`Diagnosis::times_plain_copy`]); nothing
    /// where there is none of this name, or it does not say.
    pub fn times_plain_copy(&self, name: &str) -> Option<f32> {
        self.list.iter().find(|m| m.description.name == name)?.lmt.diagnosis()?.times_plain_copy()
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
    pub fn keys(&mut self) -> Vec<(&'static str, &'static [Key])> {
        let of = |m: &mut Registered| Some((m.description.name, m.lmt.settings()?.keys()));
        self.list.iter_mut().filter_map(of).filter(|(_, keys)| !keys.is_empty()).collect()
    }

    fn settings(&mut self, mechanism: &str) -> Option<&mut dyn Settings> {
        self.list.iter_mut().find(|m| m.description.name == mechanism)?.lmt.settings()
    }

    /// The value of a mechanism's key, if there is such a mechanism and it has
    /// such a key.
    pub fn get(&mut self, mechanism: &str, key: &str) -> Option<Value> {
        self.settings(mechanism)?.get(key)
    }

    /// Sets a mechanism's key, before the mechanisms are given to an endpoint.
    ///
    /// # Errors
    /// One sentence: there is no such mechanism or key, or it cannot have this
    /// value.
    pub fn set(&mut self, mechanism: &str, key: &str, value: Value) -> Result<(), String> {
        if !self.names().contains(&mechanism) {
            return Err(format!("there is no mechanism `{mechanism}`"));
        }
        let settings = self.settings(mechanism);
        let settings = settings.ok_or_else(|| format!("{mechanism} has no key `{key}`"))?;
        if let Some(key) = settings.keys().iter().find(|k| k.name == key) {
            key.check(&value).map_err(|rule| format!("{} is {value}; it must be {rule}", key.name))?;
        }
        settings.set(key, value)
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
        if let Some(standing) = self.mechanism_status.get_mut(peer as usize).and_then(|s| s.get_mut(at)) {
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
        self.list.iter_mut().for_each(|m| m.lmt.forget(peer));
        self.oob_messages.retain(|(to, _)| *to != peer);
        if let Some(mechanism_status) = self.mechanism_status.get_mut(peer as usize) {
            mechanism_status.clear();
        }
        self.changed(peer);
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
