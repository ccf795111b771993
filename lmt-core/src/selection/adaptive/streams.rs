//! The streams of one endpoint.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::heard::{AllHeard, class};
use super::meter::Send;
use super::report::StreamReport;
use super::stream::Stream;
use super::ways::{Way, Ways};
use crate::mix_hasher::MixHasher;
use crate::rendezvous::PeerKey;
use crate::selection::{Message, Variant};

/// So many streams are kept. Each takes less than a KiB.
const MOST_STREAMS: usize = 1024;
/// A stream in which nothing was sent for so long makes room for another ...
const IDLE_NS: u64 = 1_000_000_000;
/// ... which is looked for so often at most, where none is.
const LOOK_NS: u64 = 10_000_000;

/// Which stream a message belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    peer: PeerKey,
    /// The power of two below its length.
    class: u8,
    variant: Variant,
    /// The range of lengths that its decision holds for.
    range: u8,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { peer, class, variant, range } = *self;
        let of_peer = u64::from(class) | u64::from(range) << 8 | (variant.index() as u64) << 16;
        state.write_u64(u64::from(peer) << 32 | of_peer);
    }
}

/// A message, for which a way is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub peer: PeerKey,
    pub message: Message,
    pub range: u8,
    pub ways: Ways<'a>,
    /// Changes with what is decided for this peer.
    pub versions: (u32, u32),
    /// Whether this is the first of the two ends, in some order of endpoints.
    pub is_first: bool,
    pub send: Send,
}

struct Kept {
    stream: Stream,
    versions: (u32, u32),
    last_ns: u64,
}

/// The way of messages that need not be asked for.
#[derive(Clone, Copy, Debug)]
struct Known {
    message: Message,
    versions: (u32, u32),
    way: Way,
    /// By which way the peer's last message had come.
    heard: Option<Way>,
    /// For so many messages.
    left: u32,
}

/// All streams of an endpoint.
pub(crate) struct Adaptive {
    is_on: bool,
    streams: HashMap<Key, Kept, BuildHasherDefault<MixHasher>>,
    heard: AllHeard,
    /// For each peer, what need not be asked for.
    known: Vec<Option<Known>>,
    look_again_ns: u64,
}

impl Adaptive {
    pub fn new(is_on: bool) -> Self {
        Self {
            is_on,
            streams: HashMap::default(),
            heard: AllHeard::default(),
            known: Vec::new(),
            look_again_ns: 0,
        }
    }

    /// Whether anything is chosen here at all.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The way of a message of which the stream has said already that it would not
    /// be another. Each call is one message.
    #[inline]
    pub fn known_way(&mut self, peer: PeerKey, message: &Message, versions: (u32, u32)) -> Option<Way> {
        let slot = self.known.get_mut(peer as usize)?;
        let known = slot.as_mut().filter(|known| known.message == *message)?;
        let holds = known.left > 0
            && known.versions == versions
            && known.heard == self.heard.of(peer, message.bytes).way;
        let way = known.way;
        known.left = known.left.saturating_sub(1);
        if !holds {
            *slot = None;
        }
        holds.then_some(way)
    }

    fn unlearn(&mut self, peer: PeerKey) {
        if let Some(known) = self.known.get_mut(peer as usize) {
            *known = None;
        }
    }

    fn keep(&mut self, peer: PeerKey, known: Known) {
        let at = peer as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        self.known[at] = Some(known);
    }

    /// The way of a message; `None` where the policy's order holds.
    pub fn way(&mut self, question: &Question<'_>) -> Option<Way> {
        let now_ns = question.send.now_ns;
        self.unlearn(question.peer);
        let key = key(question.peer, question.message.variant(), question.range, question.send.bytes);
        let is_full = self.streams.len() >= MOST_STREAMS;
        if is_full && !self.streams.contains_key(&key) && !self.make_room(now_ns) {
            return None;
        }
        let fresh = || Kept {
            stream: Stream::new(&question.ways, question.is_first),
            versions: question.versions,
            last_ns: now_ns,
        };
        let kept = match self.streams.entry(key) {
            Entry::Vacant(entry) => entry.insert(fresh()),
            Entry::Occupied(entry) => {
                let kept = entry.into_mut();
                // What works has changed, or what is decided.
                if kept.versions != question.versions {
                    *kept = fresh();
                }
                kept
            }
        };
        kept.last_ns = now_ns;
        let heard = self.heard.of(question.peer, question.send.bytes);
        let way = kept.stream.send(&question.send, &heard);
        let left = kept.stream.rest();
        if left > 0 {
            let Question { message, versions, .. } = *question;
            self.keep(question.peer, Known { message, versions, way, heard: heard.way, left });
        }
        Some(way)
    }

    /// A message of a peer has begun to arrive, by such a way.
    #[inline]
    pub fn hear(&mut self, peer: PeerKey, bytes: u64, way: Way) {
        self.heard.note(peer, bytes, way);
    }

    /// By which way the last message of about this length came.
    #[cfg(test)]
    pub fn last_way(&self, peer: PeerKey, bytes: u64) -> Option<Way> {
        self.heard.of(peer, bytes).way
    }

    /// A message of a stream goes another way than it would.
    pub fn spoil(&mut self, peer: PeerKey, variant: Variant, range: u8, bytes: u64) {
        if let Some(kept) = self.streams.get_mut(&key(peer, variant, range, bytes)) {
            kept.stream.spoil();
        }
    }

    /// Drops a stream that has long been idle. False when there is none.
    fn make_room(&mut self, now_ns: u64) -> bool {
        if now_ns < self.look_again_ns {
            return false;
        }
        let oldest = self.streams.iter().min_by_key(|(_, kept)| kept.last_ns);
        let idle = oldest.filter(|(_, kept)| now_ns.saturating_sub(kept.last_ns) >= IDLE_NS);
        let Some(key) = idle.map(|(key, _)| *key) else {
            self.look_again_ns = now_ns.saturating_add(LOOK_NS);
            return false;
        };
        self.streams.remove(&key).is_some()
    }

    /// Forgets a peer.
    pub fn forget(&mut self, peer: PeerKey) {
        self.streams.retain(|key, _| key.peer != peer);
        self.heard.forget(peer);
        self.unlearn(peer);
    }

    /// What is chosen for such messages, where something is.
    pub fn chosen(&self, peer: PeerKey, variant: Variant, range: u8, bytes: u64) -> Option<Way> {
        self.streams.get(&key(peer, variant, range, bytes)).map(|kept| kept.stream.chosen())
    }

    /// What was found for such messages.
    pub fn report(
        &self,
        peer: PeerKey,
        variant: Variant,
        range: u8,
        bytes: u64,
        name: impl Fn(Way) -> String,
    ) -> Option<StreamReport> {
        self.streams.get(&key(peer, variant, range, bytes)).map(|kept| kept.stream.report(name))
    }

    /// All that was found, the streams of a peer together and by their sizes.
    pub fn reports(&self, name: impl Fn(Way) -> String) -> Vec<(PeerKey, StreamReport)> {
        let mut all: Vec<_> =
            self.streams.iter().map(|(key, kept)| (key.peer, kept.stream.report(&name))).collect();
        all.sort_by(|(one, a), (other, b)| one.cmp(other).then(a.message_bytes.total_cmp(&b.message_bytes)));
        all
    }
}

fn key(peer: PeerKey, variant: Variant, range: u8, bytes: u64) -> Key {
    Key { peer, class: class(bytes), variant, range }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
