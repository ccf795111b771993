//! Waking a connected peer.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::wire::Kind;
use super::{socket, wire};
use crate::vocabulary::identity::EndpointId;

/// Wakes a connected peer that sleeps, by a datagram over the connection's socket, which
/// is in the peer's epoll: so a peer takes no descriptor for it.
#[derive(Clone, Debug)]
pub struct Waker {
    socket: Arc<OwnedFd>,
    datagram: Arc<[u8]>,
}

impl Waker {
    pub(super) fn new(own: EndpointId, socket: Arc<OwnedFd>) -> Self {
        Self { socket, datagram: wire::encode(own, Kind::Wake, 0, None, &[]).into() }
    }

    /// One that wakes nobody.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Self {
        let (socket, _) = std::os::unix::net::UnixDatagram::pair().expect("a pair of sockets");
        Self::new(EndpointId::from_bytes([0; 16]), Arc::new(socket.into()))
    }

    /// Costs a system call and never waits.
    pub fn wake(&self) {
        // A socket that is full is readable already, and who is gone sleeps no more.
        let _sent = socket::send(self.socket.as_fd(), &self.datagram, &[]);
    }
}
