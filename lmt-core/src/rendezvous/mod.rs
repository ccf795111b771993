//! The rendezvous protocol: how two processes agree on, carry out and end the
//! transfer of one large message (nemesis-lmt, section 2; knem-jpdc, 4.4).
//!
//! [`Machine`] is a pure state machine: packets and results go in, [`Action`]s
//! and packets come out. It makes no system call, reads no clock, starts no thread and
//! knows no mechanism, so that an endpoint and an embedder with its own packets
//! drive the very same code, and tests drive it through any interleaving.
//!
//! A message's path, each line one packet:
//!
//! ```text
//! Get          sender  RTS ->            receiver copies        <- DONE
//! Put          sender  RTS ->  <- CTS    sender copies             DONE ->
//! Cooperative  sender  RTS ->  <- CTS    both copy              <- DONE
//! Stream       sender  RTS ->            both copy              (<- DONE)
//! Both         sender  RTS ->  <- CTS    both copy              (<- DONE)
//! demotion     receiver fails: <- DEMOTE   RETRY ->  (then as RTS)
//!              sender fails:   FAIL -> <- DEMOTE   RETRY ->
//!              none is left:   GIVE_UP ->
//! cancel       CANCEL ->  <- CANCEL_REPLY
//! ```
//!
//! # Why packets that cross do no harm
//!
//! Packets between two endpoints arrive in the order in which they were
//! emitted. For each attempt that a sender announces (RTS or RETRY), the
//! receiver answers with exactly one of DONE and DEMOTE (in the Put model DONE
//! comes from the sender, which then sends no FAIL), so whoever reported a
//! failure knows what it waits for:
//! - FAIL crosses DONE: the receiver had everything; the sender takes DONE as
//!   success and the receiver drops FAIL, whose id is stale by then.
//! - FAIL crosses DEMOTE: both sides failed; the receiver has answered already
//!   and drops FAIL, the sender acts on DEMOTE.
//! - CANCEL crosses CTS, DEMOTE or DONE: the receiver no longer has the RTS in
//!   its unexpected queue and replies "not cancelled", behind the packet that
//!   it crossed; the sender goes on.
//! - CTS then DEMOTE (the receiver of a Cooperative transfer fails to start):
//!   the sender starts, then ends the attempt.
//!
//! In the Stream model the sender moves bytes before anybody has answered. One
//! that fails then knows no name to send FAIL to: its bytes are withdrawn, who
//! matches the message fails by that and says DEMOTE, and until then a CANCEL
//! takes it back. In the Both and Stream models DONE stays out where the sender
//! is known to see the end by itself.
#![forbid(unsafe_code)]

mod errno_text;
mod machine;
pub mod packet;
mod receiver;
mod sender;
mod side;
mod turns;
mod types;
mod wire;

pub use crate::vocabulary::identity::{MechanismTag, PeerKey};
pub use machine::Machine;
pub use packet::{Cts, Demote, Done, Packet, ReceiveId, Rts, SendId, TransferKey};
pub use types::{Action, Candidates, Choice, Incoming, ProtocolError, Received, TransferError};
#[cfg(not(loom))]
pub(crate) use wire::PacketWords;
