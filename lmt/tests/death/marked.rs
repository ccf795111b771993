//! A mechanism that notes where a transfer is and leaves the work to another.

use std::sync::Arc;

use lmt::EndpointId;
use lmt::buffer::Buffer;
use lmt::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Role, Step, Unavailable,
};
use lmt_core::bell::Bell;

/// Where a call of a mechanism is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    Hello,
    Probe,
    Prepare,
    Prepared,
    Start,
    Step,
    Stepped { done: bool },
    Finish,
    Finished,
}

/// Who wants to know.
pub trait Watch: Send + Sync + 'static {
    /// Something is about to happen, or has; `peer` is absent for a hello.
    fn note(&self, moment: Moment, peer: Option<EndpointId>, role: Option<Role>);
}

pub struct Marked<M> {
    pub inner: M,
    pub watch: Arc<dyn Watch>,
    /// In place of the mechanism's own.
    pub models: Option<&'static [Model]>,
}

pub struct MarkedPeer<P> {
    inner: P,
    id: EndpointId,
}

pub struct MarkedTransfer<T> {
    inner: T,
    role: Role,
}

/// Everything is forwarded but what could be set, and `times_plain_copy`, by which a
/// policy would take fewer messages to the mechanism.
impl<M: Lmt> Lmt for Marked<M> {
    type Peer = MarkedPeer<M::Peer>;
    type Transfer = MarkedTransfer<M::Transfer>;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn models(&self) -> &'static [Model] {
        self.models.unwrap_or(self.inner.models())
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.watch.note(Moment::Hello, None, None);
        self.inner.hello()
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<(Self::Peer, Abilities), Unavailable> {
        self.watch.note(Moment::Probe, Some(facts.id), None);
        let (inner, abilities) = self.inner.probe(facts, hello)?;
        Ok((MarkedPeer { inner, id: facts.id }, abilities))
    }

    fn passive(&mut self, facts: &PeerFacts) -> Option<Self::Peer> {
        Some(MarkedPeer { inner: self.inner.passive(facts)?, id: facts.id })
    }

    fn prepare(
        &mut self,
        peer: &mut Self::Peer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        self.watch.note(Moment::Prepare, Some(peer.id), Some(plan.role));
        let (inner, cookie) = self.inner.prepare(&mut peer.inner, plan, data)?;
        self.watch.note(Moment::Prepared, Some(peer.id), Some(plan.role));
        Ok((MarkedTransfer { inner, role: plan.role }, cookie))
    }

    fn start(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        self.watch.note(Moment::Start, Some(peer.id), Some(transfer.role));
        self.inner.start(&mut peer.inner, &mut transfer.inner, remote, interval)
    }

    fn step(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        self.watch.note(Moment::Step, Some(peer.id), Some(transfer.role));
        let step = self.inner.step(&mut peer.inner, &mut transfer.inner, data, max_bytes)?;
        self.watch.note(Moment::Stepped { done: step.done }, Some(peer.id), Some(transfer.role));
        Ok(step)
    }

    fn leave(&mut self, peer: &mut Self::Peer, transfer: &mut Self::Transfer) -> bool {
        self.inner.leave(&mut peer.inner, &mut transfer.inner)
    }

    fn copied_by_peer(&self, transfer: &Self::Transfer) -> u64 {
        self.inner.copied_by_peer(&transfer.inner)
    }

    fn parcel(&mut self, peer: &mut Self::Peer) -> Option<Hello> {
        self.inner.parcel(&mut peer.inner)
    }

    fn take_parcel(&mut self, peer: &mut Self::Peer, parcel: Hello) {
        self.inner.take_parcel(&mut peer.inner, parcel);
    }

    fn take_bell(&mut self, bell: &Bell) {
        self.inner.take_bell(bell);
    }

    fn forget_peer(&mut self, peer: Self::Peer) {
        self.inner.forget_peer(peer.inner);
    }

    fn finish(&mut self, peer: &mut Self::Peer, transfer: Self::Transfer) {
        self.watch.note(Moment::Finish, Some(peer.id), Some(transfer.role));
        self.inner.finish(&mut peer.inner, transfer.inner);
        self.watch.note(Moment::Finished, Some(peer.id), Some(transfer.role));
    }
}
