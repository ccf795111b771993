//! The rendezvous packets; their form on the wire is in [`super::wire`].

use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Cookie, Interval};

/// A message on its way out, as its sender names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct SendId(pub u64);

/// A matched message on its way in, as its receiver names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ReceiveId(pub u64);

/// One end of one transfer within one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum TransferKey {
    /// The message leaves here.
    Send(SendId),
    /// It arrives here.
    Receive(ReceiveId),
}

impl TransferKey {
    /// Which end it is.
    pub const fn role(self) -> Role {
        match self {
            Self::Send(_) => Role::Sender,
            Self::Receive(_) => Role::Receiver,
        }
    }
}

/// "I have a message for you": sender to receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rts {
    /// How the sender names the message.
    pub send_id: SendId,
    /// The message's length.
    pub total_bytes: u64,
    /// Number of this attempt; 0 is the first.
    pub attempt: u8,
    /// Which mechanism the sender proposes.
    pub mechanism: MechanismTag,
    /// Who is to move the bytes.
    pub model: Model,
    /// The sender's cookie.
    pub cookie: Cookie,
}

/// "Here is my side": receiver to sender, Put and Cooperative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cts {
    /// The message.
    pub send_id: SendId,
    /// How the receiver names it.
    pub receive_id: ReceiveId,
    /// Which attempt this answers.
    pub attempt: u8,
    /// What the receiver has room for, where that is not all that the attempt is to
    /// move.
    pub interval: Option<Interval>,
    /// Whether the receiver's memory is in shared buffers.
    pub shared: bool,
    /// The receiver's cookie.
    pub cookie: Cookie,
}

/// "All has been moved": from the end that moved or counted the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The addressee's end.
    pub to: TransferKey,
    /// Which attempt.
    pub attempt: u8,
    /// From a receiver: whether the message arrived in shared buffers.
    pub shared: bool,
}

impl Done {
    /// Of an attempt that has gone well.
    pub const fn new(to: TransferKey, attempt: u8, shared: bool) -> Self {
        Self { to, attempt, shared }
    }
}

/// "This attempt has failed, try another way": receiver to sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demote {
    /// The message.
    pub send_id: SendId,
    /// How the receiver names it.
    pub receive_id: ReceiveId,
    /// Which attempt failed.
    pub attempt: u8,
    /// What is still missing, never empty.
    pub remaining: Interval,
    /// The errno behind it, or 0.
    pub errno: i32,
    /// Whether the receiver found the mechanism to be of no more use at all.
    pub for_good: bool,
    /// Whether the receiver's buffer is in shared memory.
    pub shared: bool,
}

/// "My side has failed": sender to receiver, which answers with DEMOTE, or
/// with DONE when it has everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fail {
    /// The receive.
    pub receive_id: ReceiveId,
    /// Which attempt failed.
    pub attempt: u8,
    /// Put: everything before this offset has been written.
    pub front: u64,
    /// The errno behind it, or 0.
    pub errno: i32,
    /// Whether the sender found the mechanism to be of no more use at all.
    pub for_good: bool,
}

/// "Take what is missing this way": sender to receiver, after DEMOTE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// The receive.
    pub receive_id: ReceiveId,
    /// Number of this attempt, one more than that of the demoted one.
    pub attempt: u8,
    /// Which mechanism the sender proposes now.
    pub mechanism: MechanismTag,
    /// Who is to move the bytes.
    pub model: Model,
    /// What is still missing, as DEMOTE said.
    pub interval: Interval,
    /// The sender's cookie.
    pub cookie: Cookie,
}

/// "No mechanism is left": both ends complete with an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GiveUp {
    /// The addressee's end.
    pub to: TransferKey,
    /// The errno of the last failure, or 0.
    pub errno: i32,
}

/// What two machines say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    /// Announces a message.
    Rts(Rts),
    /// Asks for the bytes.
    Cts(Cts),
    /// Ends a transfer well.
    Done(Done),
    /// Ends an attempt.
    Demote(Demote),
    /// Asks for the end of an attempt.
    Fail(Fail),
    /// Begins the next attempt.
    Retry(Retry),
    /// Ends a transfer badly.
    GiveUp(GiveUp),
    /// Takes an unmatched message back: sender to receiver.
    Cancel {
        /// The message.
        send_id: SendId,
    },
    /// Says whether that came in time.
    CancelReply {
        /// The message.
        send_id: SendId,
        /// Whether the message was still unmatched and is now forgotten.
        cancelled: bool,
    },
}

/// Why bytes are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// No packet has this number.
    #[error("packet kind {0} is unknown; both endpoints must speak the same version")]
    Kind(u8),
    /// Too short or too long for what it says it is.
    #[error("a packet of kind {kind} came with {bytes} bytes instead of {expected}")]
    Length {
        /// What it says it is.
        kind: u8,
        /// How long it is.
        bytes: usize,
        /// How long it would have to be.
        expected: usize,
    },
    /// A field holds what no sender writes.
    #[error("a packet of kind {kind} holds {value} as its {field}, which means nothing")]
    Field {
        /// What it says it is.
        kind: u8,
        /// Which field.
        field: &'static str,
        /// What stands there.
        value: u64,
    },
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
