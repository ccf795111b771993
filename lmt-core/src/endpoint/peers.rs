//! The table of peers: numbers for new ones, and when the number of one that
//! was removed may be another's.
//!
//! A number is also the owner under which the peer claims cells of this
//! endpoint's inbox, and its line in the table of credits. So it is given away
//! only when nobody writes under it any more and all that was written is read.

use std::sync::Arc;

use super::peer::{Connection, Peer};
use super::state::{RetiredNumber, Traffic};
use crate::base::process::PeerProcess;
use crate::queue::InboxReceiver;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{EndpointId, PeerKey};

impl Traffic {
    /// The key of a peer, which may be unknown until now.
    pub fn key_of(&mut self, id: EndpointId, inbox: &mut InboxReceiver) -> Option<PeerKey> {
        if let Some(&key) = self.by_id.get(&id) {
            return Some(key);
        }
        if self.free.is_empty() && !self.retired_numbers.is_empty() {
            self.free_retired_numbers(inbox);
        }
        let key = match self.free.pop() {
            Some(key) => {
                let generation = self.peers[key as usize].generation;
                self.peers[key as usize] = Peer { generation, ..Peer::new(id, self.config.eager_max_bytes) };
                key
            }
            None if self.peers.len() >= self.config.max_peers as usize => return None,
            None => {
                self.peers.push(Peer::new(id, self.config.eager_max_bytes));
                (self.peers.len() - 1) as PeerKey
            }
        };
        self.by_id.insert(id, key);
        Some(key)
    }

    /// Takes out of the inbox all that is published. False when senders are
    /// faster and something is left.
    pub fn drain(&mut self, inbox: &mut InboxReceiver) -> bool {
        let enough = 4 * inbox.geometry().cells();
        let mut taken = 0;
        while taken < enough {
            while taken < enough
                && let Some(next) = inbox.next()
            {
                self.deliver(inbox, next, None);
                taken += 1;
            }
            // A poll does not see behind the cell of a sender that is about to
            // publish; this looks everywhere.
            if inbox.prepare_sleep() {
                inbox.cancel_sleep();
                self.settle();
                return true;
            }
        }
        self.settle();
        false
    }

    /// The process that has, or may have, this peer's number.
    pub fn process_of(&self, key: PeerKey) -> Option<Arc<PeerProcess>> {
        let peer = &self.peers[key as usize];
        match &peer.connection {
            Connection::AwaitingReport(link) | Connection::Up(link) => Some(link.process.clone()),
            _ => peer.may_write.clone(),
        }
    }

    /// Whether more processes are connected than there are CPUs for them.
    pub fn update_oversubscription(&mut self) {
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
        self.transfers.set_oversubscribed(processes > cpus);
        self.oversubscribed_yields = super::waiting::oversubscribed_yields(processes, cpus);
    }

    /// Forgets a peer; what names it ends.
    pub fn remove(&mut self, key: PeerKey) {
        let id = self.peers[key as usize].id;
        let may_write = self.process_of(key);
        if !matches!(self.peers[key as usize].connection, Connection::Gone(_)) {
            self.fail_peer(key, PeerError::Removed { id });
        }
        self.matchers.peer_gone(key, &mut |_, _, _| true);
        self.return_credits_to.retain(|k| *k != key);
        self.by_id.remove(&id);
        // The name is void from now on, not only when the number is another's.
        let generation = self.peers[key as usize].generation.wrapping_add(1);
        self.peers[key as usize] = Peer { generation, ..Peer::new(id, self.config.eager_max_bytes) };
        self.retired_numbers.push(RetiredNumber { key, id, may_write });
    }

    /// A removed peer has connected anew, which it does when it has done with
    /// the connection before.
    pub fn note_reconnected(&mut self, id: EndpointId) {
        for retired_numbers in
            self.retired_numbers.iter_mut().filter(|retired_numbers| retired_numbers.id == id)
        {
            retired_numbers.may_write = None;
        }
    }

    /// Gives the numbers of removed peers free that write no more.
    fn free_retired_numbers(&mut self, inbox: &mut InboxReceiver) {
        let writes = |r: &RetiredNumber| r.may_write.as_ref().is_some_and(|process| process.is_alive());
        let done: Vec<PeerKey> = self.retired_numbers.iter().filter(|r| !writes(r)).map(|r| r.key).collect();
        // What they had written is read to the end first, or it would be taken
        // for the next peer's.
        if done.is_empty() || !self.drain(inbox) {
            return;
        }
        self.retired_numbers.retain(|retired_numbers| !done.contains(&retired_numbers.key));
        for &key in &done {
            inbox.release_dead(key as u16);
            inbox.clear_credit(key as u16);
        }
        self.free.extend(done);
    }
}
