//! Which way a message takes: the questions, the answers, and the table of
//! decisions that an endpoint keeps for each peer.
//!
//! The core asks a [`Policy`] once for each peer, when it is connected and when
//! what works with it changes, and looks into the [`Decisions`] for each
//! message. Policies that know topology, rules and calibrations are outside;
//! [`ByOrder`] is what there is without one.

mod by_order;
mod decisions;
mod explanation;
mod message;
mod one_sided;
mod table;
mod way;

pub use by_order::ByOrder;
pub use decisions::{Decisions, Range};
pub use explanation::{Explanation, NOT_SHARED, NotTaken, Source, Taken, Why};
pub use message::{Hints, Message, Reuse, Variant, Warmth};
pub use one_sided::OneSided;
pub(crate) use one_sided::Orders;
pub(crate) use table::Selection;
pub use way::{WayName, WayNameError};

use crate::config::Config;
use crate::cpu_set::CpuSet;
use crate::mechanism::{Model, Reach, SharedEnds};
use crate::mechanisms::Standing;
use crate::rendezvous::MechanismTag;

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
    /// Whether it copies declared memory ([`crate::mechanism::Lmt::copies_declared`]).
    pub copies_declared: bool,
    /// How many times as long as a plain copy its copies take on this machine
    /// ([`crate::mechanism::Lmt::times_plain_copy`]); nothing where it does not say, or
    /// does not work with the peer.
    pub times_plain_copy: Option<f32>,
    /// What the two processes found out by trying; nothing before they met.
    pub standing: Standing,
}

impl KnownMechanism {
    /// One that says nothing else of itself: it copies any memory, and none that is
    /// only declared.
    pub const fn new(name: &'static str, models: &'static [Model], standing: Standing) -> Self {
        Self {
            name,
            tag: MechanismTag::of(name),
            models,
            reach: Reach::AnyMemory,
            copies_declared: false,
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

/// All that a policy may know when it decides for one peer.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Where this process may run.
    pub here: &'a CpuSet,
    /// Where the peer may run; empty when it has not said so.
    pub there: &'a CpuSet,
    /// Where this process may run, and behind it, in any order, where those may
    /// that this endpoint is connected with.
    pub processes: &'a [CpuSet],
    /// The mechanisms in the order in which they were registered.
    pub mechanisms: &'a [KnownMechanism],
    /// The endpoint's configuration.
    pub config: &'a Config,
    /// Whether the two have met, so that the standings mean something.
    pub is_connected: bool,
    /// Whether the peer gives this endpoint a fast box for its messages, or may do
    /// so when they meet.
    pub has_box: bool,
    /// Whether it is asked for gets or puts ([`OneSided`]): none of them goes in cells,
    /// and who copies is given.
    pub is_one_sided: bool,
}

impl Situation<'_> {
    /// What the longest message in cells can be between the two, whoever says more.
    pub const fn most_eager_bytes(&self) -> u64 {
        if self.has_box { crate::config::EAGER_MOST_BYTES } else { self.config.boxless_eager_max_bytes }
    }
}

/// Decides which way messages take.
pub trait Policy: Send {
    /// The decisions for all messages to one peer.
    fn decide(&mut self, situation: &Situation<'_>) -> Decisions;

    /// Whether [`Situation::processes`] plays a part: then the decisions for a
    /// peer are made anew when another has come or gone and the next message is
    /// sent to it, not before.
    fn counts_processes(&self) -> bool {
        false
    }

    /// Why one message takes the way that it takes, in words.
    fn explain(&self, situation: &Situation<'_>, message: &Message) -> Explanation;
}
