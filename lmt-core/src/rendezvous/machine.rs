//! The machine: its tables, its interface to the driver, and what both sides share; whose turn
//! it is, in `turns`.

use super::errno_text::of_errno;
use super::packet::{Packet, ReceiveId, SendId, TransferKey};
use super::side::{Inbound, Outgoing, Phase, Side};
use super::types::{Action, Incoming, ProtocolError, TransferError};
use crate::base::short_queue::Queue;
use crate::base::slab::{Slab, SlotStatus};
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Cookie, Fault};

/// All transfers of one endpoint.
///
/// The driver calls it with what happened and, after each call, takes actions
/// with [`Machine::pop_action`] until there are none, and then packets with
/// [`Machine::pop_packet`]; only then may it send anything else to a peer, or a short
/// message could overtake an RTS. A start may be answered later, behind packets. Results for
/// transfers that are over are ignored.
///
/// Memory grows to the most transfers there were at once and is then reused.
#[derive(Debug)]
pub struct Machine {
    pub(super) sends: Slab<Outgoing>,
    pub(super) receives: Slab<Inbound>,
    pub(super) actions: Queue<Action>,
    /// To be sent, in this order.
    pub(super) packets: Queue<(PeerKey, Packet)>,
    /// Transfers that take turns, but for helping sends. One that is no longer active stays until its
    /// turn comes; `Side::in_ring` keeps it from standing here twice.
    pub(super) ring: Queue<TransferKey>,
    /// Active sends of the Both model, which take turns among themselves: the
    /// receivers do without them, so they come when nothing else moves.
    pub(super) helpers: Queue<TransferKey>,
    pub(super) active: usize,
    /// How many of the active ones stand in `helpers`.
    pub(super) active_helpers: usize,
    /// Turns in `ring` since a helper had one: in all, and how many at the end
    /// moved nothing.
    pub(super) turns: usize,
    pub(super) empty_steps: usize,
}

/// What a fault says of its mechanism; nothing where the peer is dead.
pub(super) fn demotion(fault: Fault) -> Option<(i32, bool, String)> {
    match fault {
        Fault::PeerDead => None,
        Fault::Demote { errno, for_good, sentence } => Some((errno, for_good, sentence)),
    }
}

impl Machine {
    /// A machine without transfers.
    pub const fn new() -> Self {
        Self {
            sends: Slab::new(),
            receives: Slab::new(),
            actions: Queue::new(),
            packets: Queue::new(),
            ring: Queue::new(),
            helpers: Queue::new(),
            active: 0,
            active_helpers: 0,
            turns: 0,
            empty_steps: 0,
        }
    }

    /// The next thing to do.
    pub fn pop_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether there are packets to send.
    #[inline]
    pub fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Whether this transfer is in flight.
    #[inline]
    pub fn is_there(&self, key: TransferKey) -> bool {
        self.side(key).is_some()
    }

    /// The next packet to send, behind all that was sent to this peer before.
    pub fn pop_packet(&mut self) -> Option<(PeerKey, Packet)> {
        self.packets.pop_front()
    }

    /// The packet that [`Self::pop_packet`] gives next.
    #[inline]
    pub fn front_packet(&self) -> Option<&(PeerKey, Packet)> {
        self.packets.front()
    }

    /// Forgets that packet, which has been sent.
    #[inline]
    pub fn drop_packet(&mut self) {
        self.packets.drop_front();
    }

    /// How many transfers take turns now: the number of calls of
    /// [`Self::next_step`] that give each of them one.
    #[inline]
    pub fn active(&self) -> usize {
        self.active
    }

    /// How many transfers are in flight, whatever they wait for.
    pub fn transfers(&self) -> usize {
        self.sends.len() + self.receives.len()
    }

    /// What the other side has said of its memory for the present attempt; unchecked.
    pub fn remote_cookie(&self, key: TransferKey) -> Option<&Cookie> {
        match key {
            TransferKey::Send(id) => self.sends.get(id.0).map(|outgoing| &outgoing.remote_cookie),
            TransferKey::Receive(id) => self.receives.get(id.0).map(|inbound| &inbound.remote_cookie),
        }
    }

    /// The answer to `Action::Start`.
    pub fn started(&mut self, key: TransferKey, result: Result<(), Fault>) {
        if self.side(key).is_none_or(|side| side.phase != Phase::Starting) {
            return;
        }
        match result {
            Ok(()) => self.enter(key, Phase::Active),
            Err(fault) => self.failed(key, fault),
        }
    }

    /// Takes a packet from `peer` and says what it was.
    ///
    /// # Errors
    /// [`ProtocolError`] for what no honest peer sends; nothing was changed.
    pub fn packet<'a>(&mut self, peer: PeerKey, packet: &'a Packet) -> Result<Incoming<'a>, ProtocolError> {
        match packet {
            Packet::Rts(rts) => return Ok(Incoming::Rts(rts)),
            Packet::Cancel { send_id } => return Ok(Incoming::Withdraw { send_id: *send_id }),
            Packet::Cts(cts) => self.on_cts(peer, cts)?,
            Packet::Demote(demote) => self.on_demote(peer, demote)?,
            Packet::CancelReply { send_id, cancelled } => self.on_cancel_reply(peer, *send_id, *cancelled)?,
            Packet::Fail(fail) => self.on_fail(peer, fail)?,
            Packet::Retry(retry) => self.on_retry(peer, retry)?,
            Packet::Done(done) => match done.to {
                TransferKey::Send(id) => self.on_received(peer, id, done.attempt)?,
                TransferKey::Receive(id) => self.on_sent(peer, id, done.attempt)?,
            },
            Packet::GiveUp(give_up) => {
                if self.knows(peer, give_up.to)? {
                    let reason = format!("the peer gave up {}", of_errno(give_up.errno));
                    self.end(give_up.to, TransferError::NoMechanism { errno: give_up.errno, reason });
                }
            }
        }
        Ok(Incoming::Handled)
    }

    /// The answer to [`Incoming::Withdraw`]: whether the message was among the
    /// unexpected ones, and has been taken out.
    pub fn withdrawn(&mut self, peer: PeerKey, send_id: SendId, found: bool) {
        self.packets.push_back((peer, Packet::CancelReply { send_id, cancelled: found }));
    }

    /// Ends every transfer with a peer that has died. No packet from it may follow, and
    /// none for it: when the actions have been taken, [`Self::drop_packets_to`] forgets those
    /// that are still here. A send whose end its receiver has left in shared memory, for this
    /// side to see, has gone well.
    pub fn peer_dead(&mut self, peer: PeerKey) {
        for index in 0..self.sends.slots() {
            if let Some(id) = self.sends.id_at(index) {
                self.end_if_with(peer, TransferKey::Send(SendId(id)));
            }
        }
        for index in 0..self.receives.slots() {
            if let Some(id) = self.receives.id_at(index) {
                self.end_if_with(peer, TransferKey::Receive(ReceiveId(id)));
            }
        }
    }

    /// Forgets the packets for a peer that is dead or gone.
    pub fn drop_packets_to(&mut self, peer: PeerKey) {
        self.packets.retain(|(to, _)| *to != peer);
    }

    fn end_if_with(&mut self, peer: PeerKey, key: TransferKey) {
        let Some(side) = self.side_mut(key).filter(|side| side.peer == peer) else { return };
        if side.role == Role::Sender && side.model.is_left() && side.phase == Phase::Active {
            side.pending_error = Some(TransferError::PeerDead);
            self.leave(key);
        } else {
            self.end(key, TransferError::PeerDead);
        }
    }

    pub(super) fn side(&self, key: TransferKey) -> Option<&Side> {
        match key {
            TransferKey::Send(id) => self.sends.get(id.0).map(|outgoing| &outgoing.side),
            TransferKey::Receive(id) => self.receives.get(id.0).map(|inbound| &inbound.side),
        }
    }

    pub(super) fn side_mut(&mut self, key: TransferKey) -> Option<&mut Side> {
        match key {
            TransferKey::Send(id) => self.sends.get_mut(id.0).map(|outgoing| &mut outgoing.side),
            TransferKey::Receive(id) => self.receives.get_mut(id.0).map(|inbound| &mut inbound.side),
        }
    }

    /// Whether a transfer that `peer` named is still in flight; an error when
    /// it cannot honestly know that name.
    pub(super) fn knows(&self, peer: PeerKey, key: TransferKey) -> Result<bool, ProtocolError> {
        let (id, standing) = match key {
            TransferKey::Send(SendId(id)) => (id, self.sends.standing(id)),
            TransferKey::Receive(ReceiveId(id)) => (id, self.receives.standing(id)),
        };
        match (standing, self.side(key)) {
            (SlotStatus::Live, Some(side)) if side.peer == peer => Ok(true),
            (SlotStatus::Live, _) => Err(ProtocolError::WrongPeer { id }),
            (SlotStatus::Stale, _) => Ok(false),
            (SlotStatus::Never, _) => Err(ProtocolError::UnknownTransfer { id }),
        }
    }

    /// Takes a transfer out of its table, and drops it where it lies; whether it was there.
    pub(super) fn forget(&mut self, key: TransferKey) -> bool {
        let Some(side) = self.side(key) else { return false };
        let (is_helper, was_active) = (side.is_helper(), side.phase == Phase::Active);
        self.count(is_helper, false, was_active);
        match key {
            TransferKey::Send(id) => self.sends.discard(id.0),
            TransferKey::Receive(id) => self.receives.discard(id.0),
        }
        true
    }

    /// Asks the mechanism to let go, if it holds anything.
    pub(super) fn finish(&mut self, key: TransferKey) {
        if let Some(side) = self.side_mut(key)
            && std::mem::take(&mut side.held)
        {
            self.actions.push_back(Action::Finish { key });
        }
    }

    /// Keeps why an attempt failed, on the side that `by` names.
    pub(super) fn note(&mut self, key: TransferKey, by: Role, errno: i32, for_good: bool, sentence: String) {
        let Some(side) = self.side_mut(key) else { return };
        side.failure = Some((errno, sentence.clone()));
        let (peer, mechanism, role) = (side.peer, side.mechanism, side.role);
        // What fails of the two halves of Both is that of the end that failed.
        let model = match (side.model, by) {
            (Model::Both, Role::Receiver) => Model::Get,
            (Model::Both, Role::Sender) => Model::Put,
            (model, _) => model,
        };
        if for_good {
            self.actions.push_back(Action::Blacklist { peer, mechanism, model, role, errno, sentence });
        }
    }

    /// A mechanism failed on this side, in `start` or `step`.
    pub(super) fn failed(&mut self, key: TransferKey, fault: Fault) {
        let Some((errno, for_good, sentence)) = demotion(fault) else {
            return self.end(key, TransferError::PeerDead);
        };
        self.note(key, key.role(), errno, for_good, sentence);
        match key {
            TransferKey::Send(_) if self.side(key).is_some_and(|side| side.model.is_left()) => {
                // It may be too late to fail: the receiver may have all.
                if let Some(side) = self.side_mut(key) {
                    side.leaving_for = Some((errno, for_good));
                }
                self.leave(key);
            }
            TransferKey::Send(id) => self.fail(id, errno, for_good),
            TransferKey::Receive(id) => self.demote(id, errno, for_good),
        }
    }

    /// Ends one end of a transfer with an error; while `Prepare` is unanswered,
    /// as soon as it is answered, so that `Finish` comes before completion.
    pub(super) fn end(&mut self, key: TransferKey, error: TransferError) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase == Phase::Preparing {
            side.pending_error = Some(error);
            return;
        }
        match key {
            TransferKey::Send(id) => self.end_send(id, Err(error)),
            TransferKey::Receive(id) => self.end_receive(id, Err(error)),
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
