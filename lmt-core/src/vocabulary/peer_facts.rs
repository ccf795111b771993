//! What is known of a peer when a mechanism is asked whether it works with it,
//! and the answer.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::identity::EndpointId;
use super::model::Model;
use crate::base::process::PeerProcess;

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

/// What [`crate::mechanism::Lmt::probe`] has found out about a peer.
#[derive(Debug)]
pub struct Probed<P> {
    /// What is kept for the peer.
    pub peer: P,
    /// What this process can do with it; or why nothing. Then the peer may still reach
    /// this process (as between pid namespaces), and `peer` is what the passive side of
    /// a transfer needs.
    pub abilities: Result<Abilities, Unavailable>,
    /// How many times as long as a plain copy within this process a copy of some 100 KiB
    /// takes, both in the caches. Where both processes can copy, both must answer alike.
    /// `None` where a policy is to know nothing of that.
    pub times_plain_copy: Option<f32>,
}

impl<P> Probed<P> {
    /// A peer with which this process can do that, and of which nothing else is known.
    pub const fn new(peer: P, abilities: Abilities) -> Self {
        Self { peer, abilities: Ok(abilities), times_plain_copy: None }
    }

    /// The same of another type of peer.
    pub fn map<Q>(self, f: impl FnOnce(P) -> Q) -> Probed<Q> {
        Probed { peer: f(self.peer), abilities: self.abilities, times_plain_copy: self.times_plain_copy }
    }

    /// The peer and what this process can do with it.
    ///
    /// # Errors
    /// Why that is nothing.
    pub fn reached(self) -> Result<(P, Abilities), Unavailable> {
        let Self { peer, abilities, .. } = self;
        abilities.map(|abilities| (peer, abilities))
    }
}

/// What a mechanism of one endpoint tells the same mechanism of another: so
/// that it can be probed ([`crate::mechanism::Lmt::hello`]), or later
/// ([`crate::mechanism::OobMessages::oob_message`]).
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
