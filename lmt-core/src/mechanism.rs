//! The trait behind which every way of moving a large message stands.
//!
//! A mechanism is asked, for each peer, what it can do with that very peer
//! ([`Lmt::probe`], by a real call); then, for each message, for a cookie that
//! describes its side ([`Lmt::prepare`]), and, once the other side's cookie is
//! there, to move bytes step by step. It knows nothing of packets, matching or
//! the other mechanisms (nemesis-lmt, section 2; knem-jpdc, section 4.4).

mod declared;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bell::Bell;
use crate::buffer::Buffer;
use crate::checkup::{Finding, Host};
use crate::identity::EndpointId;
use crate::keys::{Key, Value};
use crate::process::PeerProcess;
pub use declared::{DeclaredCopy, Direction};

/// Who of the two processes moves the bytes (knem-jpdc, section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Model {
    /// The receiver copies out of the sender's memory.
    Get = 1,
    /// The sender copies into the receiver's memory.
    Put = 2,
    /// Both take part.
    Cooperative = 3,
    /// The receiver copies from the front and the sender from the back, each
    /// while it has nothing better to do, until they meet ([`crate::claims`]).
    Both = 4,
    /// Both take part, and the sender begins before it hears of the receiver.
    Stream = 5,
}

impl Model {
    /// The model with this number on the wire, if there is one.
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Get),
            2 => Some(Self::Put),
            3 => Some(Self::Cooperative),
            4 => Some(Self::Both),
            5 => Some(Self::Stream),
            _ => None,
        }
    }

    /// All models.
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::Cooperative, Self::Both, Self::Stream];

    /// The name under which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Cooperative => "cooperative",
            Self::Both => "both",
            Self::Stream => "stream",
        }
    }

    /// Whether both ends see by what they share that the message is whole, so
    /// that each leaves it ([`Lmt::leave`]) and mostly no packet has to say so.
    pub const fn is_left(self) -> bool {
        matches!(self, Self::Both | Self::Stream)
    }

    /// Whether the receiver reads the sender's memory, at least in part.
    pub const fn reads_sender(self) -> bool {
        matches!(self, Self::Get | Self::Both)
    }

    /// The model of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a mechanism needs of the machine beyond the two processes and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Needs {
    /// Nothing but system calls that every kernel of ours has: where it does
    /// not work, something stands in its way.
    Kernel,
    /// A module that most kernels come without.
    Module,
    /// A device that most machines come without.
    Device,
}

/// Which memory a mechanism copies from and to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Reach {
    /// Any.
    #[default]
    AnyMemory,
    /// Of the other end only its shared buffers ([`crate::shared_buffer`]): a
    /// receiver gets from one, a sender puts into one, and both copy where both
    /// ends are such. The memory of who copies alone is any.
    SharedBuffers,
}

/// Whether the memory of the two ends of a message is in shared buffers
/// ([`crate::shared_buffer`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct SharedEnds {
    /// The sender's.
    pub sender: bool,
    /// The receiver's, as far as its sender knows.
    pub receiver: bool,
}

impl Reach {
    /// Whether a message between such ends can go by this model.
    pub const fn allows(self, model: Model, ends: SharedEnds) -> bool {
        match (self, model) {
            (Self::AnyMemory, _) => true,
            (Self::SharedBuffers, Model::Get) => ends.sender,
            (Self::SharedBuffers, Model::Put) => ends.receiver,
            (Self::SharedBuffers, Model::Cooperative | Model::Both | Model::Stream) => {
                ends.sender && ends.receiver
            }
        }
    }
}

/// Which end of a message this process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Role {
    /// The message's bytes are here.
    Sender,
    /// They are to arrive here.
    Receiver,
}

/// A part of a message: the bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last byte.
    pub end: u64,
}

impl Interval {
    /// How many bytes.
    pub const fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// What a mechanism lets one process do with the memory of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abilities {
    /// This process can read the peer's memory: it can receive by Get.
    pub read: bool,
    /// It can write the peer's memory: it can send by Put.
    pub write: bool,
    /// It is attached to what both share: Cooperative works from this side.
    pub cooperate: bool,
}

impl Abilities {
    /// The abilities as bits: 1 read, 2 write, 4 cooperate.
    pub const fn to_bits(self) -> u8 {
        self.read as u8 | (self.write as u8) << 1 | (self.cooperate as u8) << 2
    }

    /// Reads [`Self::to_bits`]; other bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Self { read: bits & 1 != 0, write: bits & 2 != 0, cooperate: bits & 4 != 0 }
    }

    /// Whether a message can go by `model` from the process that has `self` to
    /// the one that has `peer`.
    pub const fn allow_sending(self, peer: Self, model: Model) -> bool {
        match model {
            Model::Get => peer.read,
            Model::Put => self.write,
            Model::Cooperative | Model::Stream => self.cooperate && peer.cooperate,
            Model::Both => peer.read && self.write,
        }
    }
}

/// Why a mechanism cannot be used with a peer, or at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Unavailable {
    /// The errno of the call that was refused, or 0.
    pub errno: i32,
    /// One sentence: what was tried, what it answered, what would help.
    pub sentence: String,
}

/// What went wrong in the middle of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// This mechanism cannot go on; the next one takes over what is left.
    #[error("{sentence}")]
    Demote {
        /// The errno, or 0.
        errno: i32,
        /// Whether the mechanism is of no more use with this peer at all.
        for_good: bool,
        /// One sentence on what happened.
        sentence: String,
    },
    /// The peer is dead.
    #[error("the peer has died")]
    PeerDead,
}

/// What one call of [`Lmt::step`] achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Bytes by which the transfer's front advanced in this call. The bytes of
    /// all steps together never exceed the interval.
    pub bytes: u64,
    /// Whether this side has nothing left to do for this interval.
    pub done: bool,
}

/// What a mechanism of one endpoint tells the same mechanism of another: so
/// that it can be probed ([`Lmt::hello`]), or later ([`Lmt::parcel`]).
#[derive(Debug, Default)]
pub struct Hello {
    /// Up to [`Hello::MAX_BYTES`] bytes that the mechanism understands.
    pub bytes: Vec<u8>,
    /// Descriptors passed along, at most [`Hello::MAX_DESCRIPTORS`].
    pub descriptors: Vec<OwnedFd>,
}

impl Hello {
    /// The most bytes one mechanism may send.
    pub const MAX_BYTES: usize = 256;
    /// The most descriptors one mechanism may send.
    pub const MAX_DESCRIPTORS: usize = 4;
}

/// What the connection found out about the peer, from the kernel where the
/// kernel knows.
#[derive(Clone, Debug)]
pub struct PeerFacts {
    /// The peer's endpoint.
    pub id: EndpointId,
    /// The peer's process; its pid is absent where this pid namespace does not
    /// show it.
    pub process: Arc<PeerProcess>,
    /// Address, in the peer, of [`ProbeArea`]; from the peer, unchecked.
    pub probe_address: u64,
    /// The nonce that stands at that address.
    pub nonce: [u8; 16],
}

/// Private memory that a peer may read and write to find out whether it can:
/// 16 bytes that hold the nonce, then 16 bytes for the peer to write.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ProbeArea {
    /// Random bytes that the connection's hello announces.
    pub nonce: [u8; 16],
    /// Written by the peer.
    pub scratch: [u8; 16],
}

/// What a transfer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which end this process is.
    pub role: Role,
    /// Who moves the bytes.
    pub model: Model,
    /// Which part of the message.
    pub interval: Interval,
}

impl Plan {
    /// A plan of which nothing else is said.
    pub const fn new(role: Role, model: Model, interval: Interval) -> Self {
        Self { role, model, interval }
    }
}

/// A short opaque description of one side of a transfer, carried by the
/// rendezvous packets to the same mechanism on the other side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    used: u8,
    bytes: [u8; Self::MAX_BYTES],
}

impl Cookie {
    /// The most bytes a cookie holds. It is copied with every packet and action,
    /// so it is kept small; 16 bytes or fewer let RTS and CTS travel in one cache line.
    pub const MAX_BYTES: usize = 64;

    /// A cookie of these bytes, or `None` when there are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cookie = Self { used: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX_BYTES] };
        cookie.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(cookie)
    }

    /// A cookie without bytes.
    pub const fn empty() -> Self {
        Self { used: 0, bytes: [0; Self::MAX_BYTES] }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used as usize]
    }

    /// Its bytes in words, the first the lowest; of the last word, zeros behind them.
    #[inline]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let words = self.bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
        words.take(usize::from(self.used).div_ceil(8))
    }

    /// Of the first `bytes` bytes of these words, at most [`Self::MAX_BYTES`].
    #[inline]
    pub(crate) fn from_words(words: impl Iterator<Item = u64>, bytes: usize) -> Self {
        let used = bytes.min(Self::MAX_BYTES);
        let mut cookie = Self { used: used as u8, bytes: [0; Self::MAX_BYTES] };
        let chunks = cookie.bytes.as_chunks_mut::<8>().0.iter_mut();
        chunks.zip(words).take(used.div_ceil(8)).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
        // Equal cookies have equal bytes, the unused ones among them.
        cookie.bytes[used..used.next_multiple_of(8)].fill(0);
        cookie
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({:02x?})", self.as_bytes())
    }
}

/// One way of moving large messages.
///
/// The calls for one transfer come in this order: `prepare`, then, when the
/// other side's cookie is there, `start`, then `step` until it says done or
/// fails, then `finish`. `finish` may come at any time after `prepare` (cancel,
/// death, demotion). In the Get model only the receiver starts and steps, in
/// the Put model only the sender; the passive side prepares and finishes. In the
/// Both model both start and step: the receiver, who counts, at once, the sender
/// when the receiver's cookie has come; and each is asked to `leave` once it has
/// said done or failed. So it is in the Stream model, but there the sender starts at once too, with an empty cookie and the whole interval, of which a shorter
/// receive buffer may take a part only; it says done when the receiver has ended.
///
/// From `prepare` until `finish` has returned, the memory of the buffer is the
/// mechanism's to use, also in the background and between the calls; nobody else
/// touches it meanwhile.
pub trait Lmt: Send + 'static {
    /// What is kept for each peer.
    type Peer: Send + 'static;
    /// What is kept for each transfer under way.
    type Transfer: Send + 'static;

    /// The name under which users know it: lower case, at most 16 bytes.
    fn name(&self) -> &'static str;

    /// The models it can do, the preferred one first.
    fn models(&self) -> &'static [Model];

    /// What it needs of the machine; by default what every kernel has.
    fn needs(&self) -> Needs {
        Needs::Kernel
    }

    /// Which memory it copies from and to; by default any. Messages from and to
    /// other memory are not proposed to it.
    fn reach(&self) -> Reach {
        Reach::AnyMemory
    }

    /// How many times as long as a plain copy within this process a copy of its of
    /// some 100 KiB takes on this machine, both in the caches: found out by a short
    /// look, once in a process. With a peer both processes must answer alike, if both
    /// can copy, since some ways are good only where both directions take them. Nothing by default,
    /// where a policy is to know nothing of that.
    fn times_plain_copy(&self, _peer: Option<&Self::Peer>) -> Option<f32> {
        None
    }

    /// What there is to look at on a machine when it does not work, or works
    /// less well than it could: nothing by default. It changes nothing, and it
    /// may be asked of an instance that is not used otherwise.
    fn checkups(&self, _host: &Host) -> Vec<Finding> {
        Vec::new()
    }

    /// What a new peer must know to probe it.
    ///
    /// # Errors
    /// [`Unavailable`] when the mechanism cannot be used on this machine at all.
    fn hello(&mut self) -> Result<Hello, Unavailable>;

    /// Finds out, by a real call, what can be done with this peer. `hello` is
    /// what the peer's [`Lmt::hello`] gave; it is untrusted. Descriptors that the
    /// kernel could not pass are missing from it.
    ///
    /// # Errors
    /// [`Unavailable`] with the errno and a sentence.
    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<(Self::Peer, Abilities), Unavailable>;

    /// What is kept for a peer that [`Self::probe`] could not reach, if that
    /// peer may still reach this process (as between pid namespaces): what the
    /// passive side of a transfer needs. Nothing by default.
    fn passive(&mut self, _facts: &PeerFacts) -> Option<Self::Peer> {
        None
    }

    /// Gets one side of a transfer ready and describes it to the other.
    ///
    /// # Errors
    /// [`Fault`]; nothing is kept then.
    fn prepare(
        &mut self,
        peer: &mut Self::Peer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault>;

    /// Takes the other side's cookie (untrusted) and the interval both agreed
    /// on, which is a receiver's plan's and lies within a sender's: a shorter receive
    /// buffer cuts its end.
    ///
    /// In the Both model the sender may have the receiver's cookie, and begin, before this
    /// is called on the receiver's side: it goes out as soon as that side is prepared.
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

    /// Moves at most about `max_bytes` and never waits: where the other side
    /// must act first it returns 0 bytes.
    ///
    /// # Errors
    /// [`Fault`]; what earlier steps moved stays moved, and `finish` follows.
    /// Bytes moved by the failing call itself count as not moved.
    fn step(
        &mut self,
        peer: &mut Self::Peer,
        transfer: &mut Self::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault>;

    /// In the Both and Stream models: this end has said done or failed, or is to wait
    /// without stepping, and claims nothing from now on. Returns whether both
    /// ends know that the message is whole, so that no packet has to say it:
    /// - on the receiver's side, where it has said done: whether the sender, who
    ///   was there at the end, is told by what both share;
    /// - on the sender's side: whether the receiver has told it so.
    ///
    /// The two answers agree: each is true only if the other is or will be.
    fn leave(&mut self, _peer: &mut Self::Peer, _transfer: &mut Self::Transfer) -> bool {
        false
    }

    /// In the Both model, on the receiver's side: how many of the bytes that its
    /// steps have counted the sender has copied.
    fn copied_by_peer(&self, _transfer: &Self::Transfer) -> u64 {
        0
    }

    /// What is to be handed to the peer's instance of this mechanism now, if
    /// anything: bytes and descriptors made on first use. Asked after every
    /// [`Self::prepare`], [`Self::start`], [`Self::step`] and [`Self::finish`] of a
    /// transfer with this peer and after every parcel of the peer's, until it gives
    /// nothing. Parcels arrive in order, but not in step with the rendezvous
    /// packets: a cookie may be there before the parcel that it speaks of, or after.
    fn parcel(&mut self, _peer: &mut Self::Peer) -> Option<Hello> {
        None
    }

    /// Takes what the peer's instance handed over ([`Self::parcel`]); it is
    /// untrusted. Descriptors that the kernel could not pass are missing from
    /// it. By default it is dropped.
    fn take_parcel(&mut self, _peer: &mut Self::Peer, _parcel: Hello) {}

    /// Takes the endpoint's bell, before anything else is asked of the
    /// mechanism. One that works in the background rings it when a transfer has
    /// ended; others need none, and by default it is dropped. The second door
    /// has none to give: there the embedder polls.
    fn take_bell(&mut self, _bell: &Bell) {}

    /// What can be set of it, in a configuration's section of its name. None by
    /// default.
    fn keys(&self) -> &'static [Key] {
        &[]
    }

    /// The value of one of its [`Lmt::keys`]; `None` when it has no such key.
    fn get(&self, _key: &str) -> Option<Value> {
        None
    }

    /// Sets one of its [`Lmt::keys`] to a value that [`Key::check`] allows,
    /// before anything else is asked of the mechanism.
    ///
    /// # Errors
    /// One sentence that says why it cannot be and what could.
    fn set(&mut self, key: &str, _value: Value) -> Result<(), String> {
        Err(format!("{} has no key `{key}`", self.name()))
    }

    /// Ends a transfer, complete or not, and gives back what it held. When it
    /// returns, nothing that this process does touches the transfer's memory
    /// any more, here or in the peer; it may wait for a moment until that is so.
    fn finish(&mut self, peer: &mut Self::Peer, transfer: Self::Transfer);

    /// A peer is gone, and its transfers are finished. By default what was kept
    /// for it is dropped.
    fn forget_peer(&mut self, _peer: Self::Peer) {}

    /// Whether [`Self::copy_declared`] is there: then the abilities that the
    /// probe found hold for declared memory too.
    fn copies_declared(&self) -> bool {
        false
    }

    /// Copies between the peer's declared memory and `local` without the
    /// peer's help, at once; returns how many bytes, less than asked for only
    /// where either side ends. A mechanism that moves messages only keeps this
    /// default, which says that it cannot.
    ///
    /// # Errors
    /// [`Fault`]; how much was copied before is not known then.
    fn copy_declared(
        &mut self,
        _peer: &mut Self::Peer,
        _local: &mut Buffer,
        _copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault> {
        Err(Fault::Demote {
            errno: 0,
            for_good: true,
            sentence: "it moves messages and cannot reach a peer's declared memory".into(),
        })
    }
}
