//! How many bytes are under way to a peer, and were in the window before.
#![forbid(unsafe_code)]

/// Behind so many messages a window that has not ended counts as one: a pipeline of messages may
/// never run dry.
const MOST_MESSAGES: u32 = 64;

/// The messages that are under way to one peer.
///
/// ```
/// let mut under_way = lmt_core::under_way::UnderWay::default();
/// (0..3).for_each(|_| under_way.begin(1 << 20));
/// assert_eq!((under_way.bytes(), under_way.last_most_bytes()), (3 << 20, 0));
/// (0..3).for_each(|_| under_way.end(1 << 20));
/// assert_eq!((under_way.bytes(), under_way.last_most_bytes()), (0, 3 << 20));
/// ```
#[derive(Debug, Default)]
pub struct UnderWay {
    messages: u32,
    bytes: u64,
    /// Messages that ended in this window.
    ended: u32,
    most_bytes: u64,
    last_most_bytes: u64,
}

impl UnderWay {
    /// A message of so many bytes is under way.
    pub fn begin(&mut self, bytes: u64) {
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
        self.ended += 1;
        if self.messages == 0 || self.ended >= MOST_MESSAGES {
            self.ended = 0;
            self.last_most_bytes = std::mem::take(&mut self.most_bytes);
        }
    }

    /// Another peer may be there: nothing is known of the window before.
    pub const fn forget_last(&mut self) {
        (self.most_bytes, self.last_most_bytes) = (0, 0);
    }

    /// So many bytes are under way.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes of several messages at once were at most, in the window before this one: of
    /// messages until there were none, or of the last 64.
    pub const fn last_most_bytes(&self) -> u64 {
        self.last_most_bytes
    }
}

#[cfg(test)]
#[path = "under_way_tests.rs"]
mod tests;
