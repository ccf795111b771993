//! Doing what the state machine of the handshake decides: messages on the
//! sockets, timers, and what the [`Handler`] is told.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;

use super::connector::Connector;
use super::handshake::{Action, Event, Failure, State, decide};
use super::links::{Connection, EventData, Link, Outgoing, Owner};
use super::poller::TimerKey;
use super::probe_area::ProbeLease;
use super::socket::Sent;
use super::wire::{HelloBody, Kind};
use super::{Closed, Greeting, Handler, MAX_BLOB_BYTES, MAX_DESCRIPTORS, Rejection, Waker, socket, wire};
use crate::base::errno_advice::advice;
use crate::base::process::PeerProcess;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;

/// How long sending rests when only time can help.
const FLUSH_PAUSE: Duration = Duration::from_millis(1);

impl Connector {
    /// Lets the handshake decide what an event means for a peer, and does it.
    pub(super) fn happen(
        &mut self,
        id: EndpointId,
        event: Event,
        cargo: EventData,
        handler: &mut dyn Handler,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let (next, action) = decide(peer.state, event, self.id < id);
        tracing::trace!(me = %self.id, peer = %id, ?event, from = ?peer.state, to = ?next, ?action);
        peer.state = next;
        if next != State::Wanted {
            peer.retry_at = None;
        }
        self.act(id, action, cargo, handler);
        self.reset_timer(id);
    }

    fn act(&mut self, id: EndpointId, action: Action, mut cargo: EventData, handler: &mut dyn Handler) {
        match action {
            // Try follows a wish only, which `connect` carries out itself.
            Action::Nothing | Action::Try => self.close_with(cargo.connection, None),
            Action::Greet => {
                self.greet(id, cargo, handler);
            }
            Action::Adopt => {
                self.drop_link(id);
                let (connection, hello) = (cargo.connection.take(), cargo.hello);
                let greeting = cargo.greeting();
                let opening = EventData { connection, ..EventData::default() };
                if self.greet(id, opening, handler) {
                    self.probe(id, hello, greeting, handler);
                }
            }
            Action::AnswerMerge => {
                let bytes = wire::encode(self.id, Kind::Merge, 0, None, &[]);
                self.close_with(cargo.connection, Some(&bytes));
            }
            Action::AnswerRefuse => {
                let sentence = "this id is connected already; give each process its own rank";
                self.close_with(cargo.connection, Some(&wire::encode_refusal(self.id, sentence)));
            }
            Action::Probe => {
                let hello = cargo.hello;
                self.probe(id, hello, cargo.greeting(), handler);
            }
            Action::Establish => self.establish(id, cargo.blob, handler),
            Action::Deliver => handler.descriptors(id, &cargo.blob, cargo.descriptors),
            Action::Retreat => {
                self.drop_link(id);
                self.retry_later(id, None);
            }
            Action::Fail(failure) => self.fail(id, failure, cargo, handler),
            Action::Refuse => {
                self.send_refuse(id, &cargo.reason, cargo.errno);
                self.fail(id, Failure::Refused, cargo, handler);
            }
            Action::Close { goodbye } => {
                self.end_peer(id);
                handler.closed(id, if goodbye { Closed::Goodbye } else { Closed::Died });
            }
            Action::RefuseAndClose => {
                tracing::warn!(peer = %id, reason = cargo.reason, "a connection is given up");
                self.send_refuse(id, &cargo.reason, cargo.errno);
                self.end_peer(id);
                handler.closed(id, Closed::Died);
            }
        }
    }

    fn fail(&mut self, id: EndpointId, failure: Failure, cargo: EventData, handler: &mut dyn Handler) {
        self.close_with(cargo.connection, None);
        let error = match (failure, self.peers.get(&id)) {
            (Failure::Late, Some(peer)) => self.timeout_error(id, peer),
            (Failure::Refused, _) => match cargo.errno {
                Some(errno) => PeerError::System { id, errno, reason: cargo.reason },
                None => PeerError::Refused { id, reason: cargo.reason },
            },
            _ => PeerError::Dead { id },
        };
        if failure == Failure::Late {
            self.send_refuse(id, "the handshake was not done in time", None);
        }
        self.end_peer(id);
        handler.failed(id, error);
    }

    /// Makes a connection the current one and says HELLO. False when it came
    /// to nothing.
    fn greet(&mut self, id: EndpointId, cargo: EventData, handler: &mut dyn Handler) -> bool {
        let Some(connection) = cargo.connection else { return false };
        self.watch_process(id, &connection.process);
        self.is_there(id);
        self.owners.insert(connection.serial, Owner::Link(id));
        let Some(peer) = self.peers.get_mut(&id) else { return false };
        peer.shortage = None;
        let link = peer.link.insert(Link {
            connection,
            outgoing: VecDeque::new(),
            watched_for_room: false,
            lease: None,
            hello: HelloBody::default(),
        });
        let lease = ProbeLease::new().map_err(|errno| Rejection {
            reason: format!("getrandom answered {errno}; {}", advice("getrandom", errno)),
            errno: Some(errno),
        });
        let greeting = lease.and_then(|lease| Ok((lease, handler.hello(id)?)));
        let (lease, greeting) = match greeting {
            Ok(both) if fits(&both.1) => both,
            Ok(_) => return self.unwilling(id, TOO_LONG.into(), handler),
            Err(why) => return self.unwilling(id, why, handler),
        };
        let (probe_address, nonce) = lease.place();
        link.lease = Some(lease);
        let hello = HelloBody { probe_address, nonce };
        let Greeting { bytes, descriptors, .. } = greeting;
        let bytes = wire::encode(self.id, Kind::Hello, descriptors.len(), Some(&hello), &bytes);
        self.enqueue(id, Outgoing { bytes, descriptors });
        true
    }

    fn unwilling(&mut self, id: EndpointId, why: Rejection, handler: &mut dyn Handler) -> bool {
        self.happen(id, Event::Rejection, EventData::saying(why), handler);
        false
    }

    fn probe(&mut self, id: EndpointId, hello: HelloBody, greeting: Greeting, handler: &mut dyn Handler) {
        let Some(link) = self.peers.get_mut(&id).and_then(|peer| peer.link.as_mut()) else { return };
        link.hello = hello;
        let facts = link.facts(id);
        let waker = Waker::new(self.id, Arc::clone(&link.connection.fd));
        let report = match handler.probe(&facts, greeting, waker) {
            Ok(report) if report.len() <= MAX_BLOB_BYTES => report,
            Ok(_) => {
                self.unwilling(id, TOO_LONG.into(), handler);
                return;
            }
            Err(why) => {
                self.unwilling(id, why, handler);
                return;
            }
        };
        let bytes = wire::encode(self.id, Kind::Report, 0, None, &report);
        self.enqueue(id, Outgoing { bytes, descriptors: Vec::new() });
    }

    fn establish(&mut self, id: EndpointId, report: Vec<u8>, handler: &mut dyn Handler) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(link) = peer.link.as_mut() else { return };
        if let Some(mut lease) = link.lease.take() {
            lease.probed();
        }
        peer.address = None;
        let facts = link.facts(id);
        handler.established(facts, report);
    }

    pub(super) fn enqueue(&mut self, id: EndpointId, datagram: Outgoing) {
        let Some(link) = self.peers.get_mut(&id).and_then(|peer| peer.link.as_mut()) else { return };
        link.outgoing.push_back(datagram);
        self.flush(id);
    }

    /// Sends what the socket takes.
    pub(super) fn flush(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(link) = peer.link.as_mut() else { return };
        let mut full = false;
        while let Some(datagram) = link.outgoing.front() {
            match socket::send(link.connection.fd.as_fd(), &datagram.bytes, &datagram.descriptors) {
                Sent::Yes => {
                    link.outgoing.pop_front();
                }
                Sent::Full => {
                    full = true;
                    break;
                }
                Sent::Later => {
                    peer.flush_at = Some(self.now + FLUSH_PAUSE);
                    break;
                }
                // Reading tells how the connection ended, after what the
                // peer still had to say; epoll reports its end.
                Sent::Broken => {
                    link.outgoing.clear();
                    let _ = nix::sys::socket::shutdown(
                        std::os::fd::AsRawFd::as_raw_fd(&link.connection.fd),
                        nix::sys::socket::Shutdown::Both,
                    );
                }
            }
        }
        if full != link.watched_for_room {
            link.watched_for_room = full;
            let room = if full { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let flags = EpollFlags::EPOLLIN | room;
            self.poller.rewatch(link.connection.fd.as_fd(), link.connection.serial, flags);
        }
    }

    /// Puts the pidfd of the peer's process into the epoll, instead of an
    /// earlier one.
    fn watch_process(&mut self, id: EndpointId, process: &Arc<PeerProcess>) {
        self.unwatch_process(id);
        let Some(pidfd) = process.pidfd() else { return };
        let serial = self.new_watch(id);
        if let Err(errno) = self.poller.watch(pidfd, serial) {
            // Then the connection's end tells of the death.
            tracing::warn!(peer = %id, %errno, "a pidfd cannot be watched");
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.watch = Some((serial, process.clone()));
        }
    }

    fn unwatch_process(&mut self, id: EndpointId) {
        let Some((serial, process)) = self.peers.get_mut(&id).and_then(|peer| peer.watch.take()) else {
            return;
        };
        self.owners.remove(&serial);
        if let Some(pidfd) = process.pidfd() {
            let _ = self.poller.forget(pidfd);
        }
    }

    fn send_refuse(&self, id: EndpointId, reason: &str, errno: Option<Errno>) {
        let Some(link) = self.peers.get(&id).and_then(|peer| peer.link.as_ref()) else { return };
        socket::send(link.connection.fd.as_fd(), &wire::encode_refusal_by(self.id, reason, errno), &[]);
    }

    /// Closes a connection that is not or no longer the current one, after a
    /// last word.
    fn close_with(&mut self, connection: Option<Connection>, last_word: Option<&[u8]>) {
        let Some(connection) = connection else { return };
        if let Some(bytes) = last_word {
            socket::send(connection.fd.as_fd(), bytes, &[]);
        }
        self.owners.remove(&connection.serial);
        let _ = self.poller.forget(connection.fd.as_fd());
        socket::close(connection.fd);
    }

    /// Closes the current connection; the peer's process stays watched.
    fn drop_link(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.flush_at = None;
        if let Some(link) = peer.link.take() {
            self.close_with(Some(link.connection), None);
        }
    }

    /// Forgets a peer and closes its connection.
    fn end_peer(&mut self, id: EndpointId) {
        if let Some(fd) = self.remove_peer(id) {
            socket::close(fd);
        }
    }

    /// Forgets a peer; its connection, if any, is out of the epoll but open.
    pub(super) fn remove_peer(&mut self, id: EndpointId) -> Option<Arc<OwnedFd>> {
        self.unwatch_process(id);
        let mut peer = self.peers.remove(&id)?;
        self.poller.set_timer(TimerKey::Peer(id), &mut peer.timer, None);
        let connection = peer.link.take()?.connection;
        self.owners.remove(&connection.serial);
        let _ = self.poller.forget(connection.fd.as_fd());
        Some(connection.fd)
    }

    /// Sets a peer's timer to what is due next.
    pub(super) fn reset_timer(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let due = peer.next_due();
        self.poller.set_timer(TimerKey::Peer(id), &mut peer.timer, due);
    }
}

const TOO_LONG: &str = "this endpoint's handshake or report is longer than one datagram takes; pass less";

fn fits(greeting: &Greeting) -> bool {
    greeting.bytes.len() <= MAX_BLOB_BYTES && greeting.descriptors.len() <= MAX_DESCRIPTORS
}
