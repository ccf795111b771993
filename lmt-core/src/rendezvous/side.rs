//! What is kept of one transfer, at the sender and at the receiver.

use super::packet::{ReceiveId, Rts, SendId};
use super::types::{Candidates, ProtocolError, TransferError};
use crate::vocabulary::identity::{MechanismTag, PeerKey};
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan};

/// Where one end of a transfer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// `Prepare` has not been answered.
    Preparing,
    /// The next word is the peer's.
    Waiting,
    /// `Start` has not been answered.
    Starting,
    /// Takes its turns.
    Active,
    /// Sender of a Cooperative transfer that has given everything, or of a Both
    /// or Stream transfer that has left: the receiver is to say that it has it
    /// all.
    Drained,
    /// `Leave` has not been answered.
    Leaving,
    /// A failure was reported to the peer, which is to answer.
    Failed,
}

/// What both ends of a transfer have.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) peer: PeerKey,
    pub(super) role: Role,
    pub(super) phase: Phase,
    /// `Prepare` went well and `Finish` has not been asked for.
    pub(super) held: bool,
    pub(super) in_ring: bool,
    pub(super) in_helpers: bool,
    pub(super) attempt: u8,
    pub(super) mechanism: MechanismTag,
    pub(super) model: Model,
    /// What this attempt is to move.
    pub(super) interval: Interval,
    /// How much of it this end has moved, from the front.
    pub(super) moved_bytes: u64,
    /// Set while `Prepare` is unanswered, and for a send that leaves because its
    /// receiver is dead: how to end once it is answered.
    pub(super) pending_error: Option<TransferError>,
    /// The failure for which a Both transfer is left: errno, and whether for good.
    pub(super) leaving_for: Option<(i32, bool)>,
    /// The last failure: errno, and in words.
    pub(super) failure: Option<(i32, String)>,
}

impl Side {
    pub(super) fn new(peer: PeerKey, role: Role, interval: Interval) -> Self {
        Self {
            peer,
            role,
            phase: Phase::Preparing,
            held: false,
            in_ring: false,
            in_helpers: false,
            attempt: 0,
            mechanism: MechanismTag(0),
            model: Model::Get,
            interval,
            moved_bytes: 0,
            pending_error: None,
            leaving_for: None,
            failure: None,
        }
    }

    /// What is asked of the mechanism, which is to see it through.
    pub(super) fn plan(&self) -> Plan {
        let Self { role, model, interval, .. } = *self;
        Plan::new(role, model, interval)
    }

    /// Whether this is the sender of the Both model.
    pub(super) fn is_helper(&self) -> bool {
        self.role == Role::Sender && self.model == Model::Both
    }

    /// Whether this is the sender of a stream that only waits for its end.
    pub(super) fn has_sent_all(&self) -> bool {
        self.role == Role::Sender
            && self.model == Model::Stream
            && self.phase == Phase::Active
            && self.moved_bytes == self.interval.bytes()
    }

    /// First byte that this end has not moved.
    pub(super) fn front(&self) -> u64 {
        self.interval.start.saturating_add(self.moved_bytes)
    }

    /// Books a step.
    pub(super) fn advance(&mut self, bytes: u64, done: bool) -> Result<(), Fault> {
        let left = self.interval.bytes() - self.moved_bytes;
        if bytes > left {
            return Err(contract_violation(format!("a step reported {bytes} bytes where {left} were left")));
        }
        // But for Get and Put it is the receiver who counts.
        let counts = self.role == Role::Receiver || self.model == Model::Put;
        if done && counts && bytes != left {
            return Err(contract_violation(format!("it said done with {} bytes missing", left - bytes)));
        }
        self.moved_bytes += bytes;
        Ok(())
    }

    /// How the transfer ends when no way is left.
    pub(super) fn exhausted(&mut self) -> TransferError {
        let (errno, reason) = self.failure.take().unwrap_or((0, "none was proposed".to_owned()));
        TransferError::NoMechanism { errno, reason }
    }

    /// Whether a packet about `attempt` is about the present one. An older one
    /// is ignored; a newer one cannot be.
    pub(super) fn is_present(
        &self,
        attempt: u8,
        id: u64,
        packet: &'static str,
    ) -> Result<bool, ProtocolError> {
        if attempt > self.attempt {
            return Err(ProtocolError::OutOfPlace { id, packet });
        }
        Ok(attempt == self.attempt)
    }
}

/// The fault of a mechanism that breaks the trait's promises.
fn contract_violation(sentence: String) -> Fault {
    Fault::Demote { errno: libc::EPROTO, for_good: true, sentence }
}

/// A matched message on its way in.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) side: Side,
    /// The sender's name for it.
    pub(super) send_id: SendId,
    /// The message's length, as its sender says.
    pub(super) total_bytes: u64,
    /// How much of it the receive has room for.
    pub(super) received_bytes: u64,
    /// Where what the sender has offered for the present attempt ends.
    pub(super) offered_end: u64,
    /// The sender's cookie for the present attempt, unchecked.
    pub(super) remote_cookie: Cookie,
    /// Whether this end's memory is in shared buffers.
    pub(super) shared: bool,
}

impl Inbound {
    /// A message that was announced so, of which the first `received_bytes` bytes come in.
    pub(super) fn new(peer: PeerKey, rts: &Rts, received_bytes: u64) -> Self {
        let mut side = Side::new(peer, Role::Receiver, Interval { start: 0, end: received_bytes });
        side.attempt = rts.attempt;
        (side.mechanism, side.model) = (rts.mechanism, rts.model);
        Self {
            side,
            send_id: rts.send_id,
            total_bytes: rts.total_bytes,
            received_bytes,
            offered_end: rts.total_bytes,
            remote_cookie: rts.cookie,
            shared: false,
        }
    }
}

/// A message on its way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) side: Side,
    pub(super) total_bytes: u64,
    pub(super) candidates: Candidates,
    /// Index of the candidate to try next.
    pub(super) next_candidate: usize,
    /// Whether the peer has been told of the message.
    pub(super) announced: bool,
    /// The receiver's name for it, once CTS or DEMOTE has said it.
    pub(super) remote: Option<ReceiveId>,
    /// The receiver's cookie for the present attempt, unchecked.
    pub(super) remote_cookie: Cookie,
    pub(super) cancel_sent: bool,
}

impl Outgoing {
    /// Whether it is announced, and nothing is known of a receive that matched.
    pub(super) fn is_unanswered(&self) -> bool {
        let waits = match self.side.model {
            // Its sender goes ahead, and may have failed, before anybody answers.
            Model::Stream => self.side.phase != Phase::Preparing,
            _ => self.side.phase == Phase::Waiting,
        };
        waits && self.remote.is_none()
    }
}
