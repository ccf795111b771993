//! Connections that others begin, up to their HELLO.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;

use super::connector::{Connector, Identify, LISTENER};
use super::descriptor_shortage::Length;
use super::handshake::{Event, State};
use super::links::{Connection, EventData, HalfOpen, Owner, Peer};
use super::poller::TimerKey;
use super::socket::Received;
use super::sys::Datagram;
use super::wire::{Kind, Packet};
use super::{Handler, descriptor_shortage, socket, wire};
use crate::base::errno_advice::advice;
use crate::base::process::PeerProcess;
use crate::vocabulary::identity::EndpointId;

/// How many incoming connections may be without a HELLO; more than that, and
/// the oldest is dropped. Its owner tries again.
const MAX_HALF_OPEN: usize = 1024;

/// How many connections one call accepts at most.
const ACCEPTS_PER_PROGRESS: usize = 256;

/// How long accepting pauses when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

impl Connector {
    pub(super) fn accept_all(&mut self, handler: &mut dyn Handler) {
        for _ in 0..ACCEPTS_PER_PROGRESS {
            let fd = match socket::accept(&self.listener) {
                Ok(Some(fd)) => fd,
                Ok(None) => return,
                Err(errno) => return self.pause_accepting(errno),
            };
            let serial = self.new_serial();
            if let Err(errno) = self.poller.watch(fd.as_fd(), serial) {
                return self.pause_accepting(errno);
            }
            let mut half = HalfOpen { fd, timer: None };
            let due = Some(self.now + self.timeout);
            self.poller.set_timer(TimerKey::HalfOpen(serial), &mut half.timer, due);
            self.half_open.insert(serial, half);
            self.owners.insert(serial, Owner::HalfOpen);
            // Its HELLO is mostly there already.
            self.read_half_open(serial, handler);
            if self.half_open.len() > MAX_HALF_OPEN
                && let Some(oldest) = self.half_open.keys().next().copied()
                && let Some(half) = self.take_half_open(oldest)
            {
                self.refuse_connection(half, None);
            }
        }
    }

    /// The backlog keeps what cannot be accepted now; without a pause the
    /// epoll would report it without end.
    fn pause_accepting(&mut self, errno: Errno) {
        let advice = advice("accept4", errno);
        let length = match descriptor_shortage::is_short(errno) {
            true => self.shortage.note(self.now, self.timeout),
            false => Length::Begins,
        };
        match length {
            // Once, and not every time that it is tried again.
            Length::Begins => {
                tracing::warn!(%errno, "connections cannot be accepted at the moment; {advice}");
            }
            Length::Short => {}
            Length::Long => self.refuse_backlog(errno),
        }
        self.poller.rewatch(self.listener.fd.as_fd(), LISTENER, EpollFlags::empty());
        self.poller.set_timer(TimerKey::Listener, &mut self.accept_again, Some(self.now + ACCEPT_PAUSE));
    }

    /// Tells those who have waited for so long that they cannot be accepted.
    fn refuse_backlog(&mut self, errno: Errno) {
        let last_word = self.shortage_message(errno);
        let Self { shortage, listener, .. } = self;
        shortage.with_reserve(&listener.fd, || {
            for _ in 0..ACCEPTS_PER_PROGRESS {
                let Ok(Some(fd)) = socket::accept(listener) else { return };
                socket::send(fd.as_fd(), &last_word, &[]);
                socket::close(fd);
            }
        });
    }

    fn shortage_message(&self, errno: Errno) -> Vec<u8> {
        let reason = format!("no connection can be accepted: {errno}; {}", advice("accept4", errno));
        wire::encode_refusal_by(self.id, &reason, Some(errno))
    }

    /// The last word for who cannot be let in for want of descriptors: none at first, and it
    /// tries again.
    fn short_of_descriptors(&mut self) -> Option<Vec<u8>> {
        let length = self.shortage.note(self.now, self.timeout);
        (length == Length::Long).then(|| self.shortage_message(Errno::EMFILE))
    }

    /// Takes an incoming connection out of the list of those without HELLO; it
    /// still is in the epoll.
    pub(super) fn take_half_open(&mut self, serial: u64) -> Option<HalfOpen> {
        let mut half = self.half_open.remove(&serial)?;
        self.owners.remove(&serial);
        self.poller.set_timer(TimerKey::HalfOpen(serial), &mut half.timer, None);
        Some(half)
    }

    /// Closes an incoming connection after a last word, or without one: then
    /// its owner tries again.
    fn refuse_connection(&self, half: HalfOpen, last_word: Option<Vec<u8>>) {
        if let Some(bytes) = last_word {
            socket::send(half.fd.as_fd(), &bytes, &[]);
        }
        let _ = self.poller.forget(half.fd.as_fd());
        socket::close(half.fd);
    }

    /// An incoming connection has been silent too long.
    pub(super) fn give_up_half_open(&mut self, serial: u64) {
        if let Some(half) = self.take_half_open(serial) {
            let sentence = "no HELLO came in time; the first datagram must be one";
            self.refuse_connection(half, Some(wire::encode_refusal(self.id, sentence)));
        }
    }

    /// Accepting goes on after a pause.
    pub(super) fn accept_anew(&mut self) {
        self.poller.set_timer(TimerKey::Listener, &mut self.accept_again, None);
        self.poller.rewatch(self.listener.fd.as_fd(), LISTENER, EpollFlags::EPOLLIN);
    }

    /// Reads the first datagram of an incoming connection.
    pub(super) fn read_half_open(&mut self, serial: u64, handler: &mut dyn Handler) {
        let Some(half) = self.half_open.get(&serial) else { return };
        let received = socket::receive(half.fd.as_fd(), &mut self.buffer);
        if let Received::Nothing = received {
            return;
        }
        let Some(half) = self.take_half_open(serial) else { return };
        let Received::Datagram(datagram) = received else {
            return self.refuse_connection(half, None);
        };
        let bytes = self.buffer[..datagram.bytes].to_vec();
        let entrant = self.check_hello(&half, &bytes, &datagram).and_then(|packet| {
            let process = self.check_process(&half, packet.id)?;
            Ok((packet, process))
        });
        match entrant {
            Ok((packet, process)) => {
                self.shortage.ends();
                let connection = Connection { serial, fd: Arc::new(half.fd), process: Arc::new(process) };
                self.enter(connection, &packet, datagram.descriptors, handler);
            }
            Err(last_word) => self.refuse_connection(half, last_word),
        }
    }

    /// The HELLO in an incoming connection's first datagram, or the last word
    /// for its owner.
    fn check_hello<'a>(
        &mut self,
        half: &HalfOpen,
        bytes: &'a [u8],
        datagram: &Datagram,
    ) -> Result<Packet<'a>, Option<Vec<u8>>> {
        let id = self.id;
        let refusal = |sentence: &str| Some(wire::encode_refusal(id, sentence));
        match wire::parse(bytes, datagram.descriptors.len()) {
            Ok(packet) if packet.kind == Kind::Hello && !datagram.cut => match packet.lost_descriptors {
                0 => Ok(packet),
                // This process may open no more files at the moment.
                _ => Err(self.short_of_descriptors()),
            },
            // Who began this connection found that it does not want it. Our
            // own attempt, if any, will be told as well.
            Ok(packet) if packet.kind == Kind::Refuse => {
                tracing::debug!(peer = %packet.id, reason = packet.reason(), fd = ?half.fd, "a peer refused");
                Err(None)
            }
            Ok(_) => Err(refusal("the first datagram is not a HELLO that fits; it must be one")),
            Err(wrong) => Err(refusal(&wrong.to_string())),
        }
    }

    /// The process that began an incoming connection, or the last word for it.
    fn check_process(&mut self, half: &HalfOpen, id: EndpointId) -> Result<PeerProcess, Option<Vec<u8>>> {
        let own = self.id;
        let refusal = |sentence: &str| Some(wire::encode_refusal(own, sentence));
        if socket::has_ended(&half.fd) {
            // Its owner gave it up meanwhile, for example because our own
            // connection reached it: adopting it would only raise an alarm.
            return Err(None);
        }
        match self.identify(&half.fd) {
            Ok(Some(_)) if id == self.id => {
                Err(refusal("the peer has this endpoint's own id; give each process its own rank"))
            }
            Ok(Some(process)) => Ok(process),
            Err(Identify::Rejected(reason)) => {
                tracing::warn!(reason, "a connection was refused");
                Err(refusal(&reason))
            }
            // Dead.
            Ok(None) => Err(None),
            Err(Identify::Short(_)) => Err(self.short_of_descriptors()),
        }
    }

    /// Puts the HELLO of an incoming connection before the handshake.
    fn enter(
        &mut self,
        connection: Connection,
        packet: &Packet<'_>,
        descriptors: Vec<OwnedFd>,
        handler: &mut dyn Handler,
    ) {
        let id = packet.id;
        // A peer that closed one connection and began this one has closed
        // first: what it closed must not stand in its way.
        self.read_out(id, handler);
        let cargo = EventData {
            connection: Some(connection),
            hello: packet.hello,
            blob: packet.blob.to_vec(),
            descriptors,
            ..EventData::default()
        };
        let deadline = self.now + self.timeout;
        let peer = self.peers.entry(id).or_insert_with(|| Peer::new(deadline));
        if peer.state != State::Established {
            peer.deadline = peer.deadline.max(deadline);
        }
        self.happen(id, Event::TheirHello, cargo, handler);
    }
}
