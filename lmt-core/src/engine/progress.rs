//! Progress: what one call does, how often the sockets are looked at, and the
//! end.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::Engine;
use super::handshake::Reception;
use super::requests::OperationError;

impl Engine {
    /// Moves messages: takes what has arrived, copies at most a quota of one
    /// transfer, writes what there is room for, and now and then looks at the
    /// sockets. Never waits. Returns whether anything moved.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&mut self) -> Result<bool, OperationError> {
        self.check_fork()?;
        let mut moved = false;
        for _ in 0..Self::BATCH {
            if !self.poll_inbox() {
                break;
            }
            moved = true;
        }
        moved |= self.advance();
        self.after(moved);
        Ok(moved)
    }

    /// Takes one cell out of the inbox.
    #[inline]
    pub(super) fn poll_inbox(&mut self) -> bool {
        match self.inbox.poll() {
            Some(delivery) => {
                self.traffic.deliver(delivery);
                true
            }
            None => false,
        }
    }

    /// Copies and writes.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        let traffic = &mut self.traffic;
        let mut moved = false;
        traffic.settle();
        if traffic.transfers.is_active() {
            let quota_bytes = traffic.config.quota_bytes;
            moved |= traffic.transfers.step(quota_bytes).is_some_and(|bytes| bytes > 0);
            traffic.settle();
        }
        if !traffic.busy.is_empty() {
            moved |= traffic.flush_all(&self.inbox);
        }
        if !(traffic.one_sided.is_empty() && traffic.wanted.is_empty()) {
            moved |= self.advance_regions();
        }
        moved
    }

    /// What is done less often: credits when idle, and the sockets.
    #[inline]
    pub(super) fn after(&mut self, moved: bool) {
        if moved {
            self.idle = 0;
        } else {
            self.idle = self.idle.saturating_add(1);
            if self.idle == 16 {
                self.traffic.pay_all();
            }
        }
        match self.until_sockets.checked_sub(1) {
            Some(left) => {
                self.until_sockets = left;
                if left % Self::CLOCK_EVERY == 0 && self.looked_at_sockets.elapsed() > Self::SOCKETS_AFTER {
                    self.look_at_sockets();
                }
            }
            None => self.look_at_sockets(),
        }
    }

    /// Accepts, connects, notices deaths.
    #[cold]
    pub(super) fn look_at_sockets(&mut self) {
        let now = Instant::now();
        let mut reception = Reception { traffic: &mut self.traffic, inbox: &mut self.inbox };
        self.connector.progress(now, &mut reception);
        self.until_sockets = if self.connector.connecting() > 0 || !self.traffic.one_sided.is_empty() {
            Self::SOCKET_EVERY_CONNECTING
        } else {
            Self::SOCKET_EVERY
        };
        self.looked_at_sockets = now;
    }

    /// Sends what still waits for peers that are connected or connecting, for
    /// at most `close_timeout_ms`, and says goodbye. Dropping does the same.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn close(&mut self) -> Result<(), OperationError> {
        self.check_fork()?;
        let deadline = Instant::now() + Duration::from_millis(self.traffic.config.close_timeout_ms);
        while !self.traffic.busy.is_empty() && Instant::now() < deadline {
            if !self.progress()? {
                self.doze(Some(deadline))?;
            }
        }
        self.traffic.pay_all();
        self.connector.goodbye_all();
        Ok(())
    }

    /// A descriptor that is readable when there may be something to do, for
    /// event loops: call [`Engine::prepare_to_sleep`] before polling it, and
    /// [`Engine::woken`] and [`Engine::progress`] after.
    pub fn wait_descriptor(&self) -> BorrowedFd<'_> {
        self.connector.epoll_fd()
    }
}
