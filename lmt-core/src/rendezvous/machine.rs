//! The machine: its tables, its door to the driver, and what both sides share.

use crate::identity::PeerKey;
use crate::mechanism::{Cookie, Fault, Interval, Model, Plan, Role, Step};
use crate::queue::Queue;
use crate::slab::{Slab, Standing};

use super::fault_words::of_errno;
use super::packet::{MechanismTag, Packet, ReceiveId, SendId, TransferKey};
use super::receiver::Inbound;
use super::sender::Outgoing;
use super::types::{Action, Incoming, ProtocolError, TransferError};

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
    ring: Queue<TransferKey>,
    /// Active sends of the Both model, which take turns among themselves: the
    /// receivers do without them, so they come when nothing else moves.
    helpers: Queue<TransferKey>,
    active: usize,
    /// How many of the active ones stand in `helpers`.
    active_helpers: usize,
    /// Turns in `ring` since a helper had one: in all, and how many at the end
    /// moved nothing.
    turns: usize,
    idle_turns: usize,
}

/// After so many turns of others in a row a helping send may look, without
/// copying, whether the receiver has ended the message.
const TURNS_BETWEEN_LOOKS: usize = 8;

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
    in_ring: bool,
    in_helpers: bool,
    pub(super) attempt: u8,
    pub(super) mechanism: MechanismTag,
    pub(super) model: Model,
    /// What this attempt is to move.
    pub(super) interval: Interval,
    /// How much of it this end has moved, from the front.
    pub(super) moved_bytes: u64,
    /// Set while `Prepare` is unanswered, and for a send that leaves because its
    /// receiver is dead: how to end once it is answered.
    pub(super) doom: Option<TransferError>,
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
            doom: None,
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
    fn is_helper(&self) -> bool {
        self.role == Role::Sender && self.model == Model::Both
    }

    /// Whether this is the sender of a stream that only waits for its end.
    fn has_given_all(&self) -> bool {
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
    fn advance(&mut self, bytes: u64, done: bool) -> Result<(), Fault> {
        let left = self.interval.bytes() - self.moved_bytes;
        if bytes > left {
            return Err(breach(format!("a step reported {bytes} bytes where {left} were left")));
        }
        // But for Get and Put it is the receiver who counts.
        let counts = self.role == Role::Receiver || self.model == Model::Put;
        if done && counts && bytes != left {
            return Err(breach(format!("it said done with {} bytes missing", left - bytes)));
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
fn breach(sentence: String) -> Fault {
    Fault::Demote { errno: libc::EPROTO, for_good: true, sentence }
}

/// What a fault says of its mechanism; nothing where the peer is dead.
fn demotion(fault: Fault) -> Option<(i32, bool, String)> {
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
            idle_turns: 0,
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

    /// Whether this transfer is under way.
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

    /// How many transfers are under way, whatever they wait for.
    pub fn transfers(&self) -> usize {
        self.sends.len() + self.receives.len()
    }

    /// The answer to `Action::Prepare`.
    pub fn prepared(&mut self, key: TransferKey, result: Result<&Cookie, Fault>) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Preparing {
            return;
        }
        side.held = result.is_ok();
        side.phase = Phase::Waiting;
        if let Some(doom) = side.doom.take() {
            return self.end(key, doom);
        }
        match (key, result) {
            (TransferKey::Send(id), Ok(cookie)) => self.announce(id, cookie),
            (TransferKey::Receive(id), Ok(cookie)) => self.answer(id, cookie),
            (_, Err(fault)) => {
                let Some((errno, for_good, sentence)) = demotion(fault) else {
                    return self.end(key, TransferError::PeerDead);
                };
                self.note(key, key.role(), errno, for_good, sentence);
                match key {
                    TransferKey::Send(id) => self.prepare_next(id),
                    TransferKey::Receive(id) => self.demote(id, errno, for_good),
                }
            }
        }
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

    /// Whose turn it is, and how many bytes it may move: each active transfer
    /// gets `quota_bytes` in turn, so that a large one never starves a small
    /// one. The driver calls `Lmt::step` and answers with [`Self::stepped`].
    ///
    /// A helping send comes when no other transfer can move; and now and then,
    /// with no bytes to move, so that it sees its end.
    pub fn next_step(&mut self, quota_bytes: u64) -> Option<(TransferKey, u64)> {
        let others = self.active - self.active_helpers;
        if self.active_helpers == 0 {
            return self.next_of_ring(quota_bytes);
        }
        let all_idle = self.idle_turns >= others;
        if all_idle || self.turns >= TURNS_BETWEEN_LOOKS {
            (self.turns, self.idle_turns) = (0, 0);
            return self.next_helper(if all_idle { quota_bytes } else { 0 });
        }
        self.turns += 1;
        self.next_of_ring(quota_bytes)
    }

    fn next_of_ring(&mut self, quota_bytes: u64) -> Option<(TransferKey, u64)> {
        while let Some(key) = self.ring.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            if side.phase == Phase::Active && !side.is_helper() {
                let left = side.interval.bytes() - side.moved_bytes;
                self.ring.push_back(key);
                return Some((key, quota_bytes.min(left.max(1))));
            }
            side.in_ring = false;
        }
        None
    }

    fn next_helper(&mut self, max_bytes: u64) -> Option<(TransferKey, u64)> {
        while let Some(key) = self.helpers.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            if side.phase == Phase::Active && side.is_helper() {
                self.helpers.push_back(key);
                return Some((key, max_bytes));
            }
            side.in_helpers = false;
        }
        None
    }

    /// The result of a step.
    pub fn stepped(&mut self, key: TransferKey, result: Result<Step, Fault>) {
        let Some(side) = self.side(key).filter(|side| side.phase == Phase::Active) else { return };
        let is_helper = side.is_helper();
        match result {
            Ok(Step { bytes, done }) => self.moved(key, bytes, done),
            Err(fault) => {
                if !is_helper {
                    self.idle_turns = 0;
                }
                self.failed(key, fault);
            }
        }
    }

    /// The result of a step that has moved so many bytes, and whether this end has done
    /// its part.
    pub fn moved(&mut self, key: TransferKey, bytes: u64, done: bool) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Active {
            return;
        }
        let (is_left, is_helper) = (side.model.is_left(), side.is_helper());
        if let Err(fault) = side.advance(bytes, done) {
            return self.stepped(key, Err(fault));
        }
        if !is_helper {
            self.idle_turns = if bytes == 0 && !done { self.idle_turns + 1 } else { 0 };
        }
        match key {
            _ if !done => {}
            _ if is_left => self.leave(key),
            TransferKey::Send(id) => self.has_sent(id),
            TransferKey::Receive(id) => self.has_received(id, false),
        }
    }

    /// Has every helping send leave, and every stream that has given everything,
    /// before the driver sleeps: who has left is
    /// told of the end by a packet, which wakes the sleeper. There is nothing to
    /// help with when nothing has moved for as long as it takes to fall asleep.
    pub fn rest(&mut self) {
        while let Some(key) = self.helpers.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            side.in_helpers = false;
            if side.phase == Phase::Active && side.is_helper() {
                self.leave(key);
            }
        }
        for _ in 0..self.ring.len() {
            let Some(key) = self.ring.pop_front() else { return };
            self.ring.push_back(key);
            if self.side(key).is_some_and(Side::has_given_all) {
                self.leave(key);
            }
        }
    }

    fn leave(&mut self, key: TransferKey) {
        self.enter(key, Phase::Leaving);
        self.actions.push_back(Action::Leave { key });
    }

    /// The answer to `Action::Leave`: whether both ends know that the message is
    /// whole.
    pub fn left(&mut self, key: TransferKey, both_know: bool) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Leaving {
            return;
        }
        let doom = side.doom.take();
        match (key, side.leaving_for.take()) {
            (TransferKey::Receive(id), _) => self.has_received(id, both_know),
            (TransferKey::Send(id), _) if both_know => self.end_send(id, Ok(())),
            (TransferKey::Send(id), _) if doom.is_some() => self.end_send(id, doom.map_or(Ok(()), Err)),
            (TransferKey::Send(id), Some((errno, for_good))) => self.fail(id, errno, for_good),
            (TransferKey::Send(_), None) => self.enter(key, Phase::Drained),
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
            side.doom = Some(TransferError::PeerDead);
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

    /// Whether a transfer that `peer` named is still under way; an error when
    /// it cannot honestly know that name.
    pub(super) fn knows(&self, peer: PeerKey, key: TransferKey) -> Result<bool, ProtocolError> {
        let (id, standing) = match key {
            TransferKey::Send(SendId(id)) => (id, self.sends.standing(id)),
            TransferKey::Receive(ReceiveId(id)) => (id, self.receives.standing(id)),
        };
        match (standing, self.side(key)) {
            (Standing::Live, Some(side)) if side.peer == peer => Ok(true),
            (Standing::Live, _) => Err(ProtocolError::WrongPeer { id }),
            (Standing::Stale, _) => Ok(false),
            (Standing::Never, _) => Err(ProtocolError::UnknownTransfer { id }),
        }
    }

    /// Puts one end into another phase.
    pub(super) fn enter(&mut self, key: TransferKey, phase: Phase) {
        let Some(side) = self.side_mut(key) else { return };
        let was = std::mem::replace(&mut side.phase, phase);
        let (is, was, is_helper) = (phase == Phase::Active, was == Phase::Active, side.is_helper());
        let listed = if is_helper { &mut side.in_helpers } else { &mut side.in_ring };
        if is && !std::mem::replace(listed, true) {
            let list = if is_helper { &mut self.helpers } else { &mut self.ring };
            list.push_back(key);
        }
        self.count(is_helper, is, was);
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

    fn count(&mut self, is_helper: bool, is_active: bool, was_active: bool) {
        let (more, less) = (usize::from(is_active), usize::from(was_active));
        self.active = self.active + more - less;
        if is_helper {
            self.active_helpers = self.active_helpers + more - less;
        }
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
    fn failed(&mut self, key: TransferKey, fault: Fault) {
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
            side.doom = Some(error);
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
