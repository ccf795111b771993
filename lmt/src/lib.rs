//! Moves messages, above all large ones, between the processes of one machine
//! as fast as the machine can: short ones through a lock-free queue in shared
//! memory, large ones by whichever mechanism suits them.
//!
//! An [`Endpoint`] sends and receives. Its [`Endpoint::address`] is a short
//! byte string that the embedder passes around as it likes; [`launch`] starts
//! groups of processes that know each other's addresses from the start. MPI
//! device layers that have their own matching use [`device`]; embedders that own
//! their buffers use the [`Engine`] below.
#![deny(unsafe_code)]

mod access;
mod builder;
pub mod configuration;
mod endpoint;
pub mod launch;
pub mod list;
mod lock;
mod messages;
mod open;
mod progress_thread;
mod region;
mod request;
mod scope;
mod shared;
mod stats;

pub use access::Access;
pub use builder::EndpointBuilder;
pub use endpoint::Endpoint;
pub use list::mechanism_names;
pub use lmt_core::config::{Config, ConfigError};
pub use lmt_core::connect::ConnectError;
pub use lmt_core::endpoint::{
    Completion, CreateError, EagerCounters, Engine, Label, Message, OperationError, Outcome, PeerId,
    Placement, ReportToken, Reported, RequestId, SendMode, SendOptions, Source, Space, Started, Status,
    TagMatch, Wanted, YieldOutcome, yield_core,
};
pub use lmt_core::error::{MemoryError, MemoryShort, PeerError};
pub use lmt_core::identity::{Address, AddressError, EndpointId};
pub use lmt_core::region::{Direction, Protection, RegionError, RegionKey, RegionOptions};
pub use lmt_core::selection::{Explanation, Hints, Reuse, Warmth};
pub use lmt_core::shared_buffer::{SharedBuffer, alloc};
pub use lmt_core::{buffer, config_key, cpu_set, device, diagnostic, mechanism, selection, shared_buffer};
pub use progress_thread::ProgressThread;
pub use region::{Region, SharedRegion};
pub use request::Request;
pub use scope::Scope;
pub use shared::SharedEndpoint;

/// A random identity (getrandom(2)).
///
/// # Errors
/// The kernel gives no random bytes.
pub fn random_id() -> Result<EndpointId, CreateError> {
    lmt_core::random::bytes().map(EndpointId::from_bytes).map_err(|source| CreateError::System {
        what: "getrandom",
        source,
        advice: lmt_core::errno_advice::advice("getrandom", source),
    })
}
