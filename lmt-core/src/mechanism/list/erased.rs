//! A mechanism with its types erased: [`Lmt`] has associated types, so that a
//! mechanism's author writes plain structs; here they are put behind one
//! object-safe trait.

use super::MESSAGES_ONLY;
use crate::base::slab::Slab;
use crate::mechanism::{Background, Diagnosis, Left, Lmt, RegisteredCopy, Settings};
use crate::memory::buffer::Buffer;
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::peer_facts::{Hello, PeerFacts, Probed, Unavailable};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

/// A mechanism with its state, its types erased.
pub(super) trait AnyLmt: Send {
    fn hello(&mut self) -> Result<Hello, Unavailable>;
    fn probe(&mut self, peer: PeerKey, facts: &PeerFacts, hello: Hello) -> Result<Probed<()>, Unavailable>;
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
    fn leave(&mut self, peer: PeerKey, handle: u64) -> Left;
    fn finish(&mut self, peer: PeerKey, handle: u64);
    fn oob_message(&mut self, peer: PeerKey) -> Option<Hello>;
    fn take_oob_message(&mut self, peer: PeerKey, oob_message: Hello);
    fn copy_registered(
        &mut self,
        peer: PeerKey,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault>;
    fn forget(&mut self, peer: PeerKey);
    // These have no types to erase.
    fn background(&mut self) -> Option<&mut dyn Background>;
    fn settings(&mut self) -> Option<&mut dyn Settings>;
    fn diagnosis(&self) -> Option<&dyn Diagnosis>;
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

    /// Whether it offers regions.
    pub fn has_regions(&mut self) -> bool {
        self.lmt.regions().is_some()
    }

    /// Whether it offers out-of-band messages.
    pub fn has_oob_messages(&mut self) -> bool {
        self.lmt.oob_messages().is_some()
    }
}

impl<M: Lmt> AnyLmt for Table<M> {
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.lmt.hello()
    }

    fn probe(&mut self, peer: PeerKey, facts: &PeerFacts, hello: Hello) -> Result<Probed<()>, Unavailable> {
        let mut state = None;
        let outcome = self.lmt.probe(facts, hello).map(|probed| probed.map(|peer| state = Some(peer)));
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

    fn leave(&mut self, peer: PeerKey, handle: u64) -> Left {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let (Some(state), Some(transfer)) = (state, self.transfers.get_mut(handle)) else {
            return Left::default();
        };
        self.lmt.shared_completion().map_or_else(Left::default, |shared| shared.leave(state, transfer))
    }

    fn finish(&mut self, peer: PeerKey, handle: u64) {
        let Some(transfer) = self.transfers.remove(handle) else { return };
        if let Some(state) = self.peers.get_mut(peer as usize).and_then(Option::as_mut) {
            self.lmt.finish(state, transfer);
        }
    }

    fn oob_message(&mut self, peer: PeerKey) -> Option<Hello> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut)?;
        self.lmt.oob_messages()?.oob_message(state)
    }

    fn take_oob_message(&mut self, peer: PeerKey, oob_message: Hello) {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        if let (Some(oob_messages), Some(state)) = (self.lmt.oob_messages(), state) {
            oob_messages.take_oob_message(state, oob_message);
        }
    }

    fn copy_registered(
        &mut self,
        peer: PeerKey,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        let state = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or_else(unknown)?;
        match self.lmt.regions() {
            Some(regions) => regions.copy_registered(state, local, copy),
            None => Err(Fault::Demote { errno: 0, for_good: true, sentence: MESSAGES_ONLY.to_owned() }),
        }
    }

    fn forget(&mut self, peer: PeerKey) {
        if let Some(state) = self.peers.get_mut(peer as usize).and_then(Option::take) {
            self.lmt.forget_peer(state);
        }
    }

    fn background(&mut self) -> Option<&mut dyn Background> {
        self.lmt.background()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        self.lmt.settings()
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        self.lmt.diagnosis()
    }
}
