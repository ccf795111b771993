//! Both ends of a message copy it: the receiver from the front, the sender from
//! the back, until they meet: the Both model. It must not know by which calls they
//! copy, nor what packets go between them.
//!
//! Each end claims parts before it copies them, in one word that both share
//! ([`line`]). They keep to fixed sides, so that the same core copies the same
//! part of a buffer each time and keeps it in its cache; who is done with its
//! own side first takes half of what is left of the other's, and a receiver to which
//! nobody has come by then (the sender computes, or receives itself) all of it.
//!
//! A mechanism that can copy any part of a message ([`crate::mechanism::BothEnds`]) is
//! kept in a [`ByBothEnds`], which does all the rest. It has one `Claims`, and a
//! `PeerClaims` for each peer. With the first message of a peer that it may help with, it
//! introduces the two, and hands the descriptor over in an out-of-band message: who never
//! receives such messages needs neither memory nor descriptors for them. For a message the
//! receiver makes a `Reception` and puts its name before the mechanism's cookie; the sender
//! makes a `Help` of that name. `Side` is either.
//!
//! A part that is claimed is copied within the same step, so an end that turns
//! to something else never holds one. The message is whole when every claim is
//! retired. A sender that is stopped (SIGSTOP) in the middle of a part delays
//! that: what it may still write nobody else can take. One that dies does not.
//!
//! Lines are shared with all peers of the endpoint, which could spoil each
//! other's messages; a peer that may write this process's memory could do so
//! anyway.

#[cfg(not(loom))]
mod by_both_ends;
// Models of loom are of the line alone, without what uses it.
#[cfg_attr(loom, allow(dead_code))]
mod line;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod receiver;
#[cfg(not(loom))]
mod sender;
#[cfg(not(loom))]
mod side;
#[cfg_attr(loom, allow(dead_code))]
mod units;

#[cfg(not(loom))]
pub use by_both_ends::ByBothEnds;

/// How the two ends share.
#[cfg(not(loom))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sharing {
    /// The receiver's side of a message, in percent, 0 to 100; a page more where both
    /// have a side, since the receiver begins a little earlier.
    receiver_percent: u8,
    /// The least that an end takes of the other's side, in bytes.
    steal_bytes: u64,
}

#[cfg(not(loom))]
impl Default for Sharing {
    fn default() -> Self {
        Self { receiver_percent: 50, steal_bytes: 32 << 10 }
    }
}

/// A line as the receiver's cookie names it.
#[cfg(not(loom))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    line: u32,
    generation: u32,
    receiver_percent: u8,
}

#[cfg(not(loom))]
impl Name {
    /// The name of a message that has no line.
    const NONE: u64 = u64::MAX;

    const fn pack(self) -> u64 {
        (self.line as u64) << 32 | (self.generation as u64) << 8 | self.receiver_percent as u64
    }

    /// Reads a name, which is untrusted: its line may not be there.
    const fn unpack(number: u64) -> Option<Self> {
        if number == Self::NONE {
            return None;
        }
        Some(Self {
            line: (number >> 32) as u32,
            generation: (number >> 8 & 0xff_ffff) as u32,
            receiver_percent: (number & 0xff) as u8,
        })
    }
}

#[cfg(all(test, not(loom)))]
#[path = "both_ends_tests.rs"]
mod tests;
