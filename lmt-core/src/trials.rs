//! A way that is left while it is slow, and tried again more and more seldom; messages that are
//! likely to be like others begin with what is known of these.
#![forbid(unsafe_code)]

/// So many slow messages in a row are no accident.
pub(crate) const SLOW: u8 = 2;
/// So many messages go another way before the way is tried again; several times as many after each
/// trial that is slow again.
const FIRST_PAUSE: u16 = 8;

/// What is known of the way, for messages of one kind.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    slow: u8,
    /// The next message that takes the way is the first after others took another, which
    /// has left the lines where it reads and writes: it takes them back and says nothing.
    takes_back: bool,
    /// Messages that are still to go another way.
    left: u16,
    /// How many were to go so last.
    pause: u16,
}

impl Trials {
    /// Whether the next message takes the way.
    pub const fn is_due(&self) -> bool {
        self.left == 0
    }

    /// Whether the way is not known to be slow.
    pub const fn is_good(&self) -> bool {
        self.slow < SLOW
    }

    /// What another kind begins with that is expected to be like this one: where the way is
    /// slow, it is first tried after half as long a pause.
    pub fn begin_alike(&self) -> Self {
        if self.is_good() {
            return Self::default();
        }
        let pause = FIRST_PAUSE.max(self.pause / 2);
        Self { slow: SLOW, left: pause, pause, takes_back: false }
    }

    /// One has gone another way.
    pub const fn pass(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.takes_back = true;
        }
    }

    /// Whether the message that takes the way takes lines back; asked once of each.
    pub const fn take_back(&mut self) -> bool {
        std::mem::replace(&mut self.takes_back, false)
    }

    /// One was not slow.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// One was slow, that took nothing back; each pause is so many `times` as long as the one
    /// before, and the longest is `most`.
    pub fn fail(&mut self, times: u16, most: u16) {
        if self.left > 0 {
            // It was begun before others were found to be slow.
            return;
        }
        self.slow = self.slow.saturating_add(1);
        if self.slow >= SLOW {
            self.pause = self.pause.saturating_mul(times).clamp(FIRST_PAUSE, most);
            self.left = self.pause;
        }
    }
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;
