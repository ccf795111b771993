//! The matcher that lmt uses.

use super::keys::{Key, Lists, Shape};
use super::list::{Link, Linked, List};
use super::{Matcher, Pattern, PostedHandle, Unexpected, UnexpectedHandle};
use crate::base::slab::Slab;
use crate::vocabulary::identity::PeerKey;

/// Receives stand in a list, in order, and a message walks along it: most find theirs at its
/// begin. Once one has walked far, all are entered in a hash table by what they ask for, until
/// none is left: source (or any), tag and
/// ignored bits. There a message looks for its receive once for each shape of pattern
/// among those that are posted, a shape being whether a source is named and
/// which bits are ignored; sequence numbers decide who is oldest. A program uses
/// a few shapes, so that takes the same time however many receives there are.
///
/// Messages stand in such a list, too. A receive or a probe walks along it; once one has walked
/// far, all are entered in a hash table by its shape, until all have been taken: up to four
/// shapes are found at once, all others walk.
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
    /// All receives, in order.
    queued: List,
    /// The same, by their patterns, if they are entered.
    posted: Lists,
    are_entered: bool,
    /// The shapes of those patterns, each with how many there are of it.
    shapes: Vec<(Shape, usize)>,
    messages: Slab<Message<U>>,
    /// All messages, in order of arrival.
    arrived: List,
    /// The same, by what patterns of the shapes in `indexed` ask for.
    tagged: Lists,
    /// By which shapes all messages are entered in `tagged`.
    indexed: [Option<Shape>; INDEXES],
    next_sequence: u64,
}

/// By so many shapes messages are found at once.
const INDEXES: usize = 4;

/// After so many messages a walk has gone far: entering one costs about as much
/// as walking past some. In tests few, so that all happens there.
const FAR: usize = if cfg!(test) { 2 } else { 16 };

#[derive(Debug)]
struct Receive<P> {
    pattern: Pattern,
    sequence: u64,
    /// Whether it stays when a message matches it.
    stands: bool,
    /// In `queued`, then in `posted`.
    links: [Link; 2],
    payload: P,
}

#[derive(Debug)]
struct Message<U> {
    source: PeerKey,
    tag: u64,
    /// In `arrived`, then in `tagged` by each shape.
    links: [Link; 1 + INDEXES],
    payload: U,
}

/// Numbers of a receive's links in `queued` and in `posted`.
const QUEUED: usize = 0;

const POSTED: usize = 1;

/// Number of a message's link in `arrived`.
const ARRIVED: usize = 0;

/// Numbers of its links in `tagged`, with the shapes for which they are in use.
fn shapes(indexed: [Option<Shape>; INDEXES]) -> impl Iterator<Item = (usize, Shape)> {
    (1 + ARRIVED..).zip(indexed).filter_map(|(which, shape)| Some((which, shape?)))
}

impl<P> Linked for Receive<P> {
    fn link(&mut self, which: usize) -> &mut Link {
        &mut self.links[which]
    }
}

impl<U> Linked for Message<U> {
    fn link(&mut self, which: usize) -> &mut Link {
        &mut self.links[which]
    }
}

impl<P, U> TagMatcher<P, U> {
    /// A matcher with both queues empty.
    pub fn new() -> Self {
        Self {
            receives: Slab::new(),
            queued: List::default(),
            posted: Lists::default(),
            are_entered: false,
            shapes: Vec::new(),
            messages: Slab::new(),
            arrived: List::default(),
            tagged: Lists::default(),
            indexed: [None; INDEXES],
            next_sequence: 0,
        }
    }

    /// Takes a receive out, if it is there.
    #[inline(always)] // The path of a short message.
    fn take_receive(&mut self, id: u64) -> Option<P>
    where
        P: Copy,
    {
        let &Receive { pattern, links, payload, .. } = self.receives.get(id)?;
        self.receives.discard(id);
        self.queued.unlink(&mut self.receives, QUEUED, links[QUEUED]);
        if self.are_entered {
            self.leave(&pattern, links[POSTED]);
        }
        Some(payload)
    }

    /// Takes a receive out of the hash table.
    fn leave(&mut self, pattern: &Pattern, link: Link) {
        self.are_entered = self.receives.len() > 0;
        self.posted.unlink(Key::of(pattern), &mut self.receives, POSTED, link);
        let shape = Shape::of(pattern);
        if let Some(at) = self.shapes.iter().position(|(known, _)| *known == shape) {
            self.shapes[at].1 -= 1;
            if self.shapes[at].1 == 0 {
                self.shapes.swap_remove(at);
            }
        }
    }

    /// Puts a receive behind all others.
    #[inline(always)] // The entry is made where it stays.
    fn enqueue(&mut self, pattern: Pattern, stands: bool, payload: P) -> PostedHandle {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let links = [self.queued.last_link(), Link::default()];
        // Part by part: as a whole its parts, just stored, would be loaded together, and stall
        // (store forwarding).
        let Pattern { source, tag, ignore } = pattern;
        let pattern = Pattern { source, tag, ignore };
        let id = self.receives.insert(Receive { pattern, sequence, stands, links, payload });
        self.queued.append(&mut self.receives, QUEUED, slot_of(id));
        if self.are_entered {
            self.enter(&pattern, slot_of(id));
        }
        PostedHandle(id)
    }

    /// Name of the oldest receive that accepts a message.
    #[inline]
    fn oldest_receive(&mut self, source: PeerKey, tag: u64) -> Option<u64> {
        if self.are_entered {
            return self.oldest_entered(source, tag);
        }
        let (mut slot, mut passed) = (self.queued.oldest(), 0);
        while let Some(receive) = self.receives.at(slot) {
            super::comparisons::note();
            if receive.pattern.accepts(source, tag) {
                break;
            }
            (slot, passed) = (receive.links[QUEUED].newer(), passed + 1);
        }
        if passed > FAR {
            self.enter_all();
        }
        self.receives.id_at(slot)
    }

    /// The same, where all are entered.
    fn oldest_entered(&self, source: PeerKey, tag: u64) -> Option<u64> {
        let of_shape = |(shape, _): &(Shape, usize)| {
            let slot = self.posted.oldest(shape.key(source, tag))?;
            Some((self.receives.at(slot)?.sequence, slot))
        };
        let (_, slot) = self.shapes.iter().filter_map(of_shape).min()?;
        self.receives.id_at(slot)
    }

    /// Enters a receive into the hash table.
    fn enter(&mut self, pattern: &Pattern, slot: u32) {
        self.note_shape(Shape::of(pattern));
        self.posted.push(Key::of(pattern), &mut self.receives, POSTED, slot);
    }

    /// Enters all, in order.
    #[cold]
    fn enter_all(&mut self) {
        self.are_entered = true;
        let mut slot = self.queued.oldest();
        while let Some(receive) = self.receives.at(slot) {
            let (pattern, newer) = (receive.pattern, receive.links[QUEUED].newer());
            self.enter(&pattern, slot);
            slot = newer;
        }
    }

    fn note_shape(&mut self, shape: Shape) {
        match self.shapes.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, count)) => *count += 1,
            None => self.shapes.push((shape, 1)),
        }
    }

    fn take_message(&mut self, id: u64) -> Option<Unexpected<U>> {
        let Message { source, tag, links, payload } = self.messages.remove(id)?;
        self.arrived.unlink(&mut self.messages, ARRIVED, links[ARRIVED]);
        for (which, shape) in shapes(self.indexed) {
            self.tagged.unlink(shape.key(source, tag), &mut self.messages, which, links[which]);
        }
        if self.messages.len() == 0 {
            self.indexed.fill(None);
        }
        Some(Unexpected { source, tag, payload })
    }

    /// Name of the oldest message that the pattern accepts.
    fn oldest_message(&mut self, pattern: &Pattern) -> Option<u64> {
        if self.messages.len() == 0 {
            return None;
        }
        let shape = Shape::of(pattern);
        if self.indexed.contains(&Some(shape)) {
            return self.tagged.oldest(Key::of(pattern)).and_then(|slot| self.messages.id_at(slot));
        }
        let mut passed = 0;
        let found = self.walk(|message| {
            passed += 1;
            pattern.accepts(message.source, message.tag)
        });
        if passed > FAR {
            self.index(shape);
        }
        found
    }

    /// Enters all messages by one more shape, if there is a place for it.
    fn index(&mut self, shape: Shape) {
        let Some(place) = self.indexed.iter().position(Option::is_none) else { return };
        self.indexed[place] = Some(shape);
        let mut slot = self.arrived.oldest();
        while let Some(message) = self.messages.at(slot) {
            let (key, newer) = (shape.key(message.source, message.tag), message.links[ARRIVED].newer());
            self.tagged.push(key, &mut self.messages, 1 + ARRIVED + place, slot);
            slot = newer;
        }
    }

    /// The first message, from the oldest on, for which `wanted`, asked with its
    /// source, is true.
    pub fn find_first(&self, wanted: &mut dyn FnMut(PeerKey, &U) -> bool) -> Option<UnexpectedHandle> {
        self.walk(|message| wanted(message.source, &message.payload)).map(UnexpectedHandle)
    }

    fn walk(&self, mut wanted: impl FnMut(&Message<U>) -> bool) -> Option<u64> {
        let mut slot = self.arrived.oldest();
        while let Some(message) = self.messages.at(slot) {
            super::comparisons::note();
            if wanted(message) {
                return self.messages.id_at(slot);
            }
            slot = message.links[ARRIVED].newer();
        }
        None
    }
}

impl<P, U> Default for TagMatcher<P, U> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Copy, U> Matcher<P, U> for TagMatcher<P, U> {
    #[inline]
    fn arrive(&mut self, source: PeerKey, tag: u64) -> Option<P> {
        let id = self.oldest_receive(source, tag)?;
        let Receive { stands, payload, .. } = self.receives.get(id)?;
        if *stands { Some(*payload) } else { self.take_receive(id) }
    }

    fn keep(&mut self, source: PeerKey, tag: u64, payload: U) -> UnexpectedHandle {
        let id = self.messages.insert(Message { source, tag, links: Default::default(), payload });
        let slot = slot_of(id);
        self.arrived.push(&mut self.messages, ARRIVED, slot);
        for (which, shape) in shapes(self.indexed) {
            self.tagged.push(shape.key(source, tag), &mut self.messages, which, slot);
        }
        UnexpectedHandle(id)
    }

    #[inline]
    fn queue(&mut self, pattern: Pattern, payload: P) -> PostedHandle {
        self.enqueue(pattern, false, payload)
    }

    fn post_standing(&mut self, pattern: Pattern, payload: P) -> PostedHandle {
        self.enqueue(pattern, true, payload)
    }

    fn peek(&mut self, pattern: Pattern) -> Option<(UnexpectedHandle, Unexpected<&U>)> {
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
        self.take_receive(handle.0)
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
        let mut slot = self.queued.oldest();
        while let Some(receive) = self.receives.at(slot) {
            let newer = receive.links[QUEUED].newer();
            if receive.pattern.source == Some(source)
                && let Some(id) = self.receives.id_at(slot)
                && let Some(payload) = self.take_receive(id)
            {
                posted(payload);
            }
            slot = newer;
        }
        let mut slot = self.arrived.oldest();
        while let Some(message) = self.messages.at(slot) {
            let newer = message.links[ARRIVED].newer();
            if message.source == source
                && useless(message.tag, &message.payload)
                && let Some(id) = self.messages.id_at(slot)
                && let Some(message) = self.take_message(id)
            {
                unexpected(message.payload);
            }
            slot = newer;
        }
    }

    fn posted(&self) -> usize {
        self.receives.len()
    }

    fn unexpected(&self) -> usize {
        self.messages.len()
    }
}

/// The slot of a slab's name.
const fn slot_of(id: u64) -> u32 {
    id as u32
}

#[cfg(test)]
#[path = "tag_matcher_tests.rs"]
mod tests;
