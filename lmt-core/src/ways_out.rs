//! How messages of one peer are copied to their targets: through the caches or past them.
//!
//! A rule says which are to go past them ([`crate::targets`]). That is half again as fast on
//! some machines, and slower than the string instruction on others, by the message's length and
//! where its target was; and on some it is faster where the rule says nothing, since their last
//! cache is far away. So those that come one by one are timed, and now and then a few of them go
//! the other way ([`crate::rival`]). Of several at once all do as the rule says: no cache holds
//! them.
#![forbid(unsafe_code)]

use std::time::Instant;

use crate::rival::ByLength;

/// What a rule says of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// It goes past the caches, unless going through them is found to be faster.
    Past,
    /// It goes through them, unless going past them is found to be faster.
    Through,
    /// It goes past them or through them, whatever is faster.
    Always {
        /// Past them.
        past: bool,
    },
}

/// What is known of one peer's messages.
///
/// ```
/// use lmt_core::ways_out::{Rule, WaysOut};
/// let mut ways = WaysOut::new(8 << 20);
/// assert!(ways.begin(1 << 20, Rule::Past), "until the other way has been tried");
/// ways.end(1 << 20, true);
/// ```
#[derive(Debug)]
pub struct WaysOut {
    /// Past the caches, or through them; with the first message that may, since most peers
    /// send none.
    of_past: Option<Box<ByLength>>,
    /// Through them, or past them: where past them is faster, so it is for what is longer.
    of_through: Option<Box<ByLength>>,
    /// What goes past the caches and is shorter is tried soon.
    soon_below_bytes: u64,
    /// Messages that have begun and are not over.
    incoming: u32,
    /// Since when the only one is copied, if it is timed, and by which rule.
    timed: Option<(Instant, Rule)>,
}

impl WaysOut {
    /// Nothing is known of messages that go past the caches from so many bytes on. Those that
    /// are much longer are sure to be right there, so they are tried later.
    pub const fn new(streaming_bytes: u64) -> Self {
        let soon_below_bytes = streaming_bytes.saturating_mul(2);
        Self { of_past: None, of_through: None, soon_below_bytes, incoming: 0, timed: None }
    }

    fn rivals(&mut self, rule: Rule) -> Option<&mut ByLength> {
        let soon_below = || Box::new(ByLength::soon_below(self.soon_below_bytes));
        match rule {
            Rule::Past => Some(self.of_past.get_or_insert_with(soon_below)),
            Rule::Through => Some(self.of_through.get_or_insert_default()),
            Rule::Always { .. } => None,
        }
    }

    /// A message of so many bytes begins, of which the rule says so; whether it goes past the
    /// caches.
    pub fn begin(&mut self, bytes: u64, rule: Rule) -> bool {
        self.incoming += 1;
        let is_only = self.incoming == 1;
        let takes_second = is_only
            && self.rivals(rule).is_some_and(|rivals| {
                if rule == Rule::Through {
                    rivals.begin_as_shorter(bytes);
                }
                rivals.of(bytes).takes_second()
            });
        let is_timed = is_only && !matches!(rule, Rule::Always { .. });
        self.timed = is_timed.then(|| (Instant::now(), rule));
        matches!(rule, Rule::Past | Rule::Always { past: true }) != takes_second
    }

    /// So many messages have begun and are not over.
    pub const fn incoming(&self) -> u32 {
        self.incoming
    }

    /// One of so many bytes is over, and has come or has not.
    pub fn end(&mut self, bytes: u64, is_whole: bool) {
        self.incoming = self.incoming.saturating_sub(1);
        if let Some((begun, rule)) = self.timed.take()
            && is_whole
            && let Some(rivals) = self.rivals(rule)
        {
            rivals.of_mut(bytes).note(begun.elapsed(), bytes);
        }
    }
}

#[cfg(test)]
#[path = "ways_out_tests.rs"]
mod tests;
