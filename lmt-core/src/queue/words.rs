//! What the two kinds of shared words say: a slot's claim, and a line's
//! publication. Pure arithmetic; every value of a word decodes to something,
//! for a peer may have written anything.

/// A lap is how often the ring was gone round before a position: 40 bits, so
/// that with 64 slots at ten million messages a second it comes round after
/// 81 days, and then compares right all the same (see [`laps_ahead`]).
const LAP_BITS: u32 = 40;

const LAP_MASK: u64 = (1 << LAP_BITS) - 1;

const LAP_SHIFT: u32 = 64 - LAP_BITS;

const CLAIMED: u64 = 1;

const STUCK: u64 = 2;

const OWNER_SHIFT: u32 = 8;

/// The lap of position `position` in a ring of `slots` slots, a power of two.
#[inline]
pub(crate) const fn lap_of(position: u64, slots: usize) -> u64 {
    (position >> slots.trailing_zeros()) & LAP_MASK
}

/// By how many laps `a` is ahead of `b`; negative when behind. Serial number
/// arithmetic (RFC 1982): right while they are less than 2^39 apart.
#[inline]
pub(crate) const fn laps_ahead(a: u64, b: u64) -> i64 {
    (a.wrapping_sub(b) << LAP_SHIFT) as i64 >> LAP_SHIFT
}

/// A slot's claim word: the lap it is at in the upper 40 bits, the owner in
/// bits 8 to 23, claimed in bit 0, stuck in bit 1. Free at lap 0 is zero.
///
/// Senders move it from free to claimed, the receiver everything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim(u64);

impl Claim {
    #[inline]
    pub(crate) const fn free(lap: u64) -> Self {
        Self((lap & LAP_MASK) << LAP_SHIFT)
    }

    #[inline]
    pub(crate) const fn claimed(lap: u64, owner: u16) -> Self {
        Self(Self::free(lap).0 | (owner as u64) << OWNER_SHIFT | CLAIMED)
    }

    #[inline]
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn lap(self) -> u64 {
        self.0 >> LAP_SHIFT
    }

    pub(crate) const fn owner(self) -> u16 {
        (self.0 >> OWNER_SHIFT) as u16
    }

    #[inline]
    pub(crate) const fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    #[inline]
    pub(crate) const fn is_stuck(self) -> bool {
        self.0 & (CLAIMED | STUCK) == CLAIMED | STUCK
    }

    /// The same claim, passed over by the receiver.
    pub(crate) const fn stuck(self) -> Self {
        Self(self.0 | STUCK)
    }

    /// Claimed at just this lap, and not passed over.
    pub(crate) const fn is_pending_at(self, lap: u64) -> bool {
        self.0 & (CLAIMED | STUCK) == CLAIMED && self.lap() == lap & LAP_MASK
    }
}

/// A line's publish word: lap + 1 in the upper 40 bits, so that neither zeroed
/// memory nor an earlier lap's message looks published, the sender in bits 8
/// to 23, the kind in bits 0 to 7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Publish(u64);

impl Publish {
    #[inline]
    pub(crate) const fn new(lap: u64, owner: u16, kind: u8) -> Self {
        Self(Claim::free(lap.wrapping_add(1)).0 | (owner as u64) << OWNER_SHIFT | kind as u64)
    }

    #[inline]
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn owner(self) -> u16 {
        (self.0 >> OWNER_SHIFT) as u16
    }

    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) const fn kind(self) -> u8 {
        self.0 as u8
    }

    /// Whether the word publishes the message of lap `lap`.
    #[inline]
    pub(crate) const fn is_at(self, lap: u64) -> bool {
        self.stamp() == lap.wrapping_add(1) & LAP_MASK
    }

    /// Its upper bits, which tell that.
    #[inline]
    pub(crate) const fn stamp(self) -> u64 {
        self.0 >> LAP_SHIFT
    }
}

const _: () = assert!(Claim::free(0).raw() == 0);

const _: () = assert!(!Publish::from_raw(0).is_at(0));

/// The word of the last bytes, fewer than 8.
#[inline]
pub(crate) fn last_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
