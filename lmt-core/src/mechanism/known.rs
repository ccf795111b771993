//! What an endpoint knows of a mechanism: what it says of itself, and what it can
//! do with one peer.

use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::model::{Model, Reach, SharedEnds};
use crate::vocabulary::peer_facts::{Abilities, Unavailable};

/// What is known of one mechanism with one peer.
#[derive(Clone, Debug, Default)]
pub struct MechanismStatus {
    /// What this process can do with the peer.
    pub ours: Abilities,
    /// What the peer can do with this process.
    pub theirs: Abilities,
    /// Why it is not available, or was given up, as seen from here.
    pub reason: Option<Unavailable>,
}

/// One mechanism of an endpoint, with what is known of it with one peer.
#[derive(Clone, Debug)]
pub struct KnownMechanism {
    /// Its name.
    pub name: &'static str,
    /// Its name on the wire.
    pub tag: MechanismTag,
    /// The models it can do, the preferred one first.
    pub models: &'static [Model],
    /// Which memory it copies from and to.
    pub reach: Reach,
    /// Whether it copies registered memory ([`super::Regions`]).
    pub copies_registered: bool,
    /// How many times as long as a plain copy its copies take on this machine
    /// ([`super::Probed::times_plain_copy`]); nothing where it does not say, or
    /// does not work with the peer.
    pub times_plain_copy: Option<f32>,
    /// What the two processes found out by trying; nothing before they met.
    pub standing: MechanismStatus,
}

impl KnownMechanism {
    /// One that says nothing else of itself: it copies any memory, and none that is
    /// only declared.
    pub const fn new(name: &'static str, models: &'static [Model], standing: MechanismStatus) -> Self {
        Self {
            name,
            tag: MechanismTag::of(name),
            models,
            reach: Reach::AnyMemory,
            copies_registered: false,
            times_plain_copy: None,
            standing,
        }
    }

    /// Whether a message can go to the peer in this model.
    pub fn allows(&self, model: Model) -> bool {
        self.models.contains(&model) && self.standing.ours.allow_sending(self.standing.theirs, model)
    }

    /// Whether messages between such ends can go by it, as far as memory counts.
    pub fn reaches(&self, ends: SharedEnds) -> bool {
        self.models.iter().any(|model| self.reach.allows(*model, ends))
    }

    /// Whether a message can go to the peer by this mechanism at all.
    pub fn is_available(&self) -> bool {
        self.models.iter().any(|model| self.allows(*model))
    }
}
