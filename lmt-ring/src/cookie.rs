//! The sender's cookie: whose ring, which one, which slot, which message. Eight
//! bytes, so that an RTS travels in one cache line.

use lmt_core::mechanism::Cookie;

use crate::layout::{MAX_RINGS, SLOTS};

/// What a sender's cookie says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Where {
    /// Whether the ring is of the sender's pool.
    pub(crate) is_senders: bool,
    pub(crate) ring: u32,
    /// `None`: the sender takes one later; look for the tag.
    pub(crate) slot: Option<u8>,
    pub(crate) tag: u64,
    /// Whether the receiver is to copy it out past its caches.
    pub(crate) past_caches: bool,
}

const TAG_BITS: u32 = 40;
const LATER: u8 = 255;
const SLOT_BITS: u32 = 8;
const RING_AT: u32 = TAG_BITS + SLOT_BITS;
const PAST_CACHES_AT: u32 = 62;
const IS_SENDERS_AT: u32 = 63;
/// Tags are below this.
pub(crate) const TAGS: u64 = 1 << TAG_BITS;

impl Where {
    pub(crate) fn cookie(self) -> Cookie {
        let word = self.tag
            | u64::from(self.slot.unwrap_or(LATER)) << TAG_BITS
            | u64::from(self.ring) << RING_AT
            | u64::from(self.past_caches) << PAST_CACHES_AT
            | u64::from(self.is_senders) << IS_SENDERS_AT;
        Cookie::new(&word.to_le_bytes()).unwrap_or(Cookie::empty())
    }

    /// Reads a cookie, which is untrusted.
    pub(crate) fn read(cookie: &Cookie) -> Option<Self> {
        let word = u64::from_le_bytes(cookie.as_bytes().try_into().ok()?);
        let place = Self {
            is_senders: word >> IS_SENDERS_AT == 1,
            ring: ((word % (1 << PAST_CACHES_AT)) >> RING_AT) as u32,
            slot: Some((word >> TAG_BITS & 255) as u8).filter(|slot| *slot != LATER),
            tag: word % TAGS,
            past_caches: word >> PAST_CACHES_AT & 1 == 1,
        };
        (place.slot.is_none_or(|slot| slot < SLOTS) && u64::from(place.ring) < MAX_RINGS).then_some(place)
    }
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
