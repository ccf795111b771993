//! A mechanism around the one under test: it leaves all but one model out, or
//! does something else than its duty at chosen calls.

use lmt_core::bell::Bell;
use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Step, Unavailable,
};

/// A call for one transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    Prepare,
    Start,
    Step,
    Finish,
}

/// Asked before each call, with the transfer's plan and what its steps have
/// moved so far; an error is given instead of the call (`finish` has none).
/// Steps that only look whether the other side has done its part, as many as a
/// fast core can make, count as one with the next that moves something.
pub(super) type Tamper = Box<dyn FnMut(Call, &Plan, u64) -> Result<(), Fault> + Send>;

pub(super) struct Wrapper<M> {
    inner: M,
    name: &'static str,
    models: &'static [Model],
    tamper: Tamper,
}

const fn just(model: Model) -> &'static [Model] {
    match model {
        Model::Get => &[Model::Get],
        Model::Put => &[Model::Put],
        Model::Cooperative => &[Model::Cooperative],
        Model::Both => &[Model::Both],
        Model::Stream => &[Model::Stream],
    }
}

impl<M: Lmt> Wrapper<M> {
    /// The mechanism, under its own name, in one model.
    pub fn only(inner: M, model: Model) -> Self {
        let name = inner.name();
        Self { models: just(model), ..Self::named(inner, name) }
    }

    /// The mechanism in all its models under another name.
    pub fn named(inner: M, name: &'static str) -> Self {
        let models = inner.models();
        Self { name, models, inner, tamper: Box::new(|_, _, _| Ok(())) }
    }

    pub fn tamper(mut self, tamper: Tamper) -> Self {
        self.tamper = tamper;
        self
    }
}

pub(super) struct Transfer<T> {
    inner: T,
    plan: Plan,
    moved_bytes: u64,
    /// What was moved when `tamper` was asked last.
    asked_at: Option<u64>,
}

impl<T> Transfer<T> {
    const fn new(inner: T, plan: &Plan) -> Self {
        Self { inner, plan: *plan, moved_bytes: 0, asked_at: None }
    }
}

impl<M: Lmt> Lmt for Wrapper<M> {
    type Peer = M::Peer;
    type Transfer = Transfer<M::Transfer>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn models(&self) -> &'static [Model] {
        self.models
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.inner.hello()
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<(M::Peer, Abilities), Unavailable> {
        self.inner.probe(facts, hello)
    }

    fn prepare(
        &mut self,
        peer: &mut M::Peer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        (self.tamper)(Call::Prepare, plan, 0)?;
        let (inner, cookie) = self.inner.prepare(peer, plan, data)?;
        Ok((Transfer::new(inner, plan), cookie))
    }

    fn start(
        &mut self,
        peer: &mut M::Peer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        (self.tamper)(Call::Start, &transfer.plan, 0)?;
        self.inner.start(peer, &mut transfer.inner, remote, interval)
    }

    fn step(
        &mut self,
        peer: &mut M::Peer,
        transfer: &mut Self::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        if transfer.asked_at.replace(transfer.moved_bytes) != Some(transfer.moved_bytes) {
            (self.tamper)(Call::Step, &transfer.plan, transfer.moved_bytes)?;
        }
        let step = self.inner.step(peer, &mut transfer.inner, data, max_bytes)?;
        transfer.moved_bytes += step.bytes;
        Ok(step)
    }

    fn leave(&mut self, peer: &mut M::Peer, transfer: &mut Self::Transfer) -> bool {
        self.inner.leave(peer, &mut transfer.inner)
    }

    fn copied_by_peer(&self, transfer: &Self::Transfer) -> u64 {
        self.inner.copied_by_peer(&transfer.inner)
    }

    fn parcel(&mut self, peer: &mut M::Peer) -> Option<Hello> {
        self.inner.parcel(peer)
    }

    fn take_parcel(&mut self, peer: &mut M::Peer, parcel: Hello) {
        self.inner.take_parcel(peer, parcel);
    }

    fn forget_peer(&mut self, peer: M::Peer) {
        self.inner.forget_peer(peer);
    }

    fn take_bell(&mut self, bell: &Bell) {
        self.inner.take_bell(bell);
    }

    fn finish(&mut self, peer: &mut M::Peer, transfer: Self::Transfer) {
        // The call has no way to fail, and must happen.
        let _nothing = (self.tamper)(Call::Finish, &transfer.plan, transfer.moved_bytes);
        self.inner.finish(peer, transfer.inner);
    }
}
