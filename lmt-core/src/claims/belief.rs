//! Whether a sender is expected to help, from what it did with the last
//! messages: a receiver that expects nobody claims all at once, and saves the
//! system calls of smaller parts.

/// What is known of one peer's messages of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Belief {
    /// For so many messages more nobody is expected.
    alone: u8,
    /// So many times in a row nobody came though somebody was expected.
    failures: u8,
}

/// After so many failures in a row nobody is expected for 2^5 messages.
const MOST_FAILURES: u8 = 5;

impl Belief {
    /// Whether the receiver expects to be alone with the next message.
    pub(super) const fn is_alone(self) -> bool {
        self.alone > 0
    }

    /// What became of a message: whether the sender was there before it was
    /// whole, and whether it copied anything.
    pub(super) const fn learn(&mut self, was_there: bool, copied: bool) {
        if copied {
            *self = Self { alone: 0, failures: 0 };
        } else if self.alone > 0 {
            // Who came, but too late to copy, may come in time: it is soon
            // tried again.
            self.alone = if was_there { self.alone / 2 } else { self.alone - 1 };
        } else {
            if self.failures < MOST_FAILURES {
                self.failures += 1;
            }
            self.alone = 1 << self.failures;
        }
    }
}

/// What is known of one peer, by size class.
#[derive(Clone, Debug)]
pub(super) struct Beliefs([Belief; Beliefs::CLASSES]);

impl Beliefs {
    /// One for each power of two.
    const CLASSES: usize = 64;

    pub(super) const fn new() -> Self {
        Self([Belief { alone: 0, failures: 0 }; Self::CLASSES])
    }

    /// What is known of messages of this length.
    pub(super) const fn of(&mut self, bytes: u64) -> &mut Belief {
        let class = 63 - (bytes | 1).leading_zeros() as usize;
        &mut self.0[class % Self::CLASSES]
    }
}

#[cfg(test)]
#[path = "belief_tests.rs"]
mod tests;
