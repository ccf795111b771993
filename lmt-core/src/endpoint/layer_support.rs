//! For layers that have shared memory of their own beside the inboxes, as
//! collective operations do: how to get it, to hear of deaths while waiting on it,
//! and to sleep and be woken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::Engine;
use super::peer::Connection;
use crate::base::errno_advice::advice;
use crate::mechanism::Direction;
use crate::memory::shared_memory::SharedMemory;
use crate::region::{RegionKey, attach_shared};
use crate::requests::ids::PeerId;
use crate::requests::outcome::OperationError;
use crate::vocabulary::error::PeerError;

impl Engine {
    /// Begins to connect to a peer without a message; progress does the rest.
    ///
    /// # Errors
    /// The peer is unknown or dead, or this is a forked child.
    pub fn connect(&mut self, peer: PeerId) -> Result<(), OperationError> {
        self.check_fork()?;
        let key = self.traffic.key_named(peer)?;
        self.reach(key)
    }

    /// Whether nothing can leave for a peer since the two are not connected, while no attempt
    /// to connect them has failed. Progress on both sides connects them once a message or
    /// [`Engine::connect`] asks for it.
    pub fn is_unconnected(&self, peer: PeerId) -> bool {
        let Ok(key) = self.traffic.key_named(peer) else { return false };
        let peer = &self.traffic.peers[key as usize];
        let is_open =
            matches!(peer.connection, Connection::None | Connection::Pending | Connection::AwaitingReport(_));
        is_open && peer.id != self.traffic.id
    }

    /// Whether a get or a put reaches memory that a peer declares, by a single copy;
    /// nothing while the two are not connected.
    pub fn reaches(&self, peer: PeerId, direction: Direction) -> Option<bool> {
        let key = self.traffic.key_named(peer).ok()?;
        let Connection::Up(_) = self.traffic.peers[key as usize].connection else { return None };
        let only = self.traffic.config.mechanisms.as_deref();
        Some(self.traffic.transfers.mechanism_status().reaches(key, only, direction))
    }

    /// Why there is nothing to be heard from a peer any more, if its connection has
    /// ended. That is noticed in progress.
    pub fn peer_error(&self, peer: PeerId) -> Option<&PeerError> {
        let key = self.traffic.key_named(peer).ok()?;
        match &self.traffic.peers[key as usize].connection {
            Connection::Gone(error) => Some(error),
            _ => None,
        }
    }

    /// Whether this endpoint waits to be connected with a peer at whose address nobody
    /// listened when last tried: one that is known to have listened is gone. Connecting
    /// goes on, for one that is not there yet.
    pub fn has_no_listener(&self, peer: PeerId) -> bool {
        let Ok(key) = self.traffic.key_named(peer) else { return false };
        self.connector.has_no_listener(self.traffic.peers[key as usize].id)
    }

    /// The memory of an allocated region: of this endpoint, or of a peer's from which
    /// something was got, or into which something was put, and which this endpoint has
    /// mapped for that. It stays mapped while the value lives; all that have it may
    /// write it at any time.
    ///
    /// # Errors
    /// Memory of this endpoint's cannot be mapped again, or this is a forked child.
    pub fn mapped_region(&mut self, key: &RegionKey) -> Result<Option<Arc<SharedMemory>>, OperationError> {
        self.check_fork()?;
        let traffic = &mut self.traffic;
        if key.owner() == traffic.id {
            let Some(descriptor) = traffic.regions.shared_descriptor(key) else { return Ok(None) };
            let failed = |error: std::io::Error| {
                let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                let advice = advice("fcntl(F_DUPFD_CLOEXEC)", errno);
                OperationError::System(format!(
                    "a region's descriptor cannot be duplicated: {errno}; {advice}"
                ))
            };
            let descriptor = descriptor.try_clone().map_err(failed)?;
            let memory = attach_shared(descriptor, key)
                .map_err(|error| OperationError::System(format!("a region of this endpoint: {error}")))?;
            return Ok(Some(Arc::new(memory)));
        }
        let peer = traffic.by_id.get(&key.owner()).copied();
        let link = peer.and_then(|peer| traffic.peers.get_mut(peer as usize)?.link());
        Ok(link.and_then(|link| link.regions.mapped(key)))
    }

    /// Whether more processes are connected than there are CPUs for them: who waits
    /// then had better not spin.
    pub fn is_oversubscribed(&self) -> bool {
        self.traffic.transfers.is_oversubscribed()
    }

    /// Makes now what mechanisms make once for all peers, some hundred microseconds' worth of
    /// system calls and a few descriptors, which the first connection makes otherwise: for
    /// embedders whose endpoints are sure to connect.
    pub fn expect_peers(&mut self) {
        drop(self.traffic.transfers.mechanisms().hellos());
    }

    /// Wakes a peer that sleeps in [`Engine::sleep_at_most`] or in its wait descriptor; costs a
    /// system call. One that is not connected is not woken, and connected for the next
    /// time.
    pub fn ring(&mut self, peer: PeerId) {
        let Ok(key) = self.traffic.key_named(peer) else { return };
        match self.traffic.peers[key as usize].link() {
            Some(link) => link.ring(),
            // A peer that is gone needs no doorbell.
            None => drop(self.reach(key)),
        }
    }

    /// Sleeps until there may be something to do: a message, a ring, a connection or a
    /// death, or `at_most` has passed.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn sleep_at_most(&mut self, at_most: Duration) -> Result<(), OperationError> {
        self.check_fork()?;
        self.sleep_until_event(Instant::now().checked_add(at_most))
    }
}
