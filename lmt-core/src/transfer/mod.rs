//! The rendezvous protocol at work: the pure [`Machine`] decides, the
//! [`Mechanisms`] act, and this is the hand between them. Here is how transfers begin and end
//! and what is done for the machine; `turns` is what progress calls, `side` what is kept.
//!
//! It must know neither queue nor matching, so that an endpoint of ours and a
//! device layer with its own packets use the same.

mod readers;
mod shared_receivers;
mod side;
mod turns;

use std::collections::VecDeque;

use crate::base::short_queue::Queue;
use crate::mechanism::{Handle, Mechanisms};
use crate::memory::buffer::Buffer;
use crate::memory::prefault::Prefault;
use crate::region::shared_buffer::is_shared;
use crate::rendezvous::{
    Action, Candidates, Cts, Demote, Done, Incoming, Machine, Packet, ProtocolError, ReceiveId, Received,
    Rts, SendId, TransferError, TransferKey,
};
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::{Model, Role, SharedEnds};
use crate::vocabulary::peer_facts::Unavailable;
use crate::vocabulary::transfer::{Cookie, Interval};
use readers::Readers;
use shared_receivers::SharedReceivers;
use side::{Over, Side, index_of, over, place};

pub use side::Ended;

/// So many messages to one peer are many: where processes outnumber CPUs, streams of them are 1.4
/// times as fast one way as copies by one end, but both ways they take three to six times as long.
pub(crate) const MANY_IN_FLIGHT: u32 = 4;

/// What to try where processes outnumber CPUs, with so many messages in flight to the peer:
/// nobody is free to help, nor, behind many, is a core for both ends of a stream.
fn when_oversubscribed(candidates: &Candidates, in_flight: u32) -> Candidates {
    let one_end = candidates.with_one_end_first();
    if in_flight < MANY_IN_FLIGHT { one_end } else { one_end.with_streams_last() }
}

/// All transfers of one process that are in flight.
#[derive(Default)]
pub struct Transfers {
    machine: Machine,
    mechanisms: Mechanisms,
    sends: Vec<Option<Side>>,
    receives: Vec<Option<Side>>,
    ended: Queue<Ended>,
    /// Transfers with a [`Side::held_start`].
    held: Queue<TransferKey>,
    /// Receives whose buffers are being faulted in.
    prefaulting: VecDeque<ReceiveId>,
    /// How many active transfers in a row stood still, over several calls.
    stalled_in_a_row: usize,
    /// Who may be reading this process's memory.
    readers: Readers,
    /// For each peer, sends that are announced and not done.
    sends_in_flight: Vec<u32>,
    /// Which peers receive into shared buffers.
    receivers: SharedReceivers,
    /// Whether processes outnumber the CPUs.
    oversubscribed: bool,
}

impl Transfers {
    /// Transfers by these mechanisms.
    pub fn new(mechanisms: Mechanisms) -> Self {
        Self { mechanisms, ..Self::default() }
    }

    /// The mechanisms.
    pub fn mechanisms(&mut self) -> &mut Mechanisms {
        &mut self.mechanisms
    }

    /// What is known of the mechanisms.
    #[inline]
    pub fn mechanism_status(&self) -> &Mechanisms {
        &self.mechanisms
    }

    /// Whether processes outnumber the CPUs: who would help to copy has others to
    /// make way for.
    pub(crate) const fn set_oversubscribed(&mut self, oversubscribed: bool) {
        self.oversubscribed = oversubscribed;
    }

    /// Whether who receives from this process copies alone, where both ends could.
    pub(crate) const fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Begins to send; the RTS is to be sent when this returns.
    pub fn send(&mut self, peer: PeerKey, buffer: Buffer, candidates: &Candidates, token: u64) -> SendId {
        let bytes = buffer.total_bytes();
        let others = self.oversubscribed.then(|| when_oversubscribed(candidates, self.sends_to(peer)));
        let id = self.machine.send(peer, bytes, others.as_ref().unwrap_or(candidates));
        *self.sends_in_flight(peer) += 1;
        place(&mut self.sends, index_of(id.0), Side::new(buffer, token, peer));
        self.pump();
        id
    }

    /// A receive was found for an RTS: the message goes into `buffer`.
    pub fn matched(&mut self, peer: PeerKey, rts: &Rts, buffer: Buffer, token: u64) {
        let id = self.machine.matched(peer, rts, buffer.total_bytes());
        if is_shared(&buffer) {
            self.machine.matched_into_shared(id);
        }
        let side = Side { model: rts.model, ..Side::new(buffer, token, peer) };
        place(&mut self.receives, index_of(id.0), side);
        self.pump();
    }

    /// Takes a packet of the rendezvous protocol.
    ///
    /// # Errors
    /// [`ProtocolError`]: the packet makes no sense; it was ignored.
    pub fn packet<'a>(&mut self, peer: PeerKey, packet: &'a Packet) -> Result<Incoming<'a>, ProtocolError> {
        match packet {
            Packet::Done(Done { to: TransferKey::Send(_), shared, .. })
            | Packet::Cts(Cts { shared, .. })
            | Packet::Demote(Demote { shared, .. }) => self.receivers.learn(peer, *shared),
            _ => {}
        }
        let incoming = self.machine.packet(peer, packet)?;
        self.pump();
        Ok(incoming)
    }

    /// Answers [`Incoming::Withdraw`]: whether the RTS was still unmatched.
    pub fn withdrawn(&mut self, peer: PeerKey, send_id: SendId, found: bool) {
        self.machine.withdrawn(peer, send_id, found);
        self.pump();
    }

    /// Asks the peer to forget an unmatched message.
    pub fn cancel(&mut self, id: SendId) {
        self.machine.cancel(id);
        self.pump();
    }

    /// Ends all transfers with a peer that is dead or gone.
    pub fn peer_dead(&mut self, peer: PeerKey) {
        self.machine.peer_dead(peer);
        self.pump();
        self.machine.drop_packets_to(peer);
        self.receivers.forget(peer);
        self.mechanisms.forget(peer);
    }

    /// How many peers other than this one may be reading this process's memory:
    /// those to which a message was announced in the Get model that is not done.
    ///
    /// Peers are counted and not messages, since each copies one at a time. A
    /// message that no receive has matched yet counts too: its sender is not
    /// told when the peer begins to read.
    #[inline]
    pub fn other_readers(&self, peer: PeerKey) -> u32 {
        self.readers.others(peer)
    }

    /// How many sends to this peer are in flight: announced, and not done.
    #[inline]
    pub fn sends_to(&self, peer: PeerKey) -> u32 {
        self.sends_in_flight.get(peer as usize).copied().unwrap_or(0)
    }

    /// A send to this peer is not in flight any more.
    fn has_ended(&mut self, peer: PeerKey) {
        let in_flight = self.sends_in_flight(peer);
        *in_flight = in_flight.saturating_sub(1);
    }

    fn sends_in_flight(&mut self, peer: PeerKey) -> &mut u32 {
        let index = peer as usize;
        if self.sends_in_flight.len() <= index {
            self.sends_in_flight.resize(index + 1, 0);
        }
        &mut self.sends_in_flight[index]
    }

    /// Which ends of a message to this peer are in shared buffers, as far as that
    /// is known: without such buffers, none is looked for.
    #[inline]
    pub fn shared_ends(&self, peer: PeerKey, sender: bool) -> SharedEnds {
        SharedEnds { sender, receiver: self.receivers.is_expected_shared(peer) }
    }

    /// What the caller gave to [`Transfers::send`] for this send.
    pub fn token_of(&self, id: SendId) -> Option<u64> {
        self.sends.get(index_of(id.0))?.as_ref().map(|side| side.token)
    }

    /// The next packet to send, in the order in which they must arrive. To be asked until
    /// there is none: what need not come before a packet is done behind it.
    pub fn pop_packet(&mut self) -> Option<(PeerKey, Packet)> {
        self.go_on();
        self.machine.pop_packet()
    }

    /// As [`Self::pop_packet`], where it lies: forgotten by [`Self::drop_packet`].
    pub(crate) fn front_packet(&mut self) -> Option<&(PeerKey, Packet)> {
        self.go_on();
        self.machine.front_packet()
    }

    pub(crate) fn drop_packet(&mut self) {
        self.machine.drop_packet();
    }

    /// Starts what waited for the packets before it to be sent, once they are.
    #[inline]
    fn go_on(&mut self) {
        while !self.machine.has_packets()
            && let Some(key) = self.held.pop_front()
        {
            self.start_held(key);
            self.pump();
        }
    }

    fn start_held(&mut self, key: TransferKey) {
        // It may be over, and its slot another's.
        if !self.machine.is_there(key) {
            return;
        }
        if let Some(interval) = self.side(key).0.and_then(|side| side.held_start.take()) {
            self.start(key, interval);
        }
    }

    fn start(&mut self, key: TransferKey, interval: Interval) {
        let Some(Side { handle: Some(handle), .. }) = self.side(key).0 else { return };
        let handle = *handle;
        let Some(remote) = self.machine.remote_cookie(key) else { return };
        let outcome = self.mechanisms.start(handle, remote, interval);
        self.machine.started(key, outcome);
    }

    /// The next transfer that has ended.
    pub fn pop_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn side(&mut self, key: TransferKey) -> (Option<&mut Side>, &mut Mechanisms) {
        let slot = match key {
            TransferKey::Send(id) => self.sends.get_mut(index_of(id.0)),
            TransferKey::Receive(id) => self.receives.get_mut(index_of(id.0)),
        };
        (slot.and_then(Option::as_mut), &mut self.mechanisms)
    }

    /// Does what the machine asks for, until it asks no more. But a CTS goes before the
    /// start of a message that comes in by both ends, so that both begin at once: that is
    /// held until the packets have been taken.
    fn pump(&mut self) {
        while let Some(action) = self.machine.pop_action() {
            match action {
                Action::Prepare { key, peer, mechanism, plan } => {
                    let (side, mechanisms) = self.side(key);
                    let Some(side) = side else { continue };
                    side.model = plan.model;
                    let mut cookie = Cookie::empty();
                    let outcome = mechanisms.prepare(mechanism, peer, &plan, &side.buffer, &mut cookie);
                    let is_written = plan.role == Role::Receiver && plan.model == Model::Put;
                    side.prefault = (is_written && outcome.is_ok())
                        .then(|| Prefault::worth_it(&side.buffer, plan.interval))
                        .flatten();
                    let is_read = plan.role == Role::Sender && plan.model.reads_sender() && outcome.is_ok();
                    let before = std::mem::replace(&mut side.reader, is_read.then_some(peer));
                    let is_prefaulting = side.prefault.is_some();
                    let outcome = outcome.map(|handle| {
                        side.handle = Some(handle);
                        side.carrier = Some(handle);
                        &cookie
                    });
                    if let (TransferKey::Receive(id), true) = (key, is_prefaulting) {
                        self.prefaulting.push_back(id);
                    }
                    self.readers.replace(before, is_read.then_some(peer));
                    self.machine.prepared(key, outcome);
                }
                Action::Start { key: key @ TransferKey::Receive(_), interval }
                    if self.machine.has_packets() && self.is_by_both(key) =>
                {
                    if let Some(side) = self.side(key).0 {
                        side.held_start = Some(interval);
                        self.held.push_back(key);
                    }
                }
                Action::Start { key, interval } => self.start(key, interval),
                Action::Leave { key } => {
                    let (side, mechanisms) = self.side(key);
                    let Some(Side { handle: Some(handle), .. }) = side else { continue };
                    let both_know = mechanisms.leave(*handle);
                    self.machine.left(key, both_know);
                }
                Action::Finish { key } => {
                    let (side, mechanisms) = self.side(key);
                    let Some(side) = side else { continue };
                    side.held_start = None;
                    if let Some(handle) = side.handle.take() {
                        mechanisms.finish(handle);
                    }
                    let reader = side.reader.take();
                    self.readers.replace(reader, None);
                }
                Action::Blacklist { peer, mechanism, model, role, errno, sentence } => {
                    self.mechanisms.give_up(peer, mechanism, model, role, Unavailable { errno, sentence });
                }
                Action::CompleteSend { id, result } => {
                    if let Some(over) = over(&mut self.sends, id.0) {
                        let Over { token, peer, carrier, bytes } = over;
                        self.has_ended(peer);
                        self.count(carrier, Role::Sender, result.is_ok().then_some(bytes));
                        self.ended.push_back(Ended::Send { token, result });
                    }
                }
                Action::CompleteReceive { id, result } => self.complete_receive(id, result),
            }
        }
    }

    fn is_by_both(&mut self, key: TransferKey) -> bool {
        self.side(key).0.is_some_and(|side| side.model == Model::Both)
    }

    fn complete_receive(&mut self, id: ReceiveId, result: Result<Received, TransferError>) {
        if let Some(Over { token, carrier, .. }) = over(&mut self.receives, id.0) {
            let arrived = result.as_ref().ok().map(|received| received.received_bytes);
            self.count(carrier, Role::Receiver, arrived);
            self.ended.push_back(Ended::Receive { token, result });
        }
    }

    fn count(&mut self, carrier: Option<Handle>, role: Role, arrived_bytes: Option<u64>) {
        if let (Some(handle), Some(bytes)) = (carrier, arrived_bytes) {
            self.mechanisms.count_message(handle, role, bytes);
        }
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "held_tests.rs"]
mod held_tests;
