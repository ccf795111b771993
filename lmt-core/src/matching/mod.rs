//! Which receive gets which message: 64-bit tag, 64-bit ignore mask, one source
//! or any.
//!
//! Messages of one source match in the order in which they arrived, receives in
//! the order in which they were posted (MPI 4.1, section 3.5; fi_tagged(3)).
//! [`Matcher`] is the interface, so that an owner with a matcher of its own can
//! bring it; [`TagMatcher`] is the one that lmt uses.
//!
//! It must not know what a message holds, nor how it arrives.
#![forbid(unsafe_code)]

mod comparisons;
mod keys;
mod list;
pub(crate) mod mix_hasher;
mod tag_matcher;

use crate::vocabulary::identity::PeerKey;
pub use tag_matcher::TagMatcher;

/// What a receive or a probe accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The only peer it accepts messages from, or any.
    pub source: Option<PeerKey>,
    /// The tag.
    pub tag: u64,
    /// Bits of the tag that do not matter.
    pub ignore: u64,
}

impl Pattern {
    /// Whether a message from `source` with `tag` is accepted.
    pub const fn accepts(&self, source: PeerKey, tag: u64) -> bool {
        let right_source = match self.source {
            Some(wanted) => wanted == source,
            None => true,
        };
        right_source && (tag ^ self.tag) & !self.ignore == 0
    }
}

/// Names a posted receive; stale once the receive has been matched or cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PostedHandle(pub(crate) u64);

/// Names an unexpected message; stale once it has been matched or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct UnexpectedHandle(pub(crate) u64);

/// A message that arrived before its receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unexpected<U> {
    /// Who sent it.
    pub source: PeerKey,
    /// Its tag.
    pub tag: u64,
    /// What the endpoint keeps of it.
    pub payload: U,
}

/// What became of a receive that was posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Post<P, U> {
    /// A message was waiting for it: the oldest that it accepts.
    Matched(P, Unexpected<U>),
    /// It waits.
    Queued(PostedHandle),
}

/// The two queues. `P` is what the endpoint keeps with a posted receive, `U`
/// what it keeps with an unexpected message.
pub trait Matcher<P, U> {
    /// A message has arrived: takes out the oldest posted receive that accepts
    /// it, but leaves one that stands ([`Matcher::post_standing`]). Without one, [`Matcher::keep`] follows before anything else arrives.
    fn arrive(&mut self, source: PeerKey, tag: u64) -> Option<P>;

    /// Puts a message behind the unexpected ones.
    fn keep(&mut self, source: PeerKey, tag: u64, payload: U) -> UnexpectedHandle;

    /// Posts a receive, or gives it the oldest unexpected message that it accepts.
    fn post(&mut self, pattern: Pattern, payload: P) -> Post<P, U> {
        match self.take(pattern) {
            Some(message) => Post::Matched(payload, message),
            None => Post::Queued(self.queue(pattern, payload)),
        }
    }

    /// Puts a receive behind the posted ones. No message that it accepts may be
    /// unexpected: [`Matcher::take`] that first.
    fn queue(&mut self, pattern: Pattern, payload: P) -> PostedHandle;

    /// Posts a receive that stays posted, in its place, whatever matches it, until
    /// [`Matcher::cancel_posted`] takes it out. No message that it accepts may be
    /// unexpected: [`Matcher::take`] those first.
    fn post_standing(&mut self, pattern: Pattern, payload: P) -> PostedHandle;

    /// The oldest unexpected message that the pattern accepts (probe).
    fn peek(&mut self, pattern: Pattern) -> Option<(UnexpectedHandle, Unexpected<&U>)>;

    /// Takes that message out (matched probe).
    fn take(&mut self, pattern: Pattern) -> Option<Unexpected<U>>;

    /// What is kept with an unexpected message, such as one whose bytes are
    /// still coming in.
    fn unexpected_mut(&mut self, handle: UnexpectedHandle) -> Option<&mut U>;

    /// The oldest unexpected message of `source` for which `wanted` is true;
    /// looks at each one (a peer that takes a message back).
    fn find_unexpected(
        &self,
        source: PeerKey,
        wanted: &mut dyn FnMut(&U) -> bool,
    ) -> Option<UnexpectedHandle>;

    /// Takes a posted receive back; `None` when it is no longer posted.
    fn cancel_posted(&mut self, handle: PostedHandle) -> Option<P>;

    /// Takes an unexpected message out; `None` when it is no longer there.
    fn remove_unexpected(&mut self, handle: UnexpectedHandle) -> Option<Unexpected<U>>;

    /// A peer will send no more: hands out, oldest first, the posted receives
    /// that accept messages from it alone, and its unexpected messages for
    /// which `useless`, asked with the tag, is true (those whose bytes can no
    /// longer be fetched).
    fn peer_gone(
        &mut self,
        source: PeerKey,
        useless: &mut dyn FnMut(u64, &U) -> bool,
        posted: &mut dyn FnMut(P),
        unexpected: &mut dyn FnMut(U),
    );

    /// How many receives are posted.
    fn posted(&self) -> usize;

    /// How many messages are unexpected.
    fn unexpected(&self) -> usize;
}
