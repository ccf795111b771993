//! A mechanism with its types erased: [`Lmt`] has associated types, so that a
//! mechanism's author writes plain structs; here they are put behind one
//! object-safe trait.

use crate::bell::Bell;
use crate::buffer::Buffer;
use crate::checkup::{Finding, Host};
use crate::keys::{Key, Value};
use crate::mechanism::{
    Abilities, Cookie, DeclaredCopy, Fault, Hello, Interval, Lmt, Model, Needs, PeerFacts, Plan, Reach, Step,
    Unavailable,
};
use crate::rendezvous::PeerKey;
use crate::slab::Slab;

/// A mechanism with its state, its types erased.
pub(super) trait AnyLmt: Send {
    fn name(&self) -> &'static str;
    fn models(&self) -> &'static [Model];
    fn needs(&self) -> Needs;
    fn reach(&self) -> Reach;
    fn times_plain_copy(&self, peer: Option<PeerKey>) -> Option<f32>;
    fn checkups(&self, host: &Host) -> Vec<Finding>;
    fn hello(&mut self) -> Result<Hello, Unavailable>;
    fn probe(&mut self, peer: PeerKey, facts: &PeerFacts, hello: Hello) -> Result<Abilities, Unavailable>;
    /// The cookie is written where it is to be: it is long, and moved often enough.
    fn prepare(
        &mut self,
        peer: PeerKey,
        plan: &Plan,
        data: &Buffer,
        cookie: &mut Cookie,
    ) -> Result<u64, Fault>;
    fn start(&mut self, peer: PeerKey, handle: u64, remote: &Cookie, interval: Interval)
    -> Result<(), Fault>;
    fn step(&mut self, peer: PeerKey, handle: u64, data: &mut Buffer, max_bytes: u64) -> Result<Step, Fault>;
    fn leave(&mut self, peer: PeerKey, handle: u64) -> bool;
    fn copied_by_peer(&self, handle: u64) -> u64;
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

/// A mechanism with its state.
pub(super) struct Table<M: Lmt> {
    lmt: M,
    peers: Vec<Option<M::Peer>>,
    transfers: Slab<M::Transfer>,
}

/// A transfer was asked of a peer that this mechanism does not know.
pub(super) fn unknown() -> Fault {
    Fault::Demote {
        errno: 0,
        for_good: true,
        sentence: "the mechanism was never probed with this peer".into(),
    }
}

impl<M: Lmt> Table<M> {
    pub fn new(lmt: M) -> Self {
        Self { lmt, peers: Vec::new(), transfers: Slab::new() }
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

    fn reach(&self) -> Reach {
        self.lmt.reach()
    }

    fn times_plain_copy(&self, peer: Option<PeerKey>) -> Option<f32> {
        let peer = peer.and_then(|peer| self.peers.get(peer as usize)?.as_ref());
        self.lmt.times_plain_copy(peer)
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
        if let Some(old) = std::mem::replace(&mut self.peers[index], state) {
            self.lmt.forget_peer(old);
        }
        outcome
    }

    fn prepare(
        &mut self,
        peer: PeerKey,
        plan: &Plan,
        data: &Buffer,
        cookie: &mut Cookie,
    ) -> Result<u64, Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        match self.lmt.prepare(state, plan, data) {
            Ok((transfer, described)) => {
                *cookie = described;
                Ok(self.transfers.insert(transfer))
            }
            Err(fault) => Err(fault),
        }
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

    fn leave(&mut self, peer: PeerKey, handle: u64) -> bool {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let (Some(state), Some(transfer)) = (state, self.transfers.get_mut(handle)) else { return false };
        self.lmt.leave(state, transfer)
    }

    fn copied_by_peer(&self, handle: u64) -> u64 {
        self.transfers.get(handle).map_or(0, |transfer| self.lmt.copied_by_peer(transfer))
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
        if let Some(state) = self.peers.get_mut(peer as usize).and_then(Option::take) {
            self.lmt.forget_peer(state);
        }
    }
}
