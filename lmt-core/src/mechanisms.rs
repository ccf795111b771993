//! The mechanisms of one endpoint, with their per-peer and per-transfer state.
//!
//! [`Lmt`] has associated types, so that a mechanism's author writes plain
//! structs; here they are put behind one object-safe trait and their state is
//! kept in tables, so that a transfer allocates nothing once the tables have
//! grown.

use std::collections::VecDeque;

use crate::bell::Bell;
use crate::buffer::Buffer;
use crate::checkup::{Finding, Host};
use crate::keys::{Key, Value};
use crate::mechanism::{
    Abilities, Cookie, DeclaredCopy, Direction, Fault, Hello, Interval, Lmt, Model, Needs, PeerFacts, Plan,
    Role, Step, Unavailable,
};
use crate::parcel::Parcel;
use crate::rendezvous::{MechanismTag, PeerKey};
use crate::selection::KnownMechanism;
use crate::slab::Slab;

/// A mechanism with its state, its types erased.
trait AnyLmt: Send {
    fn name(&self) -> &'static str;
    fn models(&self) -> &'static [Model];
    fn needs(&self) -> Needs;
    fn checkups(&self, host: &Host) -> Vec<Finding>;
    fn hello(&mut self) -> Result<Hello, Unavailable>;
    fn probe(&mut self, peer: PeerKey, facts: &PeerFacts, hello: Hello) -> Result<Abilities, Unavailable>;
    fn prepare(&mut self, peer: PeerKey, plan: &Plan, data: &Buffer) -> Result<(u64, Cookie), Fault>;
    fn start(&mut self, peer: PeerKey, handle: u64, remote: &Cookie, interval: Interval)
    -> Result<(), Fault>;
    fn step(&mut self, peer: PeerKey, handle: u64, data: &mut Buffer, max_bytes: u64) -> Result<Step, Fault>;
    fn finish(&mut self, peer: PeerKey, handle: u64);
    fn parcel(&mut self, peer: PeerKey) -> Option<Hello>;
    fn take_parcel(&mut self, peer: PeerKey, parcel: Hello);
    fn take_bell(&mut self, bell: &Bell);
    fn keys(&self) -> &'static [Key];
    fn get(&self, key: &str) -> Option<Value>;
    fn set(&mut self, key: &str, value: Value) -> Result<(), String>;
    fn copies_declared(&self) -> bool;
    fn copy_declared(
        &mut self,
        peer: PeerKey,
        local: &mut Buffer,
        copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault>;
    fn forget(&mut self, peer: PeerKey);
}

struct Table<M: Lmt> {
    lmt: M,
    peers: Vec<Option<M::Peer>>,
    transfers: Slab<M::Transfer>,
}

/// A transfer was asked of a peer that this mechanism does not know.
fn unknown() -> Fault {
    Fault::Demote {
        errno: 0,
        for_good: true,
        sentence: "the mechanism was never probed with this peer".into(),
    }
}

impl<M: Lmt> AnyLmt for Table<M> {
    fn name(&self) -> &'static str {
        self.lmt.name()
    }

    fn models(&self) -> &'static [Model] {
        self.lmt.models()
    }

    fn needs(&self) -> Needs {
        self.lmt.needs()
    }

    fn checkups(&self, host: &Host) -> Vec<Finding> {
        self.lmt.checkups(host)
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.lmt.hello()
    }

    fn probe(&mut self, peer: PeerKey, facts: &PeerFacts, hello: Hello) -> Result<Abilities, Unavailable> {
        let (state, outcome) = match self.lmt.probe(facts, hello) {
            Ok((state, abilities)) => (Some(state), Ok(abilities)),
            Err(reason) => (self.lmt.passive(facts), Err(reason)),
        };
        let index = peer as usize;
        if self.peers.len() <= index {
            self.peers.resize_with(index + 1, || None);
        }
        self.peers[index] = state;
        outcome
    }

    fn prepare(&mut self, peer: PeerKey, plan: &Plan, data: &Buffer) -> Result<(u64, Cookie), Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        let (transfer, cookie) = self.lmt.prepare(state, plan, data)?;
        Ok((self.transfers.insert(transfer), cookie))
    }

    fn start(
        &mut self,
        peer: PeerKey,
        handle: u64,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        let transfer = self.transfers.get_mut(handle).ok_or_else(unknown)?;
        self.lmt.start(state, transfer, remote, interval)
    }

    fn step(&mut self, peer: PeerKey, handle: u64, data: &mut Buffer, max_bytes: u64) -> Result<Step, Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        let transfer = self.transfers.get_mut(handle).ok_or_else(unknown)?;
        self.lmt.step(state, transfer, data, max_bytes)
    }

    fn finish(&mut self, peer: PeerKey, handle: u64) {
        let Some(transfer) = self.transfers.remove(handle) else { return };
        if let Some(state) = self.peers.get_mut(peer as usize).and_then(Option::as_mut) {
            self.lmt.finish(state, transfer);
        }
    }

    fn parcel(&mut self, peer: PeerKey) -> Option<Hello> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut)?;
        self.lmt.parcel(state)
    }

    fn take_parcel(&mut self, peer: PeerKey, parcel: Hello) {
        if let Some(state) = self.peers.get_mut(peer as usize).and_then(Option::as_mut) {
            self.lmt.take_parcel(state, parcel);
        }
    }

    fn take_bell(&mut self, bell: &Bell) {
        self.lmt.take_bell(bell);
    }

    fn keys(&self) -> &'static [Key] {
        self.lmt.keys()
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.lmt.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.lmt.set(key, value)
    }

    fn copies_declared(&self) -> bool {
        self.lmt.copies_declared()
    }

    fn copy_declared(
        &mut self,
        peer: PeerKey,
        local: &mut Buffer,
        copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        self.lmt.copy_declared(state, local, copy)
    }

    fn forget(&mut self, peer: PeerKey) {
        if let Some(state) = self.peers.get_mut(peer as usize) {
            *state = None;
        }
    }
}

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

/// What one mechanism has done with one peer, seen from this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages, sent or received, that it brought to a good end. One that
    /// went from mechanism to mechanism counts for the last.
    pub messages: u64,
    /// Bytes that this process's own steps moved: in the Get model what was
    /// received, in Put what was sent, in Cooperative both.
    pub bytes: u64,
    /// How often it could not go on in this process.
    pub demotions: u64,
    /// Those of the messages that this process sent.
    pub sent: Tally,
    /// Those that it received.
    pub received: Tally,
}

impl Counters {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.demotions += other.demotions;
        self.sent.add(other.sent);
        self.received.add(other.received);
    }
}

/// Messages, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub messages: u64,
    /// Their lengths together, whoever copied them.
    pub bytes: u64,
}

impl Tally {
    /// One more message.
    #[inline]
    pub const fn count(&mut self, bytes: u64) {
        self.messages = self.messages.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// Adds another tally.
    pub const fn add(&mut self, other: Self) {
        self.messages = self.messages.wrapping_add(other.messages);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// The list of mechanisms, in order of preference.
#[derive(Default)]
pub struct Mechanisms {
    list: Vec<Box<dyn AnyLmt>>,
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
        self.list.push(Box::new(Table { lmt, peers: Vec::new(), transfers: Slab::new() }));
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
        self.list.iter().position(|m| MechanismTag::of(m.name()) == tag)
    }

    /// The name behind a tag.
    pub fn name_of(&self, tag: MechanismTag) -> Option<&'static str> {
        self.position(tag).map(|at| self.list[at].name())
    }

    /// What every mechanism that works here tells a new peer.
    pub fn hellos(&mut self) -> Vec<(MechanismTag, Hello)> {
        let mut hellos = Vec::with_capacity(self.list.len());
        for (mechanism, absent) in self.list.iter_mut().zip(&mut self.absent) {
            match mechanism.hello() {
                // What was refused once may be allowed by now.
                Ok(hello) => {
                    *absent = None;
                    hellos.push((MechanismTag::of(mechanism.name()), hello));
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
        for (mechanism, absent) in self.list.iter_mut().zip(&self.absent) {
            let tag = MechanismTag::of(mechanism.name());
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
        if self.counters.len() <= index {
            self.counters.resize_with(index + 1, Vec::new);
        }
        let fresh = vec![Counters::default(); self.list.len()];
        let counted = std::mem::replace(&mut self.counters[index], fresh);
        self.past.resize(self.list.len(), Counters::default());
        self.past.iter_mut().zip(&counted).for_each(|(past, counted)| past.add(counted));
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

    /// What each mechanism has done with this peer, by name.
    pub fn counters(&self, peer: PeerKey) -> impl Iterator<Item = (&'static str, Counters)> {
        let known = self.counters.get(peer as usize).map_or(&[][..], Vec::as_slice);
        self.list.iter().map(|m| m.name()).zip(known.iter().copied())
    }

    fn count(&mut self, peer: PeerKey, at: usize, change: impl FnOnce(&mut Counters)) {
        if let Some(counters) = self.counters.get_mut(peer as usize).and_then(|c| c.get_mut(at)) {
            change(counters);
        }
    }

    /// What each mechanism has done with all peers, by name.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, Counters)> {
        self.list.iter().enumerate().map(|(at, mechanism)| {
            let mut total = self.past.get(at).copied().unwrap_or_default();
            self.counters.iter().filter_map(|counted| counted.get(at)).for_each(|c| total.add(c));
            (mechanism.name(), total)
        })
    }

    /// Counts a message of `bytes` that `h` brought to its end.
    pub(crate) fn count_message(&mut self, h: Handle, role: Role, bytes: u64) {
        self.count(h.peer, h.mechanism as usize, |c| {
            c.messages += 1;
            match role {
                Role::Sender => c.sent.count(bytes),
                Role::Receiver => c.received.count(bytes),
            }
        });
    }

    fn count_fault(&mut self, peer: PeerKey, at: usize, fault: &Fault) {
        if matches!(fault, Fault::Demote { .. }) {
            self.count(peer, at, |c| c.demotions += 1);
        }
    }

    /// The mechanisms in order, each with what is known of it with this peer.
    pub fn known(&self, peer: PeerKey) -> Vec<KnownMechanism> {
        let standings = self.standings.get(peer as usize).map_or(&[][..], Vec::as_slice);
        let known = |at: usize| {
            let mut standing = standings.get(at).cloned().unwrap_or_default();
            if standing.reason.is_none() {
                standing.reason = self.absent[at].clone();
            }
            let name = self.list[at].name();
            KnownMechanism { name, tag: MechanismTag::of(name), models: self.list[at].models(), standing }
        };
        (0..self.list.len()).map(known).collect()
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
                (Role::Sender, Model::Put) => &mut standing.ours.write,
                (Role::Sender, Model::Cooperative) => &mut standing.ours.cooperate,
                (Role::Receiver, Model::Get) => &mut standing.ours.read,
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

    /// See [`Lmt::prepare`].
    pub(crate) fn prepare(
        &mut self,
        tag: MechanismTag,
        peer: PeerKey,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Handle, Cookie), Fault> {
        let at = self.position(tag).ok_or_else(unknown)?;
        let prepared = self.list[at].prepare(peer, plan, data);
        self.collect(peer, at);
        let (handle, cookie) = prepared.inspect_err(|fault| self.count_fault(peer, at, fault))?;
        Ok((Handle { mechanism: at as u32, handle, peer }, cookie))
    }

    /// See [`Lmt::start`].
    pub(crate) fn start(&mut self, h: Handle, remote: &Cookie, interval: Interval) -> Result<(), Fault> {
        let at = h.mechanism as usize;
        let started = self.list[at].start(h.peer, h.handle, remote, interval);
        self.collect(h.peer, at);
        started.inspect_err(|fault| self.count_fault(h.peer, at, fault))
    }

    /// See [`Lmt::step`].
    pub(crate) fn step(&mut self, h: Handle, data: &mut Buffer, max_bytes: u64) -> Result<Step, Fault> {
        let at = h.mechanism as usize;
        let outcome = self.list[at].step(h.peer, h.handle, data, max_bytes);
        self.collect(h.peer, at);
        match &outcome {
            Ok(step) => self.count(h.peer, at, |c| c.bytes = c.bytes.saturating_add(step.bytes)),
            Err(fault) => self.count_fault(h.peer, at, fault),
        }
        outcome
    }

    /// Whether a mechanism reaches the peer's declared memory in this
    /// direction, as far as the probe could tell.
    pub(crate) fn reaches(&self, peer: PeerKey, only: Option<&[String]>, direction: Direction) -> bool {
        let Some(standings) = self.standings.get(peer as usize) else { return false };
        let able = |at: usize| {
            self.list[at].copies_declared()
                && standings.get(at).is_some_and(|s| match direction {
                    Direction::Get => s.ours.read,
                    Direction::Put => s.ours.write,
                })
        };
        match only {
            None => (0..self.list.len()).any(able),
            Some(names) => self.meant_by(names).any(able),
        }
    }

    /// Copies by the first mechanism that reaches the peer's memory; `only`
    /// restricts and orders them by name. See [`Lmt::copy_declared`].
    ///
    /// # Errors
    /// [`Fault::PeerDead`], or one sentence that says why each of them cannot,
    /// with the errno of the last that tried.
    pub(crate) fn copy_declared(
        &mut self,
        peer: PeerKey,
        only: Option<&[String]>,
        local: &mut Buffer,
        copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault> {
        let (mut reasons, mut refused_by) = (Vec::new(), 0);
        let order: Vec<usize> = match only {
            None => (0..self.list.len()).collect(),
            Some(names) => self.meant_by(names).collect(),
        };
        for at in order {
            let standing = self.standings.get(peer as usize).and_then(|s| s.get(at));
            let refusal = standing.and_then(|s| {
                let able = match copy.direction {
                    Direction::Get => s.ours.read,
                    Direction::Put => s.ours.write,
                };
                s.reason.as_ref().filter(|_| !able)
            });
            let mechanism = &mut self.list[at];
            if let Some(refusal) = refusal {
                reasons.push(format!("{}: {refusal}", mechanism.name()));
                continue;
            }
            match mechanism.copy_declared(peer, local, copy) {
                Ok(bytes) => return Ok(bytes),
                Err(Fault::PeerDead) => return Err(Fault::PeerDead),
                Err(fault) => {
                    if let Fault::Demote { errno, .. } = fault
                        && errno != 0
                    {
                        refused_by = errno;
                    }
                    reasons.push(format!("{}: {fault}", mechanism.name()));
                }
            }
        }
        let sentence = if reasons.is_empty() { "there is none".into() } else { reasons.join("; ") };
        Err(Fault::Demote { errno: refused_by, for_good: false, sentence })
    }

    /// See [`Lmt::finish`].
    pub(crate) fn finish(&mut self, h: Handle) {
        let at = h.mechanism as usize;
        self.list[at].finish(h.peer, h.handle);
        self.collect(h.peer, at);
    }

    /// Takes what a mechanism has for the peer after a call for it.
    #[inline]
    fn collect(&mut self, peer: PeerKey, at: usize) {
        while let Some(parcel) = self.list[at].parcel(peer) {
            let mechanism = MechanismTag::of(self.list[at].name());
            self.parcels.push_back((peer, Parcel { mechanism, content: parcel }));
        }
    }

    /// Whether there are parcels to be handed over.
    pub(crate) fn has_parcels(&self) -> bool {
        !self.parcels.is_empty()
    }

    /// The parcels to be handed over, in order.
    pub(crate) fn take_parcels(&mut self) -> VecDeque<(PeerKey, Parcel)> {
        std::mem::take(&mut self.parcels)
    }

    /// Keeps a parcel for later. All that a peer has are put back in order, so
    /// none overtakes another.
    pub(crate) fn put_back(&mut self, peer: PeerKey, parcel: Parcel) {
        self.parcels.push_back((peer, parcel));
    }

    /// Takes a parcel from a peer. Returns whether there is such a mechanism.
    pub(crate) fn take_parcel(&mut self, peer: PeerKey, parcel: Parcel) -> bool {
        let at = self.position(parcel.mechanism);
        if let Some(at) = at {
            self.list[at].take_parcel(peer, parcel.content);
        }
        at.is_some()
    }
}

/// A transfer under way in one mechanism's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    mechanism: u32,
    handle: u64,
    peer: PeerKey,
}

#[cfg(test)]
#[path = "mechanisms_tests.rs"]
mod tests;
