//! Progress: what one call does, how often the sockets are looked at, and the
//! end.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::Engine;
use super::blocking_receive::{Found, PolledReceive};
use super::cells::KindByte;
use super::handshake::Reception;
use super::state::Traffic;
use crate::base::clock::CoarseInstant;
use crate::matching::Matcher;
use crate::queue::Next;
use crate::requests::outcome::OperationError;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::PeerKey;

impl Engine {
    /// Moves messages: takes one that has arrived, and more while receives wait for them or
    /// something else is in flight, copies at most a quota of one transfer, writes what there is room
    /// for, and now and then looks at the sockets. Never waits. Returns whether anything moved.
    ///
    /// # Errors
    /// This is a forked child.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn progress(&mut self) -> Result<bool, OperationError> {
        self.check_fork()?;
        let found = self.look();
        let moved = (found.is_some() || !self.traffic.is_quiescent()) && self.move_messages(found);
        self.after(moved, Self::CLOCK_EVERY_CALL);
        Ok(moved)
    }

    /// How many of the next polls may be [`Engine::is_idle`] instead of a call of progress, as long
    /// as that says so and nothing else is called between them: such a call would do nothing but look
    /// for a message. Then [`Engine::count_idle`] is to be told. None where there is something to
    /// move, and at the beginning of a wait.
    #[inline]
    pub fn idle_polls(&self) -> u32 {
        let polls = self.sharing.idle_polls();
        if polls == 0 || !self.traffic.is_quiescent() {
            return 0;
        }
        polls.min(Self::IDLE_POLLS).min(self.calls_until_sockets).min(self.inbox.idle_polls())
    }

    /// Whether no message is where a poll looks; for as many polls as [`Engine::idle_polls`] has said,
    /// and no others: it does not look everywhere. False in a forked child.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn is_idle(&mut self) -> bool {
        self.origin.is_known_to_be_this_process() && self.inbox.is_idle()
    }

    /// So many polls were idle. The next call of progress looks at the clock.
    pub fn count_idle(&mut self, polls: u32) {
        self.inbox.count_idle(polls);
        self.sharing.count_idle(polls);
        let left = self.calls_until_sockets.saturating_sub(polls);
        self.calls_until_sockets = left & !(Self::CLOCK_EVERY_CALL - 1) | 1;
    }

    /// Takes what has arrived, of which a look has found the first, and moves what is in flight.
    #[inline(never)]
    fn move_messages(&mut self, found: Option<usize>) -> bool {
        let mut next = found.and_then(|at| self.inbox.next_at(at));
        let mut taken = 0;
        while let Some(message) = next {
            self.take(message, None);
            taken += 1;
            if taken == Self::BATCH || !self.takes_another(message) {
                break;
            }
            next = self.next();
        }
        self.advance() | (taken > 0)
    }

    /// Whether a call that has taken this message takes another. Not where no further receive waits
    /// for one of its space, as in a ping-pong: a poll of the next line would take it away from its
    /// sender, who has it ready for writing.
    #[inline(always)] // The path of a short message.
    fn takes_another(&mut self, last: Next) -> bool {
        let (_, marks) = KindByte::read(last.header.kind);
        self.traffic.matchers.of(marks.space).posted() > 0
            || self.traffic.in_pieces
            // Packets come before copies, and the core is not given away before messages.
            || !self.traffic.is_quiescent()
            || self.sharing.yields_each_poll()
    }

    /// Takes one cell out of the inbox.
    #[inline]
    pub(super) fn poll_inbox(&mut self) -> bool {
        !matches!(self.poll_for(None), Found::Nothing)
    }

    /// The same, for a receive that is awaited.
    #[inline(always)] // The path of a short message.
    pub(super) fn poll_for(&mut self, awaited: Option<&mut PolledReceive>) -> Found {
        match self.next() {
            Some(next) => self.take(next, awaited),
            None => Found::Nothing,
        }
    }

    #[inline(always)] // The path of a short message.
    fn next(&mut self) -> Option<Next> {
        let at = self.look()?;
        self.inbox.next_at(at)
    }

    /// Looks for a message; where others are let run after an empty poll, at every fast box: what is
    /// in one would wait until the core is back.
    #[inline(always)] // The path of a short message.
    fn look(&mut self) -> Option<usize> {
        let found = self.inbox.look();
        if found.is_none() && self.sharing.yields_each_poll() { self.inbox.look_at_all() } else { found }
    }

    #[inline(always)] // The path of a short message.
    fn take(&mut self, next: Next, awaited: Option<&mut PolledReceive>) -> Found {
        if self.traffic.is_awaiting_report(next.header.sender) {
            return self.poll_after_report();
        }
        self.traffic.deliver(&mut self.inbox, next, awaited)
    }

    /// A peer whose report has not been read here sends already. It sent the
    /// report first, so it can be read now; then what its cell asks for can be
    /// answered at once, which a caller that makes no more progress relies on.
    #[cold]
    pub(super) fn poll_after_report(&mut self) -> Found {
        self.poll_sockets();
        if let Some(next) = self.inbox.next_of_all() {
            self.traffic.deliver(&mut self.inbox, next, None);
        }
        // The sockets may have had messages taken in, too, which come before all later ones.
        Found::Something
    }

    /// Takes what is there, also from fast boxes at which not every poll looks:
    /// for those who ask once what has come.
    pub(super) fn progress_all(&mut self) -> Result<bool, OperationError> {
        let mut moved = self.progress()?;
        for _ in 0..Self::BATCH {
            match self.inbox.next_of_all() {
                Some(next) if self.traffic.is_awaiting_report(next.header.sender) => return Ok(moved),
                Some(next) => self.traffic.deliver(&mut self.inbox, next, None),
                None => break,
            };
            moved = true;
        }
        Ok(moved | self.advance())
    }

    /// Copies and writes.
    #[inline(always)] // The path of a short message.
    pub(super) fn advance(&mut self) -> bool {
        !self.traffic.is_quiescent() && self.advance_all()
    }

    fn advance_all(&mut self) -> bool {
        let traffic = &mut self.traffic;
        let mut moved = false;
        traffic.settle();
        if traffic.transfers.is_active() {
            // First the packets: a peer that is to help with what is copied
            // below is not to wait for the copy.
            if !traffic.busy.is_empty() {
                moved |= traffic.flush_all(&self.inbox);
            }
            let quota_bytes = traffic.config.quota_bytes;
            moved |= traffic.transfers.step(quota_bytes);
            traffic.settle();
        }
        if traffic.transfers.is_prefaulting() {
            moved |= traffic.transfers.prefault();
        }
        if traffic.transfers.mechanism_status().has_oob_messages() {
            self.send_oob_messages();
        }
        let traffic = &mut self.traffic;
        if !traffic.busy.is_empty() {
            moved |= traffic.flush_all(&self.inbox);
        }
        if !(traffic.one_sided.is_empty() && traffic.wanted.is_empty()) {
            moved |= self.advance_regions();
        }
        moved
    }

    /// Sends what mechanisms have for their peers' instances.
    #[cold]
    fn send_oob_messages(&mut self) {
        let Traffic { transfers, peers, .. } = &mut self.traffic;
        transfers.hand_over(&mut self.connector, |key| peers.get(key as usize).map(|peer| peer.id));
    }

    /// What is done less often: credits when idle, and the sockets.
    #[inline(always)] // The path of a short message.
    pub(super) fn after(&mut self, moved: bool, clock_every: u32) {
        if moved {
            self.sharing.end_wait();
        } else {
            self.sharing.count_empty(self.traffic.config.spins, self.traffic.transfers.is_oversubscribed());
            if self.sharing.is_time_to_return_credits() {
                self.traffic.return_all_credits();
            }
        }
        match self.calls_until_sockets.checked_sub(1) {
            Some(left) => {
                self.calls_until_sockets = left;
                if left & (clock_every - 1) == 0 {
                    self.poll_sockets_if_due();
                }
            }
            None => self.poll_sockets(),
        }
    }

    /// Looks at the clock, and at the sockets if it is time.
    #[inline(never)]
    fn poll_sockets_if_due(&mut self) {
        if self.sockets_polled_at.elapsed() > Self::SOCKET_POLL_INTERVAL {
            self.poll_sockets();
        }
    }

    /// Accepts, connects, notices deaths.
    #[cold]
    pub(super) fn poll_sockets(&mut self) {
        let now = Instant::now();
        let mut reception = Reception { traffic: &mut self.traffic, inbox: &mut self.inbox };
        self.connector.progress(now, &mut reception);
        // Who has let others wait for seconds is not waited for at every few calls.
        let connects = self.connector.connects_since(Self::CONNECTS_SOON);
        self.calls_until_sockets = if connects || !self.traffic.one_sided.is_empty() {
            Self::SOCKET_EVERY_CONNECTING
        } else {
            Self::SOCKET_EVERY
        };
        self.sockets_polled_at = CoarseInstant::now();
        if !self.detached.is_empty() || self.has_discards() {
            self.discard();
        }
    }

    /// Takes back the receives that are unmatched, sends what still waits for
    /// peers and completes what is in flight, for at most `close_timeout_ms`; then says goodbye,
    /// after which nothing of this process copies any more. Dropping does the
    /// same. A peer that is in the middle of a copy when the time is over may
    /// use this process's memory until it has read the goodbye.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn close(&mut self) -> Result<(), OperationError> {
        self.check_fork()?;
        let deadline = Instant::now() + Duration::from_millis(self.traffic.config.close_timeout_ms);
        for request in self.traffic.requests.unmatched() {
            self.traffic.cancel(request);
        }
        let waits = |traffic: &Traffic| !traffic.busy.is_empty() || traffic.requests.lent(None) > 0;
        while waits(&self.traffic) && Instant::now() < deadline {
            if !self.progress()? {
                self.sleep_until_event(Some(deadline))?;
            }
        }
        self.part();
        Ok(())
    }

    /// Ends the connections without making progress and without waiting for
    /// anything, for an engine that a panic has left in the middle of something;
    /// after it the engine is good for nothing but to be dropped. Peers may use
    /// the memory of what was in flight as [`Engine::close`] says. Does nothing in
    /// a forked child.
    pub fn let_go(&mut self) {
        // First: if this panics too, dropping does not begin again.
        self.is_let_go = true;
        if self.check_fork().is_ok() {
            self.part();
        }
    }

    /// Says goodbye to all peers.
    fn part(&mut self) {
        self.traffic.return_all_credits();
        // First what still copies in the background is ended, so that a peer
        // that has read the goodbye may use its memory for something else.
        for key in 0..self.traffic.peers.len() as PeerKey {
            if self.traffic.peers[key as usize].link().is_some() {
                let id = self.traffic.peers[key as usize].id;
                self.traffic.fail_peer(key, PeerError::Removed { id });
            }
        }
        self.connector.goodbye_all();
        if let Some(report) = self.at_end.take() {
            let (eager, mechanisms) = self.totals();
            report(eager, &mechanisms);
        }
    }

    /// A descriptor that is readable when there may be something to do, for
    /// event loops: call [`Engine::prepare_to_sleep`] before polling it, and
    /// [`Engine::woken`] and [`Engine::progress`] after.
    pub fn wait_descriptor(&self) -> BorrowedFd<'_> {
        self.connector.epoll_fd()
    }
}
