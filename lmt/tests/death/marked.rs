//! A mechanism that notes where a transfer is and leaves the work to another.

use std::sync::Arc;

use lmt::EndpointId;
use lmt::buffer::Buffer;
use lmt::mechanism::{
    Background, Cookie, Description, Fault, Hello, Interval, Left, Lmt, Model, OobMessages, PeerFacts, Plan,
    Probed, Role, SharedCompletion, Step, Unavailable,
};

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

    fn description(&self) -> Description {
        let of = self.inner.description();
        Description::new(of.name, self.models.unwrap_or(of.models))
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.watch.note(Moment::Hello, None, None);
        self.inner.hello()
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<Self::Peer>, Unavailable> {
        self.watch.note(Moment::Probe, Some(facts.id), None);
        let probed = self.inner.probe(facts, hello)?.map(|inner| MarkedPeer { inner, id: facts.id });
        Ok(Probed { times_plain_copy: None, ..probed })
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

    fn forget_peer(&mut self, peer: Self::Peer) {
        self.inner.forget_peer(peer.inner);
    }

    fn finish(&mut self, peer: &mut Self::Peer, transfer: Self::Transfer) {
        self.watch.note(Moment::Finish, Some(peer.id), Some(transfer.role));
        self.inner.finish(&mut peer.inner, transfer.inner);
        self.watch.note(Moment::Finished, Some(peer.id), Some(transfer.role));
    }

    fn shared_completion(&mut self) -> Option<&mut dyn SharedCompletion<Self::Peer, Self::Transfer>> {
        if self.inner.shared_completion().is_some() { Some(self) } else { None }
    }

    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<Self::Peer>> {
        if self.inner.oob_messages().is_some() { Some(self) } else { None }
    }

    fn background(&mut self) -> Option<&mut dyn Background> {
        self.inner.background()
    }
}

impl<M: Lmt> SharedCompletion<MarkedPeer<M::Peer>, MarkedTransfer<M::Transfer>> for Marked<M> {
    fn leave(&mut self, peer: &mut MarkedPeer<M::Peer>, transfer: &mut MarkedTransfer<M::Transfer>) -> Left {
        let inner = self.inner.shared_completion();
        inner.map_or_else(Left::default, |inner| inner.leave(&mut peer.inner, &mut transfer.inner))
    }
}

impl<M: Lmt> OobMessages<MarkedPeer<M::Peer>> for Marked<M> {
    fn oob_message(&mut self, peer: &mut MarkedPeer<M::Peer>) -> Option<Hello> {
        self.inner.oob_messages()?.oob_message(&mut peer.inner)
    }

    fn take_oob_message(&mut self, peer: &mut MarkedPeer<M::Peer>, oob_message: Hello) {
        if let Some(inner) = self.inner.oob_messages() {
            inner.take_oob_message(&mut peer.inner, oob_message);
        }
    }
}
