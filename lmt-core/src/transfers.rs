//! The rendezvous protocol at work: the pure [`Machine`] decides, the
//! [`Mechanisms`] act, and this is the hand between them.
//!
//! It knows neither inbox nor matching, so an endpoint of ours and a device
//! layer with its own packets (the second door) use the same.

mod readers;
mod receivers;
mod windows;

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::connect::Connector;
use crate::fault_in::FaultIn;
use crate::identity::EndpointId;
use crate::mechanism::{Cookie, Interval, Model, Role, SharedEnds, Step, Unavailable};
use crate::mechanisms::{Handle, Mechanisms};
use crate::queue::Queue;
use crate::rendezvous::{
    Action, Candidates, Cts, Demote, Done, Incoming, Machine, Packet, PeerKey, ProtocolError, ReceiveId,
    Received, Rts, SendId, TransferError, TransferKey,
};
use crate::shared_buffer::is_shared;
use readers::Readers;
use receivers::SharedReceivers;
use windows::Window;

/// One side of a transfer: the memory it uses, and who waits for it.
struct Side {
    buffer: Buffer,
    /// How far the buffer is faulted in, if the peer is to write it.
    fault_in: Option<FaultIn>,
    handle: Option<Handle>,
    /// The last `handle` there was, for counting.
    carrier: Option<Handle>,
    /// What is to be started when the packets before it are sent.
    held_start: Option<Interval>,
    token: u64,
    peer: PeerKey,
    /// Who may be reading its memory.
    reader: Option<PeerKey>,
    /// Who copies, at the last attempt.
    model: Model,
}

impl Side {
    const fn new(buffer: Buffer, token: u64, peer: PeerKey) -> Self {
        let (fault_in, handle, carrier, reader) = (None, None, None, None);
        let (model, held_start) = (Model::Get, None);
        Self { buffer, fault_in, handle, carrier, held_start, token, peer, reader, model }
    }
}

/// A transfer that has ended, with the memory that it no longer uses.
#[derive(Debug)]
pub enum Ended {
    /// A send.
    Send {
        /// What the caller gave to [`Transfers::send`].
        token: u64,
        /// Whether the message arrived.
        result: Result<(), TransferError>,
    },
    /// A receive.
    Receive {
        /// What the caller gave to [`Transfers::matched`].
        token: u64,
        /// What arrived.
        result: Result<Received, TransferError>,
    },
}

/// All transfers of one process that are under way.
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
    faulting: VecDeque<ReceiveId>,
    /// How many active transfers in a row stood still, over several calls.
    stood_still: usize,
    /// Who may be reading this process's memory.
    readers: Readers,
    /// For each peer, what is under way to it.
    windows: Vec<Window>,
    /// Which peers receive into shared buffers.
    receivers: SharedReceivers,
    /// Whether processes outnumber the CPUs.
    crowded: bool,
}

/// The slot of a transfer's name: the machine reuses slots, and names carry a
/// generation above the slot's number.
const fn index_of(name: u64) -> usize {
    name as u32 as usize
}

fn place(sides: &mut Vec<Option<Side>>, index: usize, side: Side) {
    if sides.len() <= index {
        sides.resize_with(index + 1, || None);
    }
    sides[index] = Some(side);
}

/// What is left of one side of a transfer when that is over.
struct Over {
    token: u64,
    peer: PeerKey,
    carrier: Option<Handle>,
    bytes: u64,
}

/// Drops a side where it lies.
fn over(sides: &mut [Option<Side>], name: u64) -> Option<Over> {
    let slot = sides.get_mut(index_of(name))?;
    let Side { token, peer, carrier, ref buffer, .. } = *slot.as_ref()?;
    let over = Over { token, peer, carrier, bytes: buffer.total_bytes() };
    *slot = None;
    Some(over)
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
    pub fn standings(&self) -> &Mechanisms {
        &self.mechanisms
    }

    /// Sends what mechanisms have for their peers' instances over the
    /// connections; what finds no room stays until the next call.
    pub(crate) fn hand_over(
        &mut self,
        connector: &mut Connector,
        id_of: impl Fn(PeerKey) -> Option<EndpointId>,
    ) {
        for (peer, parcel) in self.mechanisms.take_parcels() {
            let Some(id) = id_of(peer) else { continue };
            if !connector.has_room(id) {
                self.mechanisms.put_back(peer, parcel);
                continue;
            }
            let (bytes, descriptors) = parcel.encode();
            if let Err(error) = connector.send_descriptors(id, &bytes, descriptors) {
                // The peer is gone, and its transfers will hear of that.
                tracing::debug!(peer = %id, %error, "a parcel of a mechanism was not sent");
            }
        }
    }

    /// Whether processes outnumber the CPUs: who would help to copy has others to
    /// make way for.
    pub(crate) const fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// Whether who receives from this process copies alone, where both ends could.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Begins to send; the RTS is to be sent when this returns.
    pub fn send(&mut self, peer: PeerKey, buffer: Buffer, candidates: &Candidates, token: u64) -> SendId {
        let bytes = buffer.total_bytes();
        let crowded = self.crowded;
        let window = self.window(peer);
        let others = window.ways(candidates, crowded);
        window.in_flight += 1;
        let candidates = others.as_ref().unwrap_or(candidates);
        let id = self.machine.send(peer, bytes, candidates);
        place(&mut self.sends, index_of(id.0), Side::new(buffer, token, peer));
        self.pump();
        id
    }

    /// A receive was found for an RTS: the message goes into `buffer`.
    pub fn matched(&mut self, peer: PeerKey, rts: &Rts, buffer: Buffer, token: u64) {
        let id = self.machine.matched(peer, rts, buffer.total_bytes());
        if is_shared(&buffer) {
            self.machine.comes_into_shared(id);
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

    /// Lets the next active transfer that can move do so, by at most
    /// `quota_bytes`. Returns whether one has, or has ended, or there are more
    /// than one call looks at: then the next call looks at those.
    ///
    /// Of many active transfers most may wait for one of them (a pipe carries
    /// one message at a time), so those that stand still are passed over.
    pub fn step(&mut self, quota_bytes: u64) -> bool {
        let active = self.machine.active();
        for _ in 0..active.min(Self::MOST_PASSED_OVER) {
            if self.step_next(quota_bytes) {
                self.stood_still = 0;
                return true;
            }
            self.stood_still += 1;
        }
        if self.stood_still < active {
            return true;
        }
        self.stood_still = 0;
        false
    }

    /// So many are passed over in one call, which is to stay short.
    const MOST_PASSED_OVER: usize = 64;

    /// Returns whether the next active transfer went on or ended.
    fn step_next(&mut self, quota_bytes: u64) -> bool {
        let Some((key, max_bytes)) = self.machine.next_step(quota_bytes) else { return false };
        let (side, mechanisms) = self.side(key);
        let Some(Side { buffer, handle: Some(handle), .. }) = side else { return false };
        let stands_still = match mechanisms.step(*handle, buffer, max_bytes) {
            // Number by number: moved as one, they would wait for the copy's last stores.
            Ok(Step { bytes, done }) => {
                self.machine.moved(key, bytes, done);
                bytes == 0 && !done
            }
            Err(fault) => {
                self.machine.stepped(key, Err(fault));
                false
            }
        };
        self.pump();
        !stands_still
    }

    /// Has every send that helps its receiver leave that, before a sleep. Returns whether
    /// one was found to have ended.
    pub fn rest(&mut self) -> bool {
        let ended = self.ended.len();
        self.machine.rest();
        self.pump();
        self.ended.len() > ended
    }

    /// Faults in one chunk of a buffer that a peer is to write. Returns whether
    /// there was one.
    pub fn fault_in(&mut self) -> bool {
        let Some(id) = self.faulting.pop_front() else { return false };
        // The receive may have ended meanwhile, and its slot be another's.
        if let Some(side) = self.receives.get_mut(index_of(id.0)).and_then(Option::as_mut)
            && let Some(work) = &mut side.fault_in
        {
            if work.step(&side.buffer) {
                self.faulting.push_back(id);
            } else {
                side.fault_in = None;
            }
        }
        true
    }

    /// Whether [`Self::fault_in`] has something to do.
    #[inline]
    pub fn is_faulting(&self) -> bool {
        !self.faulting.is_empty()
    }

    /// Whether there is nothing to move, to send or to tell.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_active()
            && !self.machine.has_packets()
            && self.ended.is_empty()
            && !self.is_faulting()
            && !self.mechanisms.has_parcels()
    }

    /// How many transfers can move bytes from this side, if their turn comes.
    #[inline]
    pub fn active(&self) -> usize {
        self.machine.active()
    }

    /// Whether any transfer can move bytes from this side now, or as soon as the packets
    /// have been taken.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.machine.active() > 0 || !self.held.is_empty()
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

    /// How many sends to this peer are under way: announced, and not done.
    #[inline]
    pub fn sends_to(&self, peer: PeerKey) -> u32 {
        self.windows.get(peer as usize).map_or(0, |window| window.in_flight)
    }

    /// A send to this peer is not under way any more.
    fn has_ended(&mut self, peer: PeerKey) {
        let window = self.window(peer);
        window.in_flight = window.in_flight.saturating_sub(1);
    }

    fn window(&mut self, peer: PeerKey) -> &mut Window {
        let index = peer as usize;
        if self.windows.len() <= index {
            self.windows.resize_with(index + 1, Window::default);
        }
        &mut self.windows[index]
    }

    /// Which ends of a message to this peer are in shared buffers, as far as that
    /// is known: without such buffers, none is looked for.
    #[inline]
    pub fn shared_ends(&self, peer: PeerKey, sender: bool) -> SharedEnds {
        SharedEnds { sender, receiver: self.receivers.is_believed(peer) }
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
                    side.fault_in = (is_written && outcome.is_ok())
                        .then(|| FaultIn::worth_it(&side.buffer, plan.interval))
                        .flatten();
                    let is_read = plan.role == Role::Sender && plan.model.reads_sender() && outcome.is_ok();
                    let before = std::mem::replace(&mut side.reader, is_read.then_some(peer));
                    let is_faulting = side.fault_in.is_some();
                    let outcome = outcome.map(|handle| {
                        side.handle = Some(handle);
                        side.carrier = Some(handle);
                        &cookie
                    });
                    if let (TransferKey::Receive(id), true) = (key, is_faulting) {
                        self.faulting.push_back(id);
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
#[path = "transfers_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "transfers_held_tests.rs"]
mod held_tests;
