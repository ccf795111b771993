//! What only some mechanisms can, each a trait that [`super::Lmt`] offers by a
//! method of its own.

use super::diagnostic::{Finding, Host};
use super::region_copy::RegisteredCopy;
use crate::base::doorbell::Doorbell;
use crate::memory::buffer::Buffer;
use crate::vocabulary::config_key::{Key, Value};
use crate::vocabulary::peer_facts::Hello;
use crate::vocabulary::transfer::{Cookie, Fault, Interval};

/// Copies of any part of a message by either end: the model Both.
///
/// Who copies which part, and how both ends learn that the message is whole, is the
/// core's ([`crate::both_ends`]). It calls these instead of [`super::Lmt::step`].
pub trait BothEnds<P, T> {
    /// Whether this end can copy now; by default it can. Before it can it claims nothing,
    /// and the other end may copy all. Once it can, it can until the transfer is finished.
    ///
    /// `ahead` is there at a sender before [`super::Lmt::start`] and says what that will be
    /// given. The receiver may have ended the message by then, so what the cookie describes
    /// is not to be looked at yet.
    ///
    /// # Errors
    /// It never will: a sender then leaves the message to its receiver, and a receiver to
    /// the next mechanism.
    fn is_ready(
        &mut self,
        _peer: &mut P,
        _transfer: &mut T,
        _ahead: Option<(&Cookie, Interval)>,
    ) -> Result<bool, Fault> {
        Ok(true)
    }

    /// Copies `part` of the message, which nobody else copies: out of the peer's memory at
    /// the receiver, into it at the sender.
    fn copy_part(&mut self, peer: &mut P, transfer: &mut T, data: &mut Buffer, part: Interval) -> CopiedPart;
}

/// What a copy of one part has achieved.
#[derive(Debug)]
pub struct CopiedPart {
    /// Bytes from the part's beginning.
    pub bytes: u64,
    /// Why it is not all of it, where more will not help. Without, the rest is
    /// tried again.
    pub fault: Option<Fault>,
}

/// Messages of which both ends see, in memory that they share, that they are whole:
/// the model Stream.
pub trait SharedCompletion<P, T> {
    /// This end has said done or failed, or is to wait without stepping, and copies
    /// nothing from now on.
    fn leave(&mut self, peer: &mut P, transfer: &mut T) -> Left;
}

/// What an end says when it leaves a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Left {
    /// Whether both ends know that the message is whole, so that no packet has to say it:
    /// - on the receiver's side, where it has said done: whether the sender, who
    ///   was there at the end, is told by what both share;
    /// - on the sender's side: whether the receiver has told it so.
    ///
    /// The two answers agree: each is true only if the other is or will be.
    pub both_know: bool,
    /// On the receiver's side: how many of the bytes that its steps have counted the
    /// sender has copied.
    pub copied_by_peer: u64,
}

/// Gets and puts: copies of a peer's registered memory without the peer's help.
pub trait Regions<P> {
    /// Copies between the peer's registered memory and `local`, at once; returns how
    /// many bytes, less than asked for only where either side ends.
    ///
    /// # Errors
    /// [`Fault`]; how much was copied before is not known then.
    fn copy_registered(
        &mut self,
        peer: &mut P,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault>;
}

/// Bytes and descriptors that are made on first use and handed to the peer's instance
/// over the connection.
///
/// Out-of-band messages arrive in order, but not in step with the rendezvous packets: a cookie may
/// be there before the out-of-band message that it speaks of, or after.
pub trait OobMessages<P> {
    /// What is to be handed over now, if anything. Asked after every call of
    /// [`super::Lmt`] for a transfer with this peer and after every out-of-band message of the
    /// peer's, until it gives nothing.
    fn oob_message(&mut self, peer: &mut P) -> Option<Hello>;

    /// Takes what the peer's instance has handed over; it is untrusted, and descriptors
    /// that the kernel could not pass are missing from it.
    fn take_oob_message(&mut self, peer: &mut P, oob_message: Hello);
}

/// Work in the background, whose end wakes the endpoint.
pub trait Background {
    /// Takes the endpoint's doorbell, before the first hello; it is rung when a transfer has ended. The device-layer interface has none to
    /// give: there the embedder polls.
    fn take_doorbell(&mut self, doorbell: &Doorbell);
}

/// What can be set of a mechanism, in a configuration's section of its name.
pub trait Settings {
    /// The keys.
    fn keys(&self) -> &'static [Key];

    /// The value of a key; `None` when there is no such key.
    fn get(&self, key: &str) -> Option<Value>;

    /// Sets a key to a value that [`Key::check`] allows, before the doorbell is given and
    /// before the first hello.
    ///
    /// # Errors
    /// One sentence that says why it cannot be and what could.
    fn set(&mut self, key: &str, value: Value) -> Result<(), String>;
}

/// What a mechanism finds on a machine. It changes nothing, and may be asked of an
/// instance that is not used otherwise.
pub trait Diagnosis {
    /// What there is to look at when it does not work, or works less well than it could.
    fn diagnostics(&self, host: &Host) -> Vec<Finding>;

    /// As [`super::Probed::times_plain_copy`], as far as this process can tell alone:
    /// measured once in a process, within a millisecond. Nothing by default.
    fn times_plain_copy(&self) -> Option<f32> {
        None
    }
}
