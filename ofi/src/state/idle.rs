//! Idle polls: empty polls of a queue that do nothing but look whether a message has arrived. An
//! empty poll before them has found that nothing else is to be done, and for how many polls that
//! holds; whoever takes the domain's lock for anything else ends it ([`super::Domain::lock`]).

use super::State;
use super::endpoint::Endpoint;

/// So many empty polls none is made idle where idle ones have ended before the first, as for a caller
/// that does something else between its polls, or peeks.
const PAUSE_POLLS: u32 = 64;

/// Which polls may be idle.
#[derive(Debug, Default)]
pub struct Idle {
    /// The queue that is polled.
    queue: usize,
    /// The endpoint that it serves.
    endpoint: usize,
    /// How many polls may be idle, and how many of these are left.
    polls: u32,
    left: u32,
    /// So many empty polls to come make none idle.
    pause: u32,
}

impl State {
    /// Whether a poll of this queue is done with: it may be idle, and no message has arrived.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn polls_idly(&mut self, queue: usize) -> bool {
        let Idle { queue: polled, endpoint, left, .. } = &mut self.idle;
        if *left == 0 || *polled != queue {
            return false;
        }
        if !self.endpoints.get_mut(*endpoint).is_some_and(Endpoint::is_idle) {
            return false;
        }
        *left -= 1;
        true
    }

    /// A poll of this queue was empty: may the next ones be idle?
    #[inline]
    pub fn begin_idle(&mut self, queue: usize) {
        if let Some(pause) = self.idle.pause.checked_sub(1) {
            self.idle.pause = pause;
            return;
        }
        let polled = self.shared_state.queues.get(queue).filter(|queue| queue.is_empty());
        let Some(&[endpoint]) = polled.map(|queue| &queue.endpoints[..]) else { return };
        let polls = self.endpoints.get(endpoint).map_or(0, Endpoint::idle_polls);
        if polls > 0 && !self.caller.is_looked_at() && !self.peeks.is_yield_owed() {
            self.idle = Idle { queue, endpoint, polls, left: polls, pause: 0 };
        }
    }

    /// Something else is done, or was found.
    #[inline(always)] // As `polls_idly`.
    pub(super) fn end_idle(&mut self) {
        if self.idle.polls != 0 {
            self.count_idle();
        }
    }

    fn count_idle(&mut self) {
        let Idle { endpoint, polls, left, .. } = std::mem::take(&mut self.idle);
        if polls == left {
            self.idle.pause = PAUSE_POLLS;
        } else if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
            endpoint.count_idle(polls - left);
        }
    }
}
