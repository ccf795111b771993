//! `fabric.h` and `fi_tagged.h`: capabilities, flags of operations, modes,
//! orders.

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TAGGED: u64 = 1 << 3;
pub const ATOMIC: u64 = 1 << 4;
/// An operation on a multicast address, which there is none of.
pub const MULTICAST: u64 = 1 << 5;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
pub const TRANSMIT: u64 = SEND;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const MULTI_RECV: u64 = 1 << 16;
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
pub const MORE: u64 = 1 << 18;
pub const PEEK: u64 = 1 << 19;
pub const TRIGGER: u64 = 1 << 20;
pub const FENCE: u64 = 1 << 21;
pub const COMPLETION: u64 = 1 << 24;
/// Of an address vector: its insertions are told by events.
pub const EVENT: u64 = COMPLETION;
pub const INJECT: u64 = 1 << 25;
pub const INJECT_COMPLETE: u64 = 1 << 26;
pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const AFFINITY: u64 = 1 << 29;
pub const MATCH_COMPLETE: u64 = 1 << 31;
/// Of inserting addresses: their numbers are the caller's.
pub const AV_USER_ID: u64 = 1 << 41;
/// What is opened is an owner's, of which this provider makes use.
pub const PEER: u64 = 1 << 43;
pub const LOCAL_COMM: u64 = 1 << 51;
pub const REMOTE_COMM: u64 = 1 << 52;
pub const SOURCE: u64 = 1 << 57;
pub const DISCARD: u64 = 1 << 58;
pub const DIRECTED_RECV: u64 = 1 << 59;
pub const CLAIM: u64 = 1 << 59;
/// Of an address vector: every node has as many endpoints.
pub const SYMMETRIC: u64 = 1 << 59;
/// Of inserting addresses: an error for each.
pub const SYNC_ERR: u64 = 1 << 58;
/// Of binding a domain to an event queue: registering memory is told by events.
pub const REG_MR: u64 = 1 << 59;
/// Of binding an endpoint to a queue.
pub const SELECTIVE_COMPLETION: u64 = 1 << 59;
/// Of `fi_getinfo`: the question comes from libfabric's own providers.
pub const CORE_PROVIDERS_ONLY: u64 = 1 << 59;
/// Of `fi_getinfo`: what the provider can do, whatever the machine has.
pub const PROV_ATTR_ONLY: u64 = 1 << 54;

/// Sends leave in the order in which they were begun (`FI_ORDER_SAS`).
pub const ORDER_SAS: u64 = 1 << 8;

/// Atomic operations are done in the order in which they were begun
/// (`FI_ORDER_ATOMIC_RAR`, `RAW`, `WAR`, `WAW`).
pub const ORDER_ATOMIC: u64 = 0xf << 36;

/// A provider's own number.
pub const PROV_SPECIFIC: u32 = 1 << 31;

pub const MR_BASIC: i32 = 1;
pub const MR_SCALABLE: i32 = 2;
pub const MR_PROV_KEY: i32 = 1 << 6;
