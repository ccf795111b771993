//! What blocks until a queue, a counter or an event queue has something: one
//! descriptor over everything that may wake its waiter.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::abi::Errno;

/// A descriptor for `poll(2)`, readable when its waiter is to look again: the bell
/// was rung, the time is over after which nobody rings, or an engine has something.
#[derive(Debug)]
pub struct WaitSet {
    epoll: Epoll,
    doorbell: EventFd,
    timer: TimerFd,
}

fn no_descriptor(error: nix::errno::Errno) -> Errno {
    Errno(error as i32)
}

impl WaitSet {
    /// A new one, whose bell is rung: who blocks without asking first
    /// (fi_trywait(3)) is told to look.
    ///
    /// # Errors
    /// No descriptor or memory is left.
    pub fn new() -> Result<Self, Errno> {
        let doorbell = EventFd::from_value_and_flags(1, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC);
        let set = Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(no_descriptor)?,
            doorbell: doorbell.map_err(no_descriptor)?,
            timer: timer.map_err(no_descriptor)?,
        };
        set.add(set.doorbell.as_fd())?;
        set.add(set.timer.as_fd())?;
        Ok(set)
    }

    /// Has a descriptor wake the waiter, until it is closed.
    ///
    /// # Errors
    /// No memory is left, or it is there already.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        self.epoll.add(descriptor, event).map_err(no_descriptor)
    }

    /// The descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.0.as_raw_fd()
    }

    fn ring(&self) {
        // Full, it is readable all the same.
        let _rung = self.doorbell.write(1);
    }

    /// Takes back what rang before.
    fn quiet(&self) {
        // Nothing has rung: nothing is to be taken back.
        let _taken = self.doorbell.read();
    }

    /// Has the descriptor become readable after so long, however quiet it is.
    fn limit(&self, limit: Duration) {
        let limit = limit.max(Duration::from_micros(1));
        // It cannot fail with a valid time.
        let _set =
            self.timer.set(Expiration::OneShot(TimeSpec::from_duration(limit)), TimerSetTimeFlags::empty());
    }

    fn unlimited(&self) {
        // It cannot fail for a timer.
        let _unset = self.timer.unset();
    }

    /// Sleeps until the descriptor is readable, at most so long.
    pub fn sleep(&self, limit: Duration) {
        let mut polled = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
        // Interrupted or timed out, the next look finds out.
        let _ready = ppoll(&mut polled, Some(TimeSpec::from_duration(limit)), None);
    }
}

/// Who waits for an object.
#[derive(Debug, Default)]
pub struct Watch {
    set: Option<Arc<WaitSet>>,
    /// Threads that sleep in a call.
    sleepers: u32,
    /// Whether the user has been told that it may block.
    user: bool,
    /// Whether the user's time is limited: over, the descriptor stays readable.
    limited: bool,
    /// Whether the bell was rung since somebody began to wait.
    rung: bool,
    /// Poll sets that it is in.
    pub poll_sets: u32,
}

impl Watch {
    /// What is waited in, if there is one.
    pub const fn set(&self) -> Option<&Arc<WaitSet>> {
        self.set.as_ref()
    }

    /// Waits in this set from now on.
    pub fn wait_in(&mut self, set: Arc<WaitSet>) {
        self.set = Some(set);
    }

    /// Whether somebody may be asleep.
    #[inline]
    pub const fn is_armed(&self) -> bool {
        self.sleepers > 0 || self.user
    }

    /// Somebody who has found nothing is about to sleep.
    pub fn arm(&mut self, is_user: bool) {
        if is_user {
            self.user = true;
        } else {
            self.sleepers += 1;
        }
        self.rung = false;
        if let Some(set) = &self.set {
            set.quiet();
        }
        if !self.user {
            self.unlimited();
        }
    }

    /// Has the user look again after so long, however quiet it is.
    pub fn limit(&mut self, limit: Duration) {
        if let Some(set) = &self.set {
            set.limit(limit);
            self.limited = true;
        }
    }

    fn unlimited(&mut self) {
        if std::mem::take(&mut self.limited)
            && let Some(set) = &self.set
        {
            set.unlimited();
        }
    }

    /// A thread sleeps no more.
    pub const fn wake(&mut self) {
        self.sleepers = self.sleepers.saturating_sub(1);
    }

    /// The user looks; another of its threads may sleep, which is to look too.
    #[inline]
    pub fn user_polls(&mut self) {
        if self.user {
            self.ring();
            self.user = false;
            self.unlimited();
        }
    }

    /// There is something to look at.
    #[inline]
    pub fn ring(&mut self) {
        if self.is_armed() && !self.rung {
            self.rung = true;
            if let Some(set) = &self.set {
                set.ring();
            }
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
