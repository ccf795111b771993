//! The device layer's part in connecting: only what the mechanisms have to say.

use std::os::fd::OwnedFd;

use super::{Inner, Link};
use crate::base::cpu_set::CpuSet;
use crate::connect;
use crate::connect::{Closed, Handler, Rejection, Waker};
use crate::mechanism::hellos::{decode_hellos, decode_report, encode_hellos, encode_report};
use crate::mechanism::oob_message;
use crate::mechanism::oob_message::Arrival;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;
use crate::vocabulary::peer_facts::PeerFacts;

/// A peer that has ended is buried at once, within the call that tells it: the
/// next may be of the same peer come again, for which nothing of the old may be
/// left, and whose probes must not be forgotten with the old one's.
impl Handler for Inner {
    fn hello(&mut self, peer: EndpointId) -> Result<connect::Greeting, Rejection> {
        self.key_of(peer).ok_or("it knows as many peers as max_peers allows")?;
        let (mut bytes, mut descriptors) = (self.cpus.as_bytes().to_vec(), Vec::new());
        encode_hellos(self.transfers.mechanisms().hellos(), &mut bytes, &mut descriptors);
        Ok(connect::Greeting { bytes, descriptors, lost_descriptors: 0 })
    }

    fn probe(
        &mut self,
        facts: &PeerFacts,
        greeting: connect::Greeting,
        _: Waker,
    ) -> Result<Vec<u8>, Rejection> {
        let key = self.key_of(facts.id).ok_or("it knows as many peers as max_peers allows")?;
        let mut descriptors = greeting.descriptors.into_iter();
        let (cpus, hellos) =
            greeting.bytes.split_first_chunk().ok_or("its handshake is too short to be a device layer's")?;
        let cpus = CpuSet::from_bytes(*cpus);
        let hellos = decode_hellos(hellos, &mut descriptors, greeting.lost_descriptors > 0)?;
        let report = self.transfers.mechanisms().probe(key, facts, hellos);
        let peer = &mut self.peers[key as usize];
        peer.cpus = cpus;
        // From our report on the peer may send packets, perhaps before its own
        // report is here; and those of a peer that is gone are refused.
        if matches!(peer.link, Link::Gone(_)) {
            peer.link = Link::None;
        }
        Ok(encode_report(&report))
    }

    fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
        let Some(key) = self.key_of(facts.id) else { return };
        self.transfers.mechanisms().learn(key, &decode_report(&report));
        let peer = &mut self.peers[key as usize];
        peer.link = Link::Up;
        // Before its report nothing is known of what works in both directions.
        // A device layer has no cells of its own.
        self.selection.meet(key, peer.cpus, false);
        while let Some(early) = self.peers[key as usize].early.pop_front() {
            self.announce(key, early);
        }
    }

    fn failed(&mut self, id: EndpointId, error: PeerError) {
        if let Some(&key) = self.by_id.get(&id) {
            self.fail_peer(key, error);
        }
    }

    fn closed(&mut self, id: EndpointId, _how: Closed) {
        if let Some(&key) = self.by_id.get(&id) {
            self.fail_peer(key, PeerError::Dead { id });
        }
    }

    fn descriptors(&mut self, id: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        let count = descriptors.len();
        let Some(&key) = self.by_id.get(&id) else { return };
        let expected = match oob_message::parse(bytes, descriptors) {
            Arrival::OobMessage(oob_message) => {
                self.transfers.mechanisms().take_oob_message(key, oob_message)
            }
            Arrival::Region(..) | Arrival::Stray => false,
        };
        if !expected {
            tracing::warn!(peer = %id, count, "a peer passed descriptors that nobody expects");
        }
    }
}
