//! Waking a connected peer.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::socket;
use super::wire::{self, Kind};
use crate::identity::EndpointId;

/// Wakes a connected peer that sleeps, by a datagram over the connection's socket, which
/// is in the peer's epoll: so a peer takes no descriptor for it.
#[derive(Clone, Debug)]
pub struct Waker {
    socket: Arc<OwnedFd>,
    datagram: Arc<[u8]>,
}

impl Waker {
    pub(super) fn new(own: EndpointId, socket: Arc<OwnedFd>) -> Self {
        Self { socket, datagram: wire::encode(own, Kind::Ring, 0, None, &[]).into() }
    }

    /// Costs a system call and never waits.
    pub fn ring(&self) {
        // A socket that is full is readable already, and who is gone needs no bell.
        let _sent = socket::send(self.socket.as_fd(), &self.datagram, &[]);
    }
}
