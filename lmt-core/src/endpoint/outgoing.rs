//! Messages on their way out that wait: the queue of each peer, in the order in which the
//! application sent them, and before them the packets that found no room.

use super::link::Written;
use super::packets::{write_control, write_rts};
use super::peer::{Connection, Outgoing, Peer, gone};
use super::state::Traffic;
use crate::memory::buffer::Buffer;
use crate::queue::InboxReceiver;
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::requests::options::{SendMode, SendOptions};
use crate::requests::outcome::{OperationError, Status};
use crate::requests::table::Waiting;
use crate::selection::{Hints, Message};
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// Queues a message for a peer that is still to be connected: which mechanisms there are is
    /// known then.
    #[cold]
    pub(super) fn send_unconnected(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        SendOptions { mode, hints }: SendOptions,
    ) -> Result<RequestId, OperationError> {
        let peer = &mut self.peers[key as usize];
        if peer.id == self.id {
            return Ok(self.send_to_self(key, label, buffer, mode));
        }
        if matches!(peer.connection, Connection::Gone(PeerError::Dead { .. })) {
            return Err(gone(peer));
        }
        self.check_room(key)?;
        let peer = &mut self.peers[key as usize];
        if matches!(peer.connection, Connection::None | Connection::Gone(_)) {
            peer.connection = Connection::Pending;
            self.to_connect.extend(peer.address.clone());
        }
        let id = self.requests.begin(buffer, Some(key), label, Waiting::Queued);
        self.queue(key, Outgoing::Eager { request: id, sent_bytes: 0, hints });
        if mode == SendMode::Synchronous {
            self.synchronous.insert(id);
        }
        Ok(id)
    }

    /// Queues a message behind those that wait for the peer.
    pub(super) fn queue(&mut self, key: PeerKey, message: Outgoing) {
        self.peers[key as usize].ordered.push_back(message);
        self.mark_busy(key);
    }

    /// Enters a peer, once, into the list of those that are written to.
    pub fn mark_busy(&mut self, key: PeerKey) {
        if !std::mem::replace(&mut self.peers[key as usize].in_busy, true) {
            self.busy.push(key);
        }
    }

    /// Whether a packet that a connected peer waits for is still to be written.
    pub fn has_pending_answer(&self) -> bool {
        self.busy.iter().any(|key| {
            let peer = &self.peers[*key as usize];
            matches!(peer.connection, Connection::Up(_)) && !peer.control.is_empty()
        })
    }

    /// Whether something waits for room in an inbox that this process writes to.
    pub fn is_writing(&self) -> bool {
        self.busy.iter().any(|key| matches!(self.peers[*key as usize].connection, Connection::Up(_)))
    }

    /// Writes what waits for every peer, as far as there is room.
    pub fn flush_all(&mut self, own_inbox: &InboxReceiver) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.busy.len() {
            let key = self.busy[at];
            moved |= self.flush(key, own_inbox);
            if self.peers[key as usize].has_output() {
                at += 1;
            } else {
                self.peers[key as usize].in_busy = false;
                self.busy.swap_remove(at);
            }
        }
        moved
    }

    /// Writes what waits for one peer. Returns whether anything was written.
    pub fn flush(&mut self, key: PeerKey, own_inbox: &InboxReceiver) -> bool {
        let mut moved = false;
        while self.flush_control(key) {
            moved = true;
        }
        if self.peers[key as usize].control.is_empty() {
            while self.flush_ordered(key, own_inbox) {
                moved = true;
            }
        }
        moved
    }

    fn flush_control(&mut self, key: PeerKey) -> bool {
        let Peer { id, connection, control, .. } = &mut self.peers[key as usize];
        let is_written = control.front().is_some_and(|packet| write_control(*id, connection, packet));
        if is_written {
            control.pop_front();
        }
        is_written
    }

    fn flush_ordered(&mut self, key: PeerKey, own_inbox: &InboxReceiver) -> bool {
        let peer = &mut self.peers[key as usize];
        match peer.ordered.front() {
            None => false,
            Some(&Outgoing::Rts { packet, label, .. }) => {
                let is_written = write_rts(key, peer, &packet, &label, own_inbox);
                if is_written {
                    peer.ordered.pop_front();
                }
                is_written
            }
            Some(&Outgoing::Eager { request, sent_bytes, hints }) => {
                matches!(peer.connection, Connection::Up(_))
                    && self.flush_eager(key, (request, sent_bytes, hints), own_inbox)
            }
        }
    }

    /// Writes what there is room for of the message at the head of a connected peer's queue, or
    /// announces it.
    fn flush_eager(
        &mut self,
        key: PeerKey,
        (request, sent_bytes, hints): (RequestId, u64, Hints),
        own_inbox: &InboxReceiver,
    ) -> bool {
        let Some(bytes) = self.requests.get(request).map(|entry| entry.bytes) else {
            self.peers[key as usize].ordered.pop_front();
            return true;
        };
        if sent_bytes == 0
            && (self.synchronous.remove(&request)
                || !self.goes_in_cells(key, bytes, own_inbox)
                || self.is_overdrawn(key, bytes, own_inbox))
        {
            self.peers[key as usize].ordered.pop_front();
            self.announce_in_place(key, request, hints);
            return true;
        }
        let (name, cell_bytes) = (self.name(key), self.config.cell_bytes);
        let Some(entry) = self.requests.get(request) else { return false };
        let (Some(buffer), label) = (&entry.buffer, entry.label) else { return false };
        let peer = &mut self.peers[key as usize];
        match peer.write(cell_bytes, &label, buffer, sent_bytes, own_inbox, key) {
            Written::Whole => {
                peer.ordered.pop_front();
                self.count_eager_sent(key, bytes);
                let (tag, immediate) = (label.tag, label.immediate);
                self.requests.complete(request, Ok(Status { peer: name, tag, bytes, immediate }));
                true
            }
            Written::Part(now) => {
                peer.ordered[0] = Outgoing::Eager { request, sent_bytes: now, hints };
                now > sent_bytes
            }
        }
    }

    /// Whether the peer keeps no more unexpected bytes of this process, so that
    /// a short message is to be announced like a long one. Held back instead,
    /// it could never meet a receive that was posted for it, if the messages
    /// before it are to be received later.
    fn is_overdrawn(&mut self, key: PeerKey, bytes: u64, own_inbox: &InboxReceiver) -> bool {
        let own_cell_bytes = self.config.cell_bytes;
        let Some(link) = self.peers[key as usize].link() else { return false };
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(own_cell_bytes));
        if link.may_keep(charge_bytes, own_inbox, key) {
            return false;
        }
        let message = Message::of_bytes(bytes);
        let mechanisms = self.transfers.mechanism_status();
        !self.selection.candidates(key, mechanisms, &self.config, &message).as_slice().is_empty()
    }

    /// Announces a message that waited for the connection, at the head of its
    /// queue, where it was.
    fn announce_in_place(&mut self, key: PeerKey, request: RequestId, hints: Hints) {
        let behind = self.peers[key as usize].ordered.len();
        if let Some(buffer) = self.requests.get_mut(request).and_then(|request| request.buffer.take()) {
            let candidates = self.ways(key, &buffer, hints);
            self.announce(key, request, buffer, &candidates);
        }
        self.settle();
        let ordered = &mut self.peers[key as usize].ordered;
        // What was queued is its announcement: one step, however many wait.
        ordered.rotate_right(ordered.len().saturating_sub(behind));
    }

    /// Takes a queued message back of which nothing has left yet.
    pub(super) fn unqueue_eager(&mut self, key: PeerKey, wanted: RequestId) -> bool {
        let queue = &mut self.peers[key as usize].ordered;
        let is_it =
            |m: &Outgoing| matches!(m, Outgoing::Eager { request, sent_bytes: 0, .. } if *request == wanted);
        let at = queue.iter().position(is_it);
        at.and_then(|at| queue.remove(at)).is_some()
    }
}
