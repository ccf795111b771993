//! Whether a sender is expected to help, from what it did with the last
//! messages: a receiver that expects nobody claims all at once, and saves the
//! system calls of smaller parts; a sender of several at once that could not help does
//! not offer to.
#![forbid(unsafe_code)]

/// What is known of one peer's messages of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Belief {
    /// For so many messages more nobody is expected.
    alone: u8,
    /// So many times in a row nobody came though somebody was expected.
    failures: u8,
}

/// After so many failures in a row nobody is expected for 2^5 messages.
const MOST_FAILURES: u8 = 5;

impl Belief {
    /// Whether the receiver expects to be alone with the next message.
    pub(crate) const fn is_alone(self) -> bool {
        self.alone > 0
    }

    /// Whether to ask for help with the next of several messages that are under way at
    /// once, as is first known when one of them is over: after failures one is asked for,
    /// and for the others behind it that it fails, too.
    pub(crate) const fn is_worth_asking(&mut self) -> bool {
        if self.alone > 0 {
            return false;
        }
        if self.failures > 0 {
            self.alone = 1 << self.failures;
        }
        true
    }

    /// What became of a message for which help was asked: whether that was of use. One that
    /// was helped with tells less than several: two processes that send each other windows
    /// help with the first ones when one of them begins a little earlier.
    pub(crate) const fn learn_of_asked(&mut self, helped: bool) {
        if helped {
            self.failures /= 2;
            self.alone = 0;
        } else {
            self.fail();
        }
    }

    /// Nobody is expected for twice as many messages as after the failure before.
    const fn fail(&mut self) {
        if self.failures < MOST_FAILURES {
            self.failures += 1;
        }
        self.alone = 1 << self.failures;
    }

    /// A message for which nobody was asked is over.
    pub(crate) const fn pass(&mut self) {
        self.alone = self.alone.saturating_sub(1);
    }

    /// What became of a message: whether the sender was there before it was
    /// whole, and whether it copied anything.
    pub(crate) const fn learn(&mut self, was_there: bool, copied: bool) {
        if copied {
            *self = Self { alone: 0, failures: 0 };
        } else if self.alone > 0 {
            // Who came, but too late to copy, may come in time: it is soon
            // tried again.
            self.alone = if was_there { self.alone / 2 } else { self.alone - 1 };
        } else {
            self.fail();
        }
    }
}

/// What is known of one peer, by size class.
#[derive(Clone, Debug)]
pub(crate) struct Beliefs([Belief; Beliefs::CLASSES]);

impl Beliefs {
    /// One for each power of two.
    const CLASSES: usize = 64;

    pub(crate) const fn new() -> Self {
        Self([Belief { alone: 0, failures: 0 }; Self::CLASSES])
    }

    /// What is known of messages of this length.
    pub(crate) const fn of(&mut self, bytes: u64) -> &mut Belief {
        let class = 63 - (bytes | 1).leading_zeros() as usize;
        &mut self.0[class % Self::CLASSES]
    }
}

#[cfg(test)]
#[path = "belief_tests.rs"]
mod tests;
