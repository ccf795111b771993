//! The trait that every mechanism implements.

use super::description::Description;
use super::optional::{Background, BothEnds, Diagnosis, OobMessages, Regions, Settings, SharedCompletion};
use crate::memory::buffer::Buffer;
use crate::vocabulary::peer_facts::{Hello, PeerFacts, Probed, Unavailable};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

/// A mechanism: one way of moving large messages between two processes.
///
/// **A peer.** [`Self::hello`] is sent to each new peer; [`Self::probe`] takes the
/// peer's and finds out by a real call what can be done; [`Self::forget_peer`] ends it.
///
/// **A message.** Both ends [`prepare`](Self::prepare) and exchange cookies in the
/// rendezvous packets. Who copies is given the other's cookie ([`start`](Self::start)),
/// then [`step`](Self::step)s until it says done or fails. Both
/// [`finish`](Self::finish), which may come at any time after `prepare` (cancel, death,
/// demotion).
///
/// | model | who starts and steps |
/// |---|---|
/// | Get | the receiver |
/// | Put | the sender |
/// | Cooperative | both, when both cookies are there |
/// | Both | the receiver, who counts, at once; the sender when the receiver's cookie has come, and starts directly before its first part ([`BothEnds`] instead of steps) |
/// | Stream | both at once: the sender with an empty cookie and the whole interval, of which a shorter receive buffer may take only a part; it says done when the receiver has ended |
///
/// From `prepare` until `finish` has returned, the memory of the buffer is the
/// mechanism's to use, also in the background and between the calls; nobody else
/// touches it meanwhile. What comes from the peer (hello, cookie, out-of-band message) is untrusted.
/// A mechanism knows nothing of packets, matching or other mechanisms (nemesis-lmt,
/// section 2; knem-jpdc, section 4.4).
///
/// **What only some can** are traits of their own, each offered by a method that says
/// `None` by default; the answer is the same all along: [`BothEnds`],
/// [`SharedCompletion`], [`Regions`], [`OobMessages`], [`Background`], [`Settings`], [`Diagnosis`].
///
/// # The smallest mechanism
/// It passes the conformance suite (`conformance/tests/smallest.rs`).
/// `docs/adding-a-mechanism.md` says where one is entered.
///
#[doc = concat!(
    "```\n",
    include_str!("../../docs/smallest_mechanism.rs"),
    "# let mut mechanisms = lmt_core::mechanism::Mechanisms::new();\n",
    "# mechanisms.register(ProcMem);\n",
    "```",
)]
pub trait Lmt: Send + 'static {
    /// What is kept for each peer.
    type Peer: Send + 'static;
    /// What is kept for each transfer in flight.
    type Transfer: Send + 'static;

    /// What it is.
    fn description(&self) -> Description;

    /// What a new peer must know to probe it; nothing by default.
    ///
    /// # Errors
    /// [`Unavailable`] when the mechanism cannot be used on this machine at all.
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }

    /// Finds out, by a real call, what can be done with this peer. `hello` is what the
    /// peer's [`Self::hello`] gave; descriptors that the kernel could not pass are
    /// missing from it.
    ///
    /// # Errors
    /// [`Unavailable`], with the errno and a sentence, where nothing can be done in
    /// either direction.
    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<Self::Peer>, Unavailable>;

    /// A peer is gone, and its transfers are finished. By default what was kept for it
    /// is dropped.
    fn forget_peer(&mut self, _peer: Self::Peer) {}

    /// Gets one side of a transfer ready and describes it to the other, in at most
    /// [`Plan::cookie_bytes`] bytes.
    ///
    /// # Errors
    /// [`Fault`]; nothing is kept then.
    fn prepare(
        &mut self,
        peer: &mut Self::Peer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault>;

    /// Takes the other side's cookie and the interval both agreed on, which is a
    /// receiver's plan's and lies within a sender's: a shorter receive buffer cuts its
    /// end.
    ///
    /// In the Both model the sender may have the receiver's cookie, and begin, before
    /// this is called on the receiver's side: it goes out as soon as that side is
    /// prepared. An empty one of the receiver's says that the sender cannot help.
    ///
    /// # Errors
    /// [`Fault`]; `finish` follows.
    fn start(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault>;

    /// Moves at most about `max_bytes` and never waits: where the other side must act
    /// first it returns 0 bytes.
    ///
    /// # Errors
    /// [`Fault`]; what earlier steps moved stays moved, and `finish` follows. Bytes
    /// moved by the failing call itself count as not moved.
    fn step(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault>;

    /// Ends a transfer, complete or not, and gives back what it held. When it returns,
    /// nothing that this process does touches the transfer's memory any more, here or
    /// in the peer; it may wait for a moment until that is so.
    fn finish(&mut self, peer: &mut Self::Peer, transfer: Self::Transfer);

    /// Where either end can copy any part of a message: for the model Both.
    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<Self::Peer, Self::Transfer>> {
        None
    }

    /// Where both ends see in memory that they share that a message is whole.
    fn shared_completion(&mut self) -> Option<&mut dyn SharedCompletion<Self::Peer, Self::Transfer>> {
        None
    }

    /// Where it reaches a peer's registered memory, for gets and puts: then the
    /// abilities that the probe found hold for those.
    fn regions(&mut self) -> Option<&mut dyn Regions<Self::Peer>> {
        None
    }

    /// Where its two instances hand each other descriptors later than in their hellos.
    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<Self::Peer>> {
        None
    }

    /// Where something works for it in the background.
    fn background(&mut self) -> Option<&mut dyn Background> {
        None
    }

    /// Where something can be set of it.
    fn settings(&mut self) -> Option<&mut dyn Settings> {
        None
    }

    /// Where it can say why it does not work, or how well.
    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        None
    }
}
