//! A mechanism of the Both model, made of one that copies parts.

use std::sync::Arc;

use super::receiver::Claims;
use super::sender::{Help, PeerClaims};
use super::side::Side;
use crate::mechanism::{
    Background, CopiedPart, Description, Diagnosis, Left, Lmt, Mechanisms, Model, OobMessages, Regions,
    RegisteredCopy, Role, Settings, SharedCompletion,
};
use crate::memory::buffer::Buffer;
use crate::vocabulary::peer_facts::{Hello, PeerFacts, Probed, Unavailable};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

impl Mechanisms {
    /// Adds a mechanism behind those that are there.
    pub fn register<M: Lmt>(&mut self, mut lmt: M) {
        if lmt.both_ends().is_some() { self.add(ByBothEnds::new(lmt)) } else { self.add(lmt) }
    }
}

/// A mechanism and the claims on its messages. [`Mechanisms::register`] makes it of each that
/// offers [`Lmt::both_ends`]; one that offers none stays what it is.
#[derive(Debug)]
pub struct ByBothEnds<M> {
    lmt: M,
    claims: Claims,
}

/// A peer, and its claims.
#[derive(Debug)]
pub struct ClaimingPeer<P> {
    peer: P,
    claims: PeerClaims,
}

/// A transfer, and what this end claims of it in the Both model.
#[derive(Debug)]
pub struct ClaimedTransfer<T> {
    transfer: T,
    claimed: Option<Claimed>,
}

#[derive(Debug)]
struct Claimed {
    side: Side,
    /// At a sender, until its first part: what [`Lmt::start`] is to be given. Before there is
    /// a claim the receiver may have ended the message, and what describes it is gone.
    ahead: Option<(Cookie, Interval)>,
}

impl<M: Lmt> ByBothEnds<M> {
    /// Nothing is claimed yet; memory is taken with the first message that a peer may help with.
    pub fn new(lmt: M) -> Self {
        Self { lmt, claims: Claims::default() }
    }

    /// This end's part in a message, and its cookie, of the mechanism's for it.
    fn claim(
        &mut self,
        peer: &mut PeerClaims,
        plan: &Plan,
        cookie: Cookie,
    ) -> Result<(Option<Claimed>, Cookie), Fault> {
        if plan.model != Model::Both || self.lmt.both_ends().is_none() {
            return Ok((None, cookie));
        }
        let (side, cookie) = match plan.role {
            // Until the receiver's cookie is there it copies nothing.
            Role::Sender => (Side::Out(Help::none()), cookie),
            Role::Receiver if cookie.as_bytes().len() > plan.cookie_bytes() => {
                return Err(demote("the mechanism's cookie is longer than a packet can take; use another"));
            }
            Role::Receiver => {
                let reception = if cookie.as_bytes().is_empty() {
                    self.claims.receive_alone(plan.interval)
                } else {
                    self.claims.introduce(peer);
                    self.claims.receive(peer, plan.interval)
                };
                let named = cookie.behind(reception.name()).unwrap_or(cookie);
                (Side::In(reception), named)
            }
        };
        Ok((Some(Claimed { side, ahead: None }), cookie))
    }
}

impl<M: Lmt> Lmt for ByBothEnds<M> {
    type Peer = ClaimingPeer<M::Peer>;
    type Transfer = ClaimedTransfer<M::Transfer>;

    fn description(&self) -> Description {
        self.lmt.description()
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.lmt.hello()
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<Self::Peer>, Unavailable> {
        let claims = PeerClaims::new(Arc::clone(&facts.process));
        Ok(self.lmt.probe(facts, hello)?.map(|peer| ClaimingPeer { peer, claims }))
    }

    fn forget_peer(&mut self, peer: Self::Peer) {
        self.lmt.forget_peer(peer.peer);
    }

    fn prepare(
        &mut self,
        peer: &mut Self::Peer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        let (transfer, cookie) = self.lmt.prepare(&mut peer.peer, plan, data)?;
        match self.claim(&mut peer.claims, plan, cookie) {
            Ok((claimed, cookie)) => Ok((ClaimedTransfer { transfer, claimed }, cookie)),
            Err(fault) => {
                // Known to nobody.
                self.lmt.finish(&mut peer.peer, transfer);
                Err(fault)
            }
        }
    }

    fn start(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        let Some(Claimed { side: side @ Side::Out(_), ahead }) = &mut transfer.claimed else {
            return self.lmt.start(&mut peer.peer, &mut transfer.transfer, remote, interval);
        };
        let (name, described) = remote
            .split()
            .ok_or_else(|| demote("the peer's cookie names no claims; its lmt may be of another version"))?;
        *side = Side::Out(Help::new(&peer.claims, name, interval, self.claims.sharing().steal_bytes));
        *ahead = Some((described, interval));
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let ClaimingPeer { peer, claims: peer_claims } = peer;
        let ClaimedTransfer { transfer, claimed } = transfer;
        let Some(Claimed { side, ahead }) = claimed else {
            return self.lmt.step(peer, transfer, data, max_bytes);
        };
        let lmt = &mut self.lmt;
        let is_ready = match (&mut *side, lmt.both_ends()) {
            (Side::Out(help), _) if help.is_over() => return Ok(Step { bytes: 0, done: true }),
            (side, Some(both)) => {
                let told = ahead.as_ref().map(|(cookie, interval)| (cookie, *interval));
                match (both.is_ready(peer, transfer, told), side) {
                    (Ok(is_ready), _) => is_ready,
                    (Err(Fault::Demote { .. }), Side::Out(_)) => return Ok(Step { bytes: 0, done: true }),
                    (Err(fault), _) => return Err(fault),
                }
            }
            (_, None) => false,
        };
        let max_bytes = if is_ready { max_bytes } else { 0 };
        side.step(&self.claims, peer_claims, max_bytes, |part| {
            if let Some((cookie, interval)) = ahead.take()
                && let Err(fault) = lmt.start(peer, transfer, &cookie, interval)
            {
                return CopiedPart { bytes: 0, fault: Some(fault) };
            }
            match lmt.both_ends() {
                Some(both) => both.copy_part(peer, transfer, data, part),
                None => CopiedPart { bytes: 0, fault: None },
            }
        })
    }

    fn finish(&mut self, peer: &mut Self::Peer, transfer: Self::Transfer) {
        if let Some(Claimed { side, .. }) = transfer.claimed {
            side.finish(&mut self.claims, &peer.claims);
        }
        self.lmt.finish(&mut peer.peer, transfer.transfer);
    }

    fn shared_completion(&mut self) -> Option<&mut dyn SharedCompletion<Self::Peer, Self::Transfer>> {
        let is_shared = self.lmt.both_ends().is_some() || self.lmt.shared_completion().is_some();
        if is_shared { Some(self) } else { None }
    }

    fn regions(&mut self) -> Option<&mut dyn Regions<Self::Peer>> {
        if self.lmt.regions().is_some() { Some(self) } else { None }
    }

    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<Self::Peer>> {
        Some(self)
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

impl<M: Lmt> SharedCompletion<ClaimingPeer<M::Peer>, ClaimedTransfer<M::Transfer>> for ByBothEnds<M> {
    fn leave(
        &mut self,
        peer: &mut ClaimingPeer<M::Peer>,
        transfer: &mut ClaimedTransfer<M::Transfer>,
    ) -> Left {
        match (&mut transfer.claimed, self.lmt.shared_completion()) {
            (Some(claimed), _) => claimed.side.leave(&self.claims, &mut peer.claims),
            (None, Some(own)) => own.leave(&mut peer.peer, &mut transfer.transfer),
            (None, None) => Left::default(),
        }
    }
}

impl<M: Lmt> Regions<ClaimingPeer<M::Peer>> for ByBothEnds<M> {
    fn copy_registered(
        &mut self,
        peer: &mut ClaimingPeer<M::Peer>,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        let regions = self.lmt.regions().ok_or_else(|| demote("it cannot reach registered memory"))?;
        regions.copy_registered(&mut peer.peer, local, copy)
    }
}

/// What an out-of-band message begins with: the claims' descriptor is all of it, ...
const CLAIMS: u8 = 1;
/// ... or the mechanism's own follows.
const OWN: u8 = 2;

impl<M: Lmt> OobMessages<ClaimingPeer<M::Peer>> for ByBothEnds<M> {
    fn oob_message(&mut self, peer: &mut ClaimingPeer<M::Peer>) -> Option<Hello> {
        if let Some(descriptor) = peer.claims.take_pending_descriptor() {
            return Some(Hello { bytes: vec![CLAIMS], descriptors: vec![descriptor] });
        }
        let mut own = self.lmt.oob_messages()?.oob_message(&mut peer.peer)?;
        own.bytes.insert(0, OWN);
        Some(own)
    }

    fn take_oob_message(&mut self, peer: &mut ClaimingPeer<M::Peer>, mut oob_message: Hello) {
        match (oob_message.bytes.first(), self.lmt.oob_messages()) {
            (Some(&CLAIMS), _) => {
                oob_message.descriptors.pop().into_iter().for_each(|descriptor| peer.claims.take(descriptor));
            }
            (Some(&OWN), Some(own)) => {
                oob_message.bytes.remove(0);
                own.take_oob_message(&mut peer.peer, oob_message);
            }
            _ => {}
        }
    }
}

fn demote(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

#[cfg(test)]
#[path = "by_both_ends_tests.rs"]
mod tests;
