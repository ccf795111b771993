//! What an endpoint has sent and received, by path and by peer.

use super::Engine;
use super::peer::EagerCounters;
use crate::mechanism::Counters;
use crate::requests::ids::PeerId;

/// What is called when an endpoint ends, with its [`Engine::totals`].
pub(super) type AtEnd = Box<dyn FnOnce(EagerCounters, &[(&'static str, Counters)]) + Send>;

impl Engine {
    /// What each mechanism has done with a peer; nothing before the first
    /// message has connected it.
    pub fn counters(&self, peer: PeerId) -> Vec<(&'static str, Counters)> {
        let Ok(key) = self.traffic.key_named(peer) else { return Vec::new() };
        self.traffic.transfers.mechanism_status().counters(key).collect()
    }

    /// What has gone to and come from a peer in inbox cells.
    pub fn eager_counters(&self, peer: PeerId) -> EagerCounters {
        let key = self.traffic.key_named(peer).ok();
        let peer = key.and_then(|key| self.traffic.peers.get(key as usize));
        peer.map(|peer| peer.eager).unwrap_or_default()
    }

    /// What this endpoint has sent and received by each way, with all peers:
    /// in inbox cells, and by each mechanism.
    pub fn totals(&self) -> (EagerCounters, Vec<(&'static str, Counters)>) {
        (self.traffic.eager, self.traffic.transfers.mechanism_status().totals().collect())
    }

    /// Has `report` called with [`Engine::totals`] once this endpoint has been
    /// closed, by [`Engine::close`] or by being dropped; not in a forked child.
    pub fn at_end(
        &mut self,
        report: impl FnOnce(EagerCounters, &[(&'static str, Counters)]) + Send + 'static,
    ) {
        self.at_end = Some(Box::new(report));
    }
}
