//! The endpoint's part in connecting: what it tells a new peer, and what it
//! makes of what the peer told.

use std::os::fd::OwnedFd;

use super::greeting::{Greeting, decode_report, encode_report};
use super::outgoing::gone;
use super::peer::{Connection, Link, Peer};
use super::traffic::{Traffic, Unexpected};
use crate::connect::{self, Closed, Handler};
use crate::error::PeerError;
use crate::identity::EndpointId;
use crate::inbox::{Credit, InboxReceiver, InboxSender};
use crate::matching::Matcher;
use crate::mechanism::PeerFacts;
use crate::rendezvous::PeerKey;

impl Traffic {
    /// The key of a peer, which may be unknown until now.
    pub fn key_of(&mut self, id: EndpointId) -> Option<PeerKey> {
        if let Some(&key) = self.by_id.get(&id) {
            return Some(key);
        }
        if self.peers.len() >= self.config.max_peers as usize {
            return None;
        }
        let key = self.peers.len() as PeerKey;
        self.peers.push(Peer::new(id));
        self.by_id.insert(id, key);
        Some(key)
    }

    fn greet(&mut self, id: EndpointId) -> Result<connect::Greeting, String> {
        let max = self.config.max_peers;
        let key = self
            .key_of(id)
            .ok_or_else(|| format!("it knows {max} peers already, the most it can; raise max_peers"))?;
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(|e| format!("it cannot pass a descriptor on: {e}"));
        let greeting = Greeting {
            index: key as u16,
            unexpected_max_bytes: self.config.unexpected_max_bytes,
            cpus: self.cpus,
            inbox: copy(&self.inbox_fd)?,
            doorbell: copy(&self.doorbell)?,
            hellos: self.transfers.mechanisms().hellos(),
        };
        let (bytes, descriptors) = greeting.encode();
        Ok(connect::Greeting { bytes, descriptors })
    }

    fn meet(&mut self, facts: &PeerFacts, greeting: connect::Greeting) -> Result<Vec<u8>, String> {
        let greeting = Greeting::decode(&greeting.bytes, greeting.descriptors).map_err(|e| e.to_string())?;
        let key = self.key_of(facts.id).ok_or("it knows too many peers already")?;
        let inbox = InboxSender::attach(greeting.inbox, greeting.index).map_err(|e| e.to_string())?;
        let report = self.transfers.mechanisms().probe(key, facts, greeting.hellos);
        let max_cells = (inbox.geometry().usable_cells() as u64 / 2).max(1);
        self.peers[key as usize].connection = Connection::Met(Box::new(Link {
            inbox,
            doorbell: greeting.doorbell,
            cpus: greeting.cpus,
            sent: Credit::default(),
            returned: Credit::default(),
            max_cells,
            max_bytes: greeting.unexpected_max_bytes,
            drained: Credit::default(),
            told: Credit::default(),
            tell_cells: u64::from(self.config.inbox_cells / 16).clamp(1, 16),
            tell_bytes: (self.config.unexpected_max_bytes / 8).min(1 << 17),
            in_owing: false,
        }));
        Ok(encode_report(&report))
    }

    /// Ends everything that is under way with a peer.
    pub fn bury(&mut self, key: PeerKey, error: PeerError) {
        tracing::debug!(peer = %self.peers[key as usize].id, %error, "a connection ended");
        let peer = &mut self.peers[key as usize];
        peer.connection = Connection::Gone(error.clone());
        peer.ordered.clear();
        peer.control.clear();
        peer.assembly = None;
        // What is whole is here and can still be received; the rest is lost.
        peer.parked.retain(|(_, message)| matches!(message, Unexpected::Eager { .. }));
        peer.in_busy = false;
        self.busy.retain(|k| *k != key);
        self.transfers.peer_dead(key);
        self.settle();
        let useless = |message: &Unexpected| !matches!(message, Unexpected::Eager { .. });
        // The posted receives end below, with all that names the peer.
        self.matcher.peer_gone(key, &mut |m| useless(m), &mut |_| {}, &mut |_| {});
        for request in self.requests.naming(key) {
            self.synchronous.remove(&request);
            self.requests.complete(request, Err(gone(&self.peers[key as usize])));
        }
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
        self.crowded = processes > cpus.count().max(1);
    }
}

/// The endpoint as the connector sees it: its traffic and its inbox.
pub(crate) struct Host<'a> {
    pub traffic: &'a mut Traffic,
    pub inbox: &'a mut InboxReceiver,
}

impl Host<'_> {
    /// What an ended peer had written before counts; then it is buried.
    fn end(&mut self, id: EndpointId, error: PeerError) {
        let Some(&key) = self.traffic.by_id.get(&id) else { return };
        while let Some(delivery) = self.inbox.poll() {
            self.traffic.deliver(delivery);
        }
        self.traffic.settle();
        self.inbox.release_dead(key as u16);
        self.inbox.clear_credit(key as u16);
        self.traffic.bury(key, error);
    }
}

impl Handler for Host<'_> {
    fn hello(&mut self, peer: EndpointId) -> Result<connect::Greeting, String> {
        self.traffic.greet(peer)
    }

    fn probe(&mut self, facts: &PeerFacts, greeting: connect::Greeting) -> Result<Vec<u8>, String> {
        self.traffic.meet(facts, greeting)
    }

    fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
        let traffic = &mut *self.traffic;
        let Some(key) = traffic.key_of(facts.id) else { return };
        traffic.transfers.mechanisms().learn(key, &decode_report(&report));
        let peer = &mut traffic.peers[key as usize];
        peer.connection = match std::mem::replace(&mut peer.connection, Connection::None) {
            Connection::Met(link) => Connection::Up(link),
            other => other,
        };
        if peer.has_output() {
            traffic.mark_busy(key);
        }
        traffic.update_crowding();
    }

    fn failed(&mut self, id: EndpointId, error: PeerError) {
        self.end(id, error);
    }

    fn closed(&mut self, id: EndpointId, _how: Closed) {
        self.end(id, PeerError::Dead { id });
    }

    fn descriptors(&mut self, id: EndpointId, _bytes: &[u8], descriptors: Vec<OwnedFd>) {
        tracing::warn!(peer = %id, count = descriptors.len(), "a peer passed descriptors that nobody expects");
    }

    /// The doorbell is the one descriptor of ours in the connector's epoll.
    fn readable(&mut self, _token: u64) {
        super::doorbell::silence(&self.traffic.doorbell);
    }
}
