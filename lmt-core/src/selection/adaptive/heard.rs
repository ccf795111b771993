//! How messages of each peer have come: a peer that tries another way is to be
//! answered by the same.

use super::ways::Way;
use crate::rendezvous::PeerKey;

/// Classes of lengths, by powers of two.
const CLASSES: usize = u64::BITS as usize;

/// The messages of one peer and one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// By which way the last one came; none has come while this is nothing.
    pub way: Option<Way>,
    /// How many have come; it wraps around.
    pub count: u32,
}

/// What every peer has sent. A peer takes 768 bytes from its first long message on.
#[derive(Debug, Default)]
pub(super) struct AllHeard {
    of_peers: Vec<Option<Box<[Heard; CLASSES]>>>,
}

impl AllHeard {
    /// A message of a peer has begun to arrive.
    #[inline]
    pub fn note(&mut self, peer: PeerKey, bytes: u64, way: Way) {
        let at = peer as usize;
        if at >= self.of_peers.len() {
            self.of_peers.resize_with(at + 1, || None);
        }
        let classes = self.of_peers[at].get_or_insert_with(|| Box::new([Heard::default(); CLASSES]));
        let heard = &mut classes[usize::from(class(bytes))];
        *heard = Heard { way: Some(way), count: heard.count.wrapping_add(1) };
    }

    /// What has come of messages of about this length.
    #[inline]
    pub fn of(&self, peer: PeerKey, bytes: u64) -> Heard {
        let classes = self.of_peers.get(peer as usize).and_then(Option::as_ref);
        classes.map_or_else(Heard::default, |classes| classes[usize::from(class(bytes))])
    }

    pub fn forget(&mut self, peer: PeerKey) {
        if let Some(classes) = self.of_peers.get_mut(peer as usize) {
            *classes = None;
        }
    }
}

/// The power of two below a length.
#[inline]
pub(super) fn class(bytes: u64) -> u8 {
    bytes.checked_ilog2().unwrap_or(0) as u8
}

#[cfg(test)]
#[path = "heard_tests.rs"]
mod tests;
