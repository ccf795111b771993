//! How a large message moves: the trait [`Lmt`] that each mechanism implements, the
//! traits of what only some can, the mechanisms of an endpoint at run time
//! ([`Mechanisms`]) and their counters.
//!
//! No mechanism is named here. It must not know what asks a mechanism to work:
//! neither the protocol's packets nor matching nor requests; and it chooses none.
//!
//! - `lmt`: the trait, with the smallest mechanism in its docs. `description`: what each
//!   says of itself. `optional`: what only some can. `region_copy`: copies out of and
//!   into regions.
//! - [`diagnostic`]: what a mechanism says of this machine, for `lmt doctor`.
//! - `list`: the mechanisms at run time, and what each has done.
//! - `known`: what is known of each with a peer; `hellos` and `oob_message`: how that
//!   travels.

mod description;
pub mod diagnostic;
#[cfg(not(loom))]
pub(crate) mod hellos;
#[cfg(not(loom))]
mod known;
#[cfg(not(loom))]
mod list;
mod lmt;
#[cfg(not(loom))]
pub(crate) mod oob_message;
mod optional;
mod region_copy;
#[cfg(all(test, not(loom)))]
pub(crate) mod test_peer;

pub use crate::vocabulary::model::{Model, Reach, Role, SharedEnds};
pub use crate::vocabulary::peer_facts::{Abilities, Hello, PeerFacts, ProbeArea, Probed, Unavailable};
pub use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};
pub use description::{Description, Needs};
#[cfg(not(loom))]
pub use known::{KnownMechanism, MechanismStatus};
#[cfg(not(loom))]
pub use list::{Counters, Mechanisms, Tally, is_meant};
#[cfg(not(loom))]
pub(crate) use list::{Handle, MESSAGES_ONLY};
pub use lmt::Lmt;
pub use optional::{
    Background, BothEnds, CopiedPart, Diagnosis, Left, OobMessages, Regions, Settings, SharedCompletion,
};
pub use region_copy::{Direction, RegisteredCopy};
