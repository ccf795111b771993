//! The matcher that lmt uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use crate::identity::PeerKey;
use crate::slab::Slab;

use super::list::{Link, Linked, List};
use super::{Matcher, Pattern, Post, PostedHandle, Unexpected, UnexpectedHandle};

/// Every list of entries with the same source (or any) and tag.
type Lists = HashMap<(Option<PeerKey>, u64), List, BuildHasherDefault<MixHasher>>;

/// Receives without ignore mask stand in a hash table by (source or any, tag),
/// the others in one list; sequence numbers decide who is older. Unexpected
/// messages stand in a hash table by (source, tag) and in one list of all. So
/// a receive that names source and tag is found at once however many others
/// there are; only masks, and probes and receives from any source among the
/// unexpected, walk a list.
///
/// ```
/// use lmt_core::matching::{Matcher, Pattern, Post, TagMatcher};
/// let mut matcher = TagMatcher::<&str, &str>::new();
/// let any_tag = Pattern { source: Some(3), tag: 0, ignore: u64::MAX };
/// assert!(matches!(matcher.post(any_tag, "receive"), Post::Queued(_)));
/// assert_eq!(matcher.arrive(3, 42), Some("receive"));
/// assert_eq!(matcher.arrive(3, 43), None);
/// matcher.keep(3, 43, "message");
/// assert_eq!(matcher.peek(any_tag).map(|(_, message)| message.tag), Some(43));
/// ```
#[derive(Debug)]
pub struct TagMatcher<P, U> {
    receives: Slab<Receive<P>>,
    /// Receives without mask, each in the list of its source and tag.
    exact: Lists,
    /// The others.
    masked: List,
    messages: Slab<Message<U>>,
    /// All messages, in order of arrival.
    arrived: List,
    /// The same, by source and tag.
    tagged: Lists,
    next_sequence: u64,
}

#[derive(Debug)]
struct Receive<P> {
    pattern: Pattern,
    sequence: u64,
    link: Link,
    payload: P,
}

#[derive(Debug)]
struct Message<U> {
    source: PeerKey,
    tag: u64,
    links: [Link; 2],
    payload: U,
}

/// Number of a message's link in `arrived`.
const ARRIVED: usize = 0;
/// Number of a message's link in `tagged`.
const TAGGED: usize = 1;

impl<P> Linked for Receive<P> {
    fn link(&mut self, _: usize) -> &mut Link {
        &mut self.link
    }
}

impl<U> Linked for Message<U> {
    fn link(&mut self, which: usize) -> &mut Link {
        &mut self.links[which]
    }
}

/// Puts an entry behind those with the same key.
fn push<T: Linked>(
    lists: &mut Lists,
    key: (Option<PeerKey>, u64),
    slab: &mut Slab<T>,
    which: usize,
    id: u64,
) {
    lists.entry(key).or_default().push(slab, which, id);
}

/// Takes an entry out of the list of its key, and an empty list out of the table.
fn unlink<T: Linked>(
    lists: &mut Lists,
    key: (Option<PeerKey>, u64),
    slab: &mut Slab<T>,
    which: usize,
    link: Link,
) {
    if let Entry::Occupied(mut list) = lists.entry(key) {
        list.get_mut().unlink(slab, which, link);
        if list.get().is_empty() {
            list.remove();
        }
    }
}

impl<P, U> TagMatcher<P, U> {
    /// A matcher with both queues empty.
    pub fn new() -> Self {
        Self {
            receives: Slab::new(),
            exact: Lists::default(),
            masked: List::default(),
            messages: Slab::new(),
            arrived: List::default(),
            tagged: Lists::default(),
            next_sequence: 0,
        }
    }

    fn take_receive(&mut self, id: u64) -> Option<Receive<P>> {
        let receive = self.receives.remove(id)?;
        let Pattern { source, tag, ignore } = receive.pattern;
        if ignore == 0 {
            unlink(&mut self.exact, (source, tag), &mut self.receives, 0, receive.link);
        } else {
            self.masked.unlink(&mut self.receives, 0, receive.link);
        }
        Some(receive)
    }

    fn take_message(&mut self, id: u64) -> Option<Unexpected<U>> {
        let Message { source, tag, links, payload } = self.messages.remove(id)?;
        self.arrived.unlink(&mut self.messages, ARRIVED, links[ARRIVED]);
        unlink(&mut self.tagged, (Some(source), tag), &mut self.messages, TAGGED, links[TAGGED]);
        Some(Unexpected { source, tag, payload })
    }

    /// Name and age of the oldest receive of one hash list.
    fn oldest_exact(&self, source: Option<PeerKey>, tag: u64) -> Option<(u64, u64)> {
        let id = self.exact.get(&(source, tag))?.oldest;
        Some((self.receives.get(id)?.sequence, id))
    }

    /// Name and age of the oldest masked receive that accepts the message,
    /// unless it is newer than `bound`.
    fn oldest_masked(&self, source: PeerKey, tag: u64, bound: u64) -> Option<(u64, u64)> {
        let mut id = self.masked.oldest;
        while let Some(receive) = self.receives.get(id) {
            if receive.sequence > bound {
                return None;
            }
            if receive.pattern.accepts(source, tag) {
                return Some((receive.sequence, id));
            }
            id = receive.link.newer;
        }
        None
    }

    /// Name of the oldest message that the pattern accepts.
    fn oldest_message(&self, pattern: &Pattern) -> Option<u64> {
        if pattern.ignore == 0 && pattern.source.is_some() {
            return self.tagged.get(&(pattern.source, pattern.tag)).map(|list| list.oldest);
        }
        self.walk(|message| pattern.accepts(message.source, message.tag))
    }

    fn walk(&self, mut wanted: impl FnMut(&Message<U>) -> bool) -> Option<u64> {
        let mut id = self.arrived.oldest;
        while let Some(message) = self.messages.get(id) {
            if wanted(message) {
                return Some(id);
            }
            id = message.links[ARRIVED].newer;
        }
        None
    }
}

impl<P, U> Default for TagMatcher<P, U> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P, U> Matcher<P, U> for TagMatcher<P, U> {
    fn arrive(&mut self, source: PeerKey, tag: u64) -> Option<P> {
        if self.receives.len() == 0 {
            return None;
        }
        let named = self.oldest_exact(Some(source), tag);
        let any = self.oldest_exact(None, tag);
        let exact = named.into_iter().chain(any).min();
        let bound = exact.map_or(u64::MAX, |(sequence, _)| sequence);
        let (_, id) = self.oldest_masked(source, tag, bound).or(exact)?;
        self.take_receive(id).map(|receive| receive.payload)
    }

    fn keep(&mut self, source: PeerKey, tag: u64, payload: U) -> UnexpectedHandle {
        let id = self.messages.insert(Message { source, tag, links: Default::default(), payload });
        self.arrived.push(&mut self.messages, ARRIVED, id);
        push(&mut self.tagged, (Some(source), tag), &mut self.messages, TAGGED, id);
        UnexpectedHandle(id)
    }

    fn post(&mut self, pattern: Pattern, payload: P) -> Post<P, U> {
        if let Some(message) = self.take(pattern) {
            return Post::Matched(payload, message);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let id = self.receives.insert(Receive { pattern, sequence, link: Link::default(), payload });
        if pattern.ignore == 0 {
            push(&mut self.exact, (pattern.source, pattern.tag), &mut self.receives, 0, id);
        } else {
            self.masked.push(&mut self.receives, 0, id);
        }
        Post::Queued(PostedHandle(id))
    }

    fn peek(&self, pattern: Pattern) -> Option<(UnexpectedHandle, Unexpected<&U>)> {
        let id = self.oldest_message(&pattern)?;
        let Message { source, tag, payload, .. } = self.messages.get(id)?;
        Some((UnexpectedHandle(id), Unexpected { source: *source, tag: *tag, payload }))
    }

    fn take(&mut self, pattern: Pattern) -> Option<Unexpected<U>> {
        let id = self.oldest_message(&pattern)?;
        self.take_message(id)
    }

    fn unexpected_mut(&mut self, handle: UnexpectedHandle) -> Option<&mut U> {
        self.messages.get_mut(handle.0).map(|message| &mut message.payload)
    }

    fn find_unexpected(
        &self,
        source: PeerKey,
        wanted: &mut dyn FnMut(&U) -> bool,
    ) -> Option<UnexpectedHandle> {
        self.walk(|message| message.source == source && wanted(&message.payload)).map(UnexpectedHandle)
    }

    fn cancel_posted(&mut self, handle: PostedHandle) -> Option<P> {
        self.take_receive(handle.0).map(|receive| receive.payload)
    }

    fn remove_unexpected(&mut self, handle: UnexpectedHandle) -> Option<Unexpected<U>> {
        self.take_message(handle.0)
    }

    fn peer_gone(
        &mut self,
        source: PeerKey,
        useless: &mut dyn FnMut(u64, &U) -> bool,
        posted: &mut dyn FnMut(P),
        unexpected: &mut dyn FnMut(U),
    ) {
        let ids = (0..self.receives.slots()).filter_map(|index| self.receives.id_at(index));
        let mut named: Vec<(u64, u64)> = ids
            .filter_map(|id| self.receives.get(id).map(|receive| (receive, id)))
            .filter(|(receive, _)| receive.pattern.source == Some(source))
            .map(|(receive, id)| (receive.sequence, id))
            .collect();
        named.sort_unstable();
        for (_, id) in named {
            if let Some(receive) = self.take_receive(id) {
                posted(receive.payload);
            }
        }
        let mut id = self.arrived.oldest;
        while let Some(message) = self.messages.get(id) {
            let newer = message.links[ARRIVED].newer;
            if message.source == source
                && useless(message.tag, &message.payload)
                && let Some(message) = self.take_message(id)
            {
                unexpected(message.payload);
            }
            id = newer;
        }
    }

    fn posted(&self) -> usize {
        self.receives.len()
    }

    fn unexpected(&self) -> usize {
        self.messages.len()
    }
}

/// Mixes source and tag by two multiplications (the finalizer of splitmix64):
/// enough for tags that differ in any bits. Tags made to collide would slow
/// down the endpoint that accepts their sender, and nothing else.
#[derive(Default)]
struct MixHasher(u64);

impl MixHasher {
    fn mix(&mut self, value: u64) {
        let mut x = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = x ^ (x >> 31);
    }
}

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
}

#[cfg(test)]
#[path = "tag_matcher_tests.rs"]
mod tests;
