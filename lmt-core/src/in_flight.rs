//! What is in flight to a peer, and what was in the window before.
#![forbid(unsafe_code)]

/// With so many messages begun a window that has not ended counts as one: a pipeline of messages
/// may never run dry.
const MOST_MESSAGES: u32 = 64;

/// The messages that are in flight to one peer.
///
/// ```
/// let mut in_flight = lmt_core::in_flight::InFlight::default();
/// (0..3).for_each(|_| in_flight.begin(1 << 20));
/// assert_eq!((in_flight.bytes(), in_flight.last_most_bytes()), (3 << 20, 0));
/// (0..3).for_each(|_| in_flight.end(1 << 20));
/// assert_eq!((in_flight.bytes(), in_flight.last_most_bytes()), (0, 3 << 20));
/// ```
#[derive(Debug, Default)]
pub struct InFlight {
    messages: u32,
    bytes: u64,
    /// Messages that began in this window.
    begun: u32,
    most_bytes: u64,
    last_most_bytes: u64,
}

impl InFlight {
    /// A message of so many bytes is in flight from now on.
    pub fn begin(&mut self, bytes: u64) {
        if self.begun == MOST_MESSAGES {
            self.roll_over();
        }
        self.begun += 1;
        self.messages = self.messages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        // One alone is no window.
        if self.messages > 1 {
            self.most_bytes = self.most_bytes.max(self.bytes);
        }
    }

    /// It is not any more.
    pub fn end(&mut self, bytes: u64) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.messages == 0 {
            self.roll_over();
        }
    }

    /// The next window begins.
    const fn roll_over(&mut self) {
        self.begun = 0;
        self.last_most_bytes = std::mem::replace(&mut self.most_bytes, 0);
    }

    /// Another peer may be there: nothing is known of the window before.
    pub const fn forget_last(&mut self) {
        (self.most_bytes, self.last_most_bytes) = (0, 0);
    }

    /// So many messages are in flight.
    pub const fn messages(&self) -> u32 {
        self.messages
    }

    /// So many bytes are.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes of several messages at once were at most, in the window before this one: of
    /// messages until there were none, or of 64 that began.
    pub const fn last_most_bytes(&self) -> u64 {
        self.last_most_bytes
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
