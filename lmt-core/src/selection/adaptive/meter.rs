//! From sends to samples: what a byte costs from one round of a stream to the
//! next, and blocks of them.

/// So many samples make a block; its value is the least of them, so that the
/// others may be anything: the application computed, the core was taken away, or
/// what a way needs was out of the cache after the messages by another.
pub(super) const SAMPLES: usize = 3;
/// A block of a stream in which nothing ever comes back ends after so much.
const UNANSWERED_BYTES: u64 = 4 << 20;
const UNANSWERED_MESSAGES: u32 = 32;
/// A sample covers so many times the messages that were under way when it began:
/// what is sent by one way while others of another way are under way is paid for
/// by those.
const OF_UNDERWAY: u32 = 4;

/// One send, as far as a meter looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    /// When it was asked for.
    pub now_ns: u64,
    /// Its length.
    pub bytes: u64,
    /// A number that has changed if anything has arrived in this process since.
    pub events: u64,
    /// Earlier messages to this peer that are still under way.
    pub under_way: u32,
}

/// What one round cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub ns: u64,
    pub bytes: u64,
    pub messages: u32,
    /// Some message of it did not go the way that it was meant to.
    pub is_spoilt: bool,
}

impl Sample {
    pub fn ns_per_byte(&self) -> f64 {
        self.ns.max(1) as f64 / self.bytes.max(1) as f64
    }
}

/// Cuts a stream into rounds.
///
/// The time from one send to the next is the whole of a ping-pong's round trip,
/// but says nothing where an application sends a window of messages and then
/// waits. So a round ends only with a send before which something has arrived:
/// a reply, an acknowledgement, or the end of the messages before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    start_ns: u64,
    events: u64,
    bytes: u64,
    messages: u32,
    needed: u32,
    is_spoilt: bool,
}

impl Meter {
    /// A message is about to be sent. Returns the round that ended with that.
    #[inline]
    pub fn send(&mut self, send: &Send) -> Option<Sample> {
        let answered = send.events != self.events && self.messages >= self.needed;
        let endless = self.messages >= UNANSWERED_MESSAGES && self.bytes >= UNANSWERED_BYTES;
        self.events = send.events;
        let ended = self.messages > 0 && (answered || endless);
        let sample = ended.then(|| Sample {
            ns: send.now_ns.saturating_sub(self.start_ns),
            bytes: self.bytes,
            messages: self.messages,
            is_spoilt: self.is_spoilt,
        });
        if ended || self.messages == 0 {
            let needed = send.under_way.saturating_mul(OF_UNDERWAY).max(1);
            *self = Self { start_ns: send.now_ns, events: send.events, needed, ..Self::default() };
        }
        self.bytes = self.bytes.saturating_add(send.bytes);
        self.messages = self.messages.saturating_add(1);
        sample
    }

    /// Forgets the round: messages were sent that it has not seen. Returns when it
    /// began.
    pub fn restart(&mut self) -> u64 {
        let start_ns = self.start_ns;
        *self = Self::default();
        start_ns
    }

    /// The message goes another way than the stream's.
    pub const fn spoil(&mut self) {
        self.is_spoilt = true;
    }
}

/// A few samples in a row by one way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    values: [f64; SAMPLES],
    used: u8,
    is_spoilt: bool,
}

impl Block {
    /// Adds a sample. Returns whether the block is complete.
    pub fn add(&mut self, sample: &Sample) -> bool {
        if let Some(slot) = self.values.get_mut(usize::from(self.used)) {
            *slot = sample.ns_per_byte();
            self.used += 1;
        }
        self.is_spoilt |= sample.is_spoilt;
        usize::from(self.used) == SAMPLES
    }

    /// The least, in ns per byte; nothing when it is spoilt or empty.
    pub fn least(&self) -> Option<f64> {
        let used = self.values[..usize::from(self.used)].iter().copied();
        used.min_by(f64::total_cmp).filter(|_| !self.is_spoilt)
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
