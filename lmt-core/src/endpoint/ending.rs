//! The end of a connection: what becomes of all that is in flight with a peer that has died,
//! said goodbye or was removed.

use std::collections::HashSet;
use std::sync::Arc;

use super::handshake::Reception;
use super::peer::{Connection, gone};
use super::state::Traffic;
use super::unexpected::Unexpected;
use crate::base::process::PeerProcess;
use crate::connect::Closed;
use crate::requests::label::Space;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{EndpointId, PeerKey};

impl Reception<'_> {
    pub(super) fn end(&mut self, id: EndpointId, error: PeerError, how: Option<Closed>) {
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
        self.inbox.close_fast_box(key as u16);
        traffic.peers[key as usize].may_write = may_write;
        traffic.fail_peer(key, error);
        let peer = &traffic.peers[key as usize];
        if !peer.bound && peer.parked.is_empty() {
            traffic.remove(key);
        }
    }
}

impl Traffic {
    /// Ends everything that is in flight with a peer.
    pub fn fail_peer(&mut self, key: PeerKey, error: PeerError) {
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
        self.update_oversubscription();
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
