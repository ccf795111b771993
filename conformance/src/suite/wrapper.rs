//! A mechanism around the one under test: it leaves all but one model out, or
//! does something else than its duty at chosen calls.

use lmt_core::both_ends::ByBothEnds;
use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{
    Background, Cookie, Description, Fault, Hello, Interval, Left, Lmt, Model, OobMessages, PeerFacts, Plan,
    Probed, SharedCompletion, Step, Unavailable,
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
    inner: ByBothEnds<M>,
    name: &'static str,
    models: &'static [Model],
    tamper: Tamper,
}

type PeerOf<M> = <ByBothEnds<M> as Lmt>::Peer;
type TransferOf<M> = <ByBothEnds<M> as Lmt>::Transfer;

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
        let name = inner.description().name;
        Self { models: just(model), ..Self::named(inner, name) }
    }

    /// The mechanism in all its models under another name.
    pub fn named(inner: M, name: &'static str) -> Self {
        let models = inner.description().models;
        Self { name, models, inner: ByBothEnds::new(inner), tamper: Box::new(|_, _, _| Ok(())) }
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
    type Peer = PeerOf<M>;
    type Transfer = Transfer<TransferOf<M>>;

    fn description(&self) -> Description {
        Description::new(self.name, self.models)
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.inner.hello()
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<PeerOf<M>>, Unavailable> {
        self.inner.probe(facts, hello)
    }

    fn prepare(
        &mut self,
        peer: &mut PeerOf<M>,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        (self.tamper)(Call::Prepare, plan, 0)?;
        let (inner, cookie) = self.inner.prepare(peer, plan, data)?;
        Ok((Transfer::new(inner, plan), cookie))
    }

    fn start(
        &mut self,
        peer: &mut PeerOf<M>,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        (self.tamper)(Call::Start, &transfer.plan, 0)?;
        self.inner.start(peer, &mut transfer.inner, remote, interval)
    }

    fn step(
        &mut self,
        peer: &mut PeerOf<M>,
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

    fn forget_peer(&mut self, peer: PeerOf<M>) {
        self.inner.forget_peer(peer);
    }

    fn finish(&mut self, peer: &mut PeerOf<M>, transfer: Self::Transfer) {
        // The call has no way to fail, and must happen.
        let _nothing = (self.tamper)(Call::Finish, &transfer.plan, transfer.moved_bytes);
        self.inner.finish(peer, transfer.inner);
    }

    fn shared_completion(&mut self) -> Option<&mut dyn SharedCompletion<PeerOf<M>, Self::Transfer>> {
        if self.inner.shared_completion().is_some() { Some(self) } else { None }
    }

    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<PeerOf<M>>> {
        self.inner.oob_messages()
    }

    fn background(&mut self) -> Option<&mut dyn Background> {
        self.inner.background()
    }
}

impl<M: Lmt> SharedCompletion<PeerOf<M>, Transfer<TransferOf<M>>> for Wrapper<M> {
    fn leave(&mut self, peer: &mut PeerOf<M>, transfer: &mut Transfer<TransferOf<M>>) -> Left {
        let inner = self.inner.shared_completion();
        inner.map_or_else(Left::default, |inner| inner.leave(peer, &mut transfer.inner))
    }
}
