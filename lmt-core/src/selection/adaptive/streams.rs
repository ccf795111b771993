//! The streams of one endpoint.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::meter::Send;
use super::report::StreamReport;
use super::stream::Stream;
use super::ways::{Way, Ways};
use crate::rendezvous::PeerKey;
use crate::selection::Variant;

/// So many streams are kept. Each takes less than a KiB.
const MOST_STREAMS: usize = 1024;
/// A stream in which nothing was sent for so long makes room for another ...
const IDLE_NS: u64 = 1_000_000_000;
/// ... which is looked for so often at most, where none is.
const LOOK_NS: u64 = 10_000_000;

/// Which stream a message belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    peer: PeerKey,
    /// The power of two below its length.
    class: u8,
    variant: Variant,
    /// The range of lengths that its decision holds for.
    range: u8,
}

/// A message, for which a way is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub peer: PeerKey,
    pub variant: Variant,
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

/// All streams of an endpoint.
pub(crate) struct Adaptive {
    is_on: bool,
    streams: HashMap<Key, Kept>,
    look_again_ns: u64,
}

impl Adaptive {
    pub fn new(is_on: bool) -> Self {
        Self { is_on, streams: HashMap::new(), look_again_ns: 0 }
    }

    /// Whether anything is chosen here at all.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The way of a message; `None` where the policy's order holds.
    pub fn way(&mut self, question: &Question<'_>) -> Option<Way> {
        let now_ns = question.send.now_ns;
        let key = key(question.peer, question.variant, question.range, question.send.bytes);
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
        Some(kept.stream.send(&question.send))
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
    let class = bytes.checked_ilog2().unwrap_or(0) as u8;
    Key { peer, class, variant, range }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
