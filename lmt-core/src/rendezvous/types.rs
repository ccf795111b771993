//! What goes into a [`super::Machine`] and what comes out.

use super::packet::{ReceiveId, Rts, SendId, TransferKey};
use crate::vocabulary::identity::{MechanismTag, PeerKey};
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Interval, Plan};

/// One way to move a message: a mechanism and who copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The mechanism.
    pub mechanism: MechanismTag,
    /// Who moves the bytes.
    pub model: Model,
}

/// The ways to try for one message, the best first.
#[derive(Clone, Copy, Debug)]
pub struct Candidates {
    choices: [Choice; Self::MAX],
    used: u8,
}

impl Candidates {
    /// The most choices one message can have.
    pub const MAX: usize = 20;

    /// No choice at all.
    pub const NONE: Self = Self::new();

    /// No choice yet.
    pub const fn new() -> Self {
        let none = Choice { mechanism: MechanismTag(0), model: Model::Get };
        Self { choices: [none; Self::MAX], used: 0 }
    }

    /// Adds a choice behind the others; `false` when there are
    /// [`Self::MAX`] already, and nothing changes then.
    pub fn push(&mut self, choice: Choice) -> bool {
        let free = self.choices.get_mut(self.used as usize);
        if let Some(slot) = free {
            *slot = choice;
            self.used += 1;
            return true;
        }
        false
    }

    /// The same choices; where the first is that both ends copy and another mechanism is
    /// next, the receiver alone by the first one in its place, if it can, and both ends
    /// in that one's. Who names both ends of a mechanism and nothing else before its
    /// other models wants just that.
    #[must_use]
    pub fn with_one_end_first(mut self) -> Self {
        let choices = &mut self.choices[..self.used as usize];
        let [first, second, ..] = *choices else { return self };
        if first.model == Model::Both && second.mechanism != first.mechanism {
            let alone = Choice { model: Model::Get, ..first };
            if let Some(at) = choices.iter().position(|choice| *choice == alone) {
                choices.swap(0, at);
            }
        }
        self
    }

    /// The same choices, those of [`Model::Stream`] behind the others.
    #[must_use]
    pub fn with_streams_last(mut self) -> Self {
        let used = self.used as usize;
        // Stable, and so few that it takes no memory.
        self.choices[..used].sort_by_key(|choice| choice.model == Model::Stream);
        self
    }

    /// The choices in order.
    pub fn as_slice(&self) -> &[Choice] {
        &self.choices[..self.used as usize]
    }
}

impl Default for Candidates {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<Choice> for Candidates {
    /// Takes the first [`Candidates::MAX`] choices.
    fn from_iter<I: IntoIterator<Item = Choice>>(choices: I) -> Self {
        let mut all = Self::new();
        for choice in choices.into_iter().take(Self::MAX) {
            all.push(choice);
        }
        all
    }
}

/// What the driver is to do, in the order in which it is handed out.
///
/// `Prepare`, `Start` and `Leave` are answered before the next action is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call `Lmt::prepare` and answer with `Machine::prepared`.
    Prepare {
        /// The transfer.
        key: TransferKey,
        /// With whom.
        peer: PeerKey,
        /// By which mechanism; on the receiver's side the peer chose it, so it
        /// may be unknown here: then the answer is a `Fault::Demote`.
        mechanism: MechanismTag,
        /// What is to be moved.
        plan: Plan,
    },
    /// Call `Lmt::start`, with [`super::Machine::remote_cookie`], and answer with
    /// `Machine::started`.
    Start {
        /// The transfer.
        key: TransferKey,
        /// The part of the message that is to be moved.
        interval: Interval,
    },
    /// Call `SharedCompletion::leave` and answer with `Machine::left`: in the Both model, when
    /// this end has done its part, has failed or is to rest.
    Leave {
        /// The transfer.
        key: TransferKey,
    },
    /// Call `Lmt::finish`. Comes exactly once for each `Prepare` that went well.
    Finish {
        /// The transfer.
        key: TransferKey,
    },
    /// The send is over; its buffer is no longer used and its id is stale.
    CompleteSend {
        /// Which.
        id: SendId,
        /// How it ended. A message that the receiver cut short still is `Ok`.
        result: Result<(), TransferError>,
    },
    /// The receive is over; its buffer is no longer used and its id is stale.
    CompleteReceive {
        /// Which.
        id: ReceiveId,
        /// What arrived.
        result: Result<Received, TransferError>,
    },
    /// A mechanism is of no more use with this peer. As `Role::Sender`: stop
    /// proposing it for messages to this peer.
    Blacklist {
        /// With whom.
        peer: PeerKey,
        /// Which.
        mechanism: MechanismTag,
        /// In which model; the others may still work.
        model: Model,
        /// Which end this process was.
        role: Role,
        /// The errno of the failure, or 0.
        errno: i32,
        /// One sentence on what happened.
        sentence: String,
    },
}

/// What a completed receive got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The message's length.
    pub total_bytes: u64,
    /// Bytes that are in the buffer.
    pub received_bytes: u64,
    /// Whether the message was longer than the buffer.
    pub truncated: bool,
}

/// Why a transfer ended without its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The peer is dead.
    #[error("the peer has died; operations with other peers go on")]
    PeerDead,
    /// The send was cancelled before it was matched.
    #[error("the send was cancelled before a receive matched it")]
    Cancelled,
    /// Every mechanism failed.
    #[error("no mechanism is left that could move the message; the last one said: {reason}")]
    NoMechanism {
        /// The errno of the last failure, or 0.
        errno: i32,
        /// What it said, or that the peer reported it.
        reason: String,
    },
}

/// What a packet was, for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A new message: match it, then call `Machine::matched`, at once or later.
    Rts(&'a Rts),
    /// The peer wants this message back: look for it among the unexpected ones
    /// and call `Machine::withdrawn`.
    Withdraw {
        /// How the peer names it.
        send_id: SendId,
    },
    /// The machine dealt with it.
    Handled,
}

/// A packet that no honest peer sends; nothing was changed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// No such transfer was ever named to the peer.
    #[error("the peer named transfer {id:#x}, which this endpoint never began")]
    UnknownTransfer {
        /// The id it sent.
        id: u64,
    },
    /// The transfer belongs to another peer.
    #[error("the peer named transfer {id:#x}, which is another peer's")]
    WrongPeer {
        /// The id it sent.
        id: u64,
    },
    /// The transfer is not where such a packet could come.
    #[error("the peer sent {packet} for transfer {id:#x}, which waits for something else")]
    OutOfPlace {
        /// The id it sent.
        id: u64,
        /// The kind of packet.
        packet: &'static str,
    },
    /// An interval or offset does not lie in what is to be moved.
    #[error(
        "the peer sent {packet} for bytes {start} to {end} of transfer {id:#x}, which are not what is missing"
    )]
    BadInterval {
        /// The id it sent.
        id: u64,
        /// The kind of packet.
        packet: &'static str,
        /// Beginning of the interval, or the offset.
        start: u64,
        /// End of the interval, or the offset.
        end: u64,
    },
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
