//! Which peers receive into shared buffers: what they say of the messages that
//! they have matched, so that a way that needs such a buffer is not proposed in
//! vain.

use crate::vocabulary::identity::PeerKey;

/// What one peer has said.
#[derive(Clone, Copy, Debug)]
struct SharedReceiveEstimate {
    /// So many messages in a row came into shared buffers.
    streak: u8,
    /// So many are believed; twice as many after each mistake.
    needed: u8,
}

const MAX_NEEDED: u8 = 64;

impl SharedReceiveEstimate {
    const NONE: Self = Self { streak: 0, needed: 1 };

    const fn is_expected_shared(self) -> bool {
        self.streak >= self.needed
    }

    fn learn(&mut self, shared: bool) {
        if shared {
            self.streak = self.streak.saturating_add(1);
            return;
        }
        if self.is_expected_shared() {
            self.needed = (self.needed * 2).min(MAX_NEEDED);
        }
        self.streak = 0;
    }
}

/// What all peers have said. Empty where none has said that it does.
#[derive(Debug, Default)]
pub(super) struct SharedReceivers(Vec<SharedReceiveEstimate>);

impl SharedReceivers {
    /// What a peer says of its end of a message.
    #[inline]
    pub fn learn(&mut self, peer: PeerKey, shared: bool) {
        if shared || !self.0.is_empty() {
            self.learn_of(peer, shared);
        }
    }

    fn learn_of(&mut self, peer: PeerKey, shared: bool) {
        let index = peer as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, SharedReceiveEstimate::NONE);
        }
        self.0[index].learn(shared);
    }

    /// Whether the peer's next receive is taken to be into a shared buffer.
    #[inline]
    pub fn is_expected_shared(&self, peer: PeerKey) -> bool {
        self.0.get(peer as usize).is_some_and(|belief| belief.is_expected_shared())
    }

    pub fn forget(&mut self, peer: PeerKey) {
        if let Some(belief) = self.0.get_mut(peer as usize) {
            *belief = SharedReceiveEstimate::NONE;
        }
    }
}

#[cfg(test)]
#[path = "shared_receivers_tests.rs"]
mod tests;
