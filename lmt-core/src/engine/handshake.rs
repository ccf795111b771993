//! The endpoint's part in connecting: what it tells a new peer, and what it
//! makes of what the peer told.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;

use super::greeting::{Greeting, decode_report, encode_report};
use super::label::Space;
use super::outgoing::gone;
use super::peer::{Connection, Link, Peer};
use super::regions::PeerRegions;
use super::traffic::{Traffic, Unexpected};
use crate::connect::{self, Closed, Handler, Unwilling, Waker};
use crate::error::PeerError;
use crate::identity::EndpointId;
use crate::inbox::{Credit, InboxReceiver, InboxSender};
use crate::mechanism::PeerFacts;
use crate::parcel::{self, Arrival};
use crate::process::PeerProcess;
use crate::refusal::advice;
use crate::region::RemoteTable;
use crate::rendezvous::PeerKey;

impl Traffic {
    fn greet(&mut self, id: EndpointId, inbox: &mut InboxReceiver) -> Result<connect::Greeting, Unwilling> {
        let max = self.config.max_peers;
        let key = self
            .key_of(id, inbox)
            .ok_or_else(|| format!("it knows {max} peers already, the most it can; raise max_peers"))?;
        // One that has ended and comes again is waited for like a new one.
        let peer = &mut self.peers[key as usize];
        peer.bound |= self.hears_strangers;
        if matches!(peer.connection, Connection::Gone(_)) {
            peer.connection = Connection::Pending;
        }
        let no_descriptor = |e: std::io::Error| {
            let errno = Errno::from_raw(e.raw_os_error().unwrap_or(0));
            let advice = advice("fcntl(F_DUPFD_CLOEXEC)", errno);
            let reason = format!("a descriptor cannot be passed on: {errno}; {advice}");
            Unwilling { reason, errno: Some(errno) }
        };
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(no_descriptor);
        let greeting = Greeting {
            index: key as u16,
            unexpected_max_bytes: self.config.unexpected_max_bytes,
            cpus: self.cpus,
            inbox: copy(self.inbox_fd.as_fd())?,
            regions: copy(self.regions.descriptor().as_fd())?,
            fast_box: inbox.open_box(key as u16).map_err(no_descriptor)?,
            hellos: self.transfers.mechanisms().hellos(),
        };
        let (bytes, descriptors) = greeting.encode();
        Ok(connect::Greeting { bytes, descriptors, lost_descriptors: 0 })
    }

    fn meet(
        &mut self,
        facts: &PeerFacts,
        greeting: connect::Greeting,
        waker: Waker,
        own_inbox: &mut InboxReceiver,
    ) -> Result<Vec<u8>, Unwilling> {
        let greeting = Greeting::decode(greeting)?;
        let key = *self.by_id.get(&facts.id).ok_or("it has not been greeted")?;
        let mut inbox = InboxSender::attach(greeting.inbox, greeting.index)?;
        if let Some(fast_box) = greeting.fast_box {
            inbox.use_box(fast_box)?;
            inbox.pair_with(own_inbox, key as u16, self.id < facts.id);
        }
        let table = RemoteTable::attach(greeting.regions, facts.id)?;
        let report = self.transfers.mechanisms().probe(key, facts, greeting.hellos);
        // A fast box knows by itself when it is full, and is nobody else's.
        let max_cells = match inbox.has_box() {
            true => u64::MAX,
            false => (inbox.geometry().usable_cells() as u64 / 2).max(1),
        };
        let tell_cells = match own_inbox.has_box(key as u16) {
            true => u64::MAX,
            false => u64::from(self.config.inbox_cells / 16).clamp(1, 16),
        };
        self.peers[key as usize].connection = Connection::Met(Box::new(Link {
            inbox,
            waker,
            regions: PeerRegions::new(table),
            process: facts.process.clone(),
            cpus: greeting.cpus,
            sent: Credit::default(),
            returned: Credit::default(),
            max_cells,
            max_bytes: greeting.unexpected_max_bytes,
            drained: Credit::default(),
            told: Credit::default(),
            tell_cells,
            tell_bytes: (self.config.unexpected_max_bytes / 8).min(1 << 17),
            in_owing: false,
        }));
        Ok(encode_report(&report))
    }

    /// Ends everything that is under way with a peer.
    pub fn bury(&mut self, key: PeerKey, error: PeerError) {
        self.events = self.events.wrapping_add(1);
        tracing::debug!(peer = %self.peers[key as usize].id, %error, "a connection ended");
        let peer = &mut self.peers[key as usize];
        peer.connection = Connection::Gone(error);
        peer.ended_connections = peer.ended_connections.wrapping_add(1);
        peer.ordered.clear();
        peer.control.clear();
        peer.assembly = None;
        // What is whole is here and can still be received; but what has the tag
        // of a message that is lost would be taken for that one.
        let mut lost = HashSet::new();
        peer.parked.retain(|(label, message)| !is_lost(&mut lost, (label.space, label.tag), message));
        peer.in_busy = false;
        self.busy.retain(|k| *k != key);
        self.transfers.peer_dead(key);
        self.selection.forget(key);
        self.settle();
        let mut lost = HashSet::new();
        // The posted receives end below, with all that names the peer.
        self.matchers.peer_gone(key, &mut |space, tag, m| is_lost(&mut lost, (space, tag), &m.content));
        for request in self.requests.naming(key) {
            self.synchronous.remove(&request);
            self.requests.complete(request, Err(gone(&self.peers[key as usize])));
        }
        self.forget_regions(key);
        self.update_crowding();
    }

    /// Whether more processes are connected than there are CPUs for them.
    pub fn update_crowding(&mut self) {
        let links = self.peers.iter().filter_map(|p| match &p.connection {
            Connection::Up(link) => Some(&link.cpus),
            _ => None,
        });
        let (mut processes, mut cpus) = (1, self.cpus);
        for theirs in links {
            processes += 1;
            cpus = cpus.union(theirs);
        }
        let cpus = cpus.count().max(1);
        self.transfers.set_crowded(processes > cpus);
        self.crowded_yields = super::waiting::crowded_yields(processes, cpus);
    }
}

/// Whether an ended peer's message can no longer be received, asked in the
/// order of arrival: its bytes are not here, or a message before it with the
/// same tag of the same space was lost.
fn is_lost(lost: &mut HashSet<(Space, u64)>, tag: (Space, u64), message: &Unexpected) -> bool {
    if !matches!(message, Unexpected::Eager { .. }) {
        lost.insert(tag);
    }
    lost.contains(&tag)
}

/// What a connector tells of peers, and the inbox, which is drained before a
/// peer that has ended is buried.
///
/// That happens at once, within the call that tells it: the next may be of the
/// same peer come again, for which nothing of the old may be left.
pub(crate) struct Reception<'a> {
    pub traffic: &'a mut Traffic,
    pub inbox: &'a mut InboxReceiver,
}

impl Reception<'_> {
    fn end(&mut self, id: EndpointId, error: PeerError, how: Option<Closed>) {
        let traffic = &mut *self.traffic;
        let Some(&key) = traffic.by_id.get(&id) else { return };
        let process = traffic.process_of(key);
        let met = process.is_some();
        // A peer that said goodbye writes no more. Without a pidfd, the end of
        // the connection is all that there is to know of the process's.
        let writes_no_more = |process: &Arc<PeerProcess>| {
            how == Some(Closed::Goodbye)
                || !process.is_alive()
                || how == Some(Closed::Died) && process.pidfd().is_none()
        };
        let may_write = process.filter(|process| !writes_no_more(process));
        // What it had written before counts.
        traffic.drain(self.inbox);
        if met && may_write.is_none() {
            let cells = self.inbox.release_dead(key as u16);
            if cells > 0 {
                tracing::debug!(peer = %id, cells, "freed cells that a dead peer had claimed");
                // What others wrote behind them is reached now.
                traffic.drain(self.inbox);
            }
        }
        self.inbox.clear_credit(key as u16);
        self.inbox.close_box(key as u16);
        traffic.peers[key as usize].may_write = may_write;
        traffic.bury(key, error);
        let peer = &traffic.peers[key as usize];
        if !peer.bound && peer.parked.is_empty() {
            traffic.remove(key);
        }
    }
}

impl Handler for Reception<'_> {
    fn hello(&mut self, peer: EndpointId) -> Result<connect::Greeting, Unwilling> {
        self.traffic.greet(peer, self.inbox)
    }

    fn probe(
        &mut self,
        facts: &PeerFacts,
        greeting: connect::Greeting,
        waker: Waker,
    ) -> Result<Vec<u8>, Unwilling> {
        // What came over an earlier attempt is accounted to that.
        self.traffic.drain(self.inbox);
        self.traffic.meet(facts, greeting, waker, self.inbox)
    }

    fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
        let traffic = &mut *self.traffic;
        let Some(&key) = traffic.by_id.get(&facts.id) else { return };
        traffic.transfers.mechanisms().learn(key, &decode_report(&report));
        // It has reported, so it has what the greeting brought.
        self.inbox.box_handed_over(key as u16);
        if let Connection::Met(link) = &traffic.peers[key as usize].connection {
            traffic.selection.meet(key, link.cpus, link.inbox.has_box());
        }
        traffic.renew_eager(key);
        let peer = &mut traffic.peers[key as usize];
        peer.connection = match std::mem::replace(&mut peer.connection, Connection::None) {
            Connection::Met(link) => Connection::Up(link),
            other => other,
        };
        peer.may_write = None;
        if peer.has_output() {
            traffic.mark_busy(key);
        }
        traffic.wake_resting(facts.id);
        traffic.update_crowding();
    }

    fn failed(&mut self, id: EndpointId, error: PeerError) {
        self.end(id, error, None);
    }

    fn closed(&mut self, id: EndpointId, how: Closed) {
        self.end(id, PeerError::Dead { id }, Some(how));
    }

    fn descriptors(&mut self, id: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        let count = descriptors.len();
        let traffic = &mut *self.traffic;
        let Some(&key) = traffic.by_id.get(&id) else { return };
        let expected = match parcel::parse(bytes, descriptors) {
            Arrival::Parcel(parcel) => traffic.transfers.mechanisms().take_parcel(key, parcel),
            Arrival::Region(answer, descriptors) => {
                let link = traffic.peers.get_mut(key as usize).and_then(Peer::link);
                link.is_some_and(|link| link.regions.take_answer(answer, descriptors))
            }
            Arrival::Stray => false,
        };
        if !expected {
            tracing::warn!(peer = %id, count, "a peer passed descriptors that nobody expects");
        }
    }

    /// The doorbell is the one descriptor of ours in the connector's epoll.
    fn readable(&mut self, _token: u64) {
        super::doorbell::silence(&self.traffic.doorbell);
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
