//! Who may be reading this process's memory.
#![forbid(unsafe_code)]

use crate::vocabulary::identity::PeerKey;

/// Which peers may be reading this process's memory, and how many of its
/// messages.
#[derive(Default)]
pub(super) struct Readers {
    /// For each peer, how many messages it may be reading.
    messages: Vec<u32>,
    /// How many peers there are for which that is not 0.
    pub(super) peers: u32,
}

impl Readers {
    #[inline]
    pub(super) fn others(&self, peer: PeerKey) -> u32 {
        let reads = self.messages.get(peer as usize).is_some_and(|messages| *messages > 0);
        self.peers - u32::from(reads)
    }

    /// One message is no longer read by `before`, and is read by `now`.
    pub(super) fn replace(&mut self, before: Option<PeerKey>, now: Option<PeerKey>) {
        if let Some(messages) = before.and_then(|peer| self.messages.get_mut(peer as usize)) {
            *messages -= 1;
            self.peers -= u32::from(*messages == 0);
        }
        if let Some(peer) = now {
            let index = peer as usize;
            if self.messages.len() <= index {
                self.messages.resize(index + 1, 0);
            }
            self.messages[index] += 1;
            self.peers += u32::from(self.messages[index] == 1);
        }
    }
}
