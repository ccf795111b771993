//! Which path a message takes: the questions, the answers, and the table of
//! decisions that an endpoint keeps for each peer.
//!
//! The core asks a [`Policy`] once for each peer, when it is connected and when
//! what works with it changes, and consults the [`Decisions`] for each
//! message. Policies that know topology, rules and calibrations are outside;
//! [`ByOrder`] is what there is without one.
//!
//! It decides and explains, and moves no byte. It must not know the protocol, nor
//! any mechanism by its name.

mod by_order;
mod decisions;
mod explanation;
mod message;
mod one_sided;
mod path_name;
mod table;

use crate::base::cpu_set::CpuSet;
pub use crate::mechanism::KnownMechanism;
use crate::vocabulary::config::Config;
pub use by_order::ByOrder;
pub use decisions::{Decisions, Range};
pub use explanation::{Explanation, NOT_SHARED, NotTaken, Source, Taken, Why};
pub use message::{Hints, Message, Reuse, Variant, Warmth};
pub use one_sided::OneSided;
pub(crate) use one_sided::Orders;
pub use path_name::{PathName, PathNameError};
pub(crate) use table::Selection;

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
    pub has_fast_box: bool,
    /// Whether it is asked for gets or puts ([`OneSided`]): none of them goes in cells,
    /// and who copies is given.
    pub is_one_sided: bool,
}

impl Situation<'_> {
    /// What the longest message in cells can be between the two, whoever says more.
    pub const fn largest_eager_bytes(&self) -> u64 {
        if self.has_fast_box {
            crate::vocabulary::config::EAGER_MAX_BYTES
        } else {
            self.config.inbox_eager_max_bytes
        }
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
