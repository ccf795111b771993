//! The sender's part: a peer's lines, and one message that this end helps with.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::Name;
use super::line::{Found, GENERATIONS, SenderEnd, Words};
use super::memory::Lines;
use super::units::{Expectation, Grain};
use crate::base::process::PeerProcess;
use crate::vocabulary::transfer::Interval;

/// A peer, and its lines.
#[derive(Debug)]
pub(super) struct PeerClaims {
    process: Arc<PeerProcess>,
    lines: Option<Lines>,
    /// Whether it was given this endpoint's lines ...
    pub(super) has_lines: bool,
    /// ... or will be, by their descriptor.
    pub(super) pending_descriptor: Option<OwnedFd>,
}

impl PeerClaims {
    /// A peer whose lines are not known yet: messages to it are not helped with.
    pub fn new(process: Arc<PeerProcess>) -> Self {
        let (lines, pending_descriptor) = (None, None);
        Self { process, lines, has_lines: false, pending_descriptor }
    }

    /// The peer has handed over the descriptor of its lines; untrusted. One of
    /// something else counts as none: then this end does not help.
    pub fn take(&mut self, descriptor: OwnedFd) {
        self.lines = Lines::attach(descriptor);
    }

    /// The descriptor that the peer is to be handed now, if any: for its
    /// [`Self::take`]. It goes beside the packets ([`crate::mechanism::OobMessages::oob_message`]),
    /// so the first messages may come without it, and then without help.
    pub const fn take_pending_descriptor(&mut self) -> Option<OwnedFd> {
        self.pending_descriptor.take()
    }

    /// The words of one of its lines, if this end knows them.
    fn words(&self, line: u32) -> Option<Words<'_>> {
        self.lines.as_ref()?.words(line)
    }

    /// The peer's process.
    pub const fn process(&self) -> &Arc<PeerProcess> {
        &self.process
    }
}

/// What this end copies of a message that goes out, by its line.
#[derive(Debug)]
struct Helping {
    grain: Grain,
    back: SenderEnd,
    /// What this end has claimed and not copied.
    part: Option<Interval>,
}

impl Helping {
    const fn new(grain: Grain, back: SenderEnd) -> Self {
        Self { grain, back, part: None }
    }

    /// What this end is to copy now, of at most about `max_bytes`: the same part again until
    /// [`Self::copied`] has booked all of it. With 0 bytes it only looks.
    fn next_part(&mut self, words: Words<'_>, max_bytes: u64) -> Option<Interval> {
        if self.part.is_some() {
            return self.part;
        }
        let (grain, appetite) = (self.grain, Expectation { max_bytes, alone: false });
        let found = if max_bytes == 0 {
            self.back.look(words)
        } else {
            self.back.claim(words, |view| grain.for_sender(view, appetite))
        };
        let Found::Claimed(units) = found else { return None };
        self.part = Some(grain.bytes(self.back.back(), self.back.back() + units));
        self.part
    }

    /// Books that so many bytes of the part have been copied.
    fn copied(&mut self, words: Option<Words<'_>>, bytes: u64) {
        let Some(part) = &mut self.part else { return };
        part.start = part.start.saturating_add(bytes);
        if part.start < part.end {
            return;
        }
        self.part = None;
        if let Some(words) = words {
            self.back.retire(words);
        }
    }
}

/// One message that goes out, with what this end copies of it.
#[derive(Debug)]
pub(super) struct Help {
    line: Option<(u32, Helping)>,
}

impl Help {
    /// Help for `peer` with `interval`, by the name that its cookie gives; untrusted.
    pub fn new(peer: &PeerClaims, name: u64, interval: Interval, steal_bytes: u64) -> Self {
        let named = Name::unpack(name).filter(|named| named.generation < GENERATIONS);
        // The first claim would wait for it.
        if let Some(words) = named.and_then(|named| peer.words(named.line)) {
            words.prefetch_for_write();
        }
        let line = named.map(|Name { line, generation, receiver_percent }| {
            let grain = Grain::new(interval, receiver_percent, steal_bytes);
            (line, Helping::new(grain, SenderEnd::new(generation, grain.units())))
        });
        Self { line }
    }

    /// Of a message with which this end cannot help.
    pub const fn none() -> Self {
        Self { line: None }
    }

    /// What this end is to copy now, of at most about `max_bytes`: the same part
    /// again until [`Self::copied`] has booked all of it, which only a failure
    /// keeps from being at once. With 0 bytes it only looks.
    ///
    /// While a part is claimed the receiver does not end the message: what its
    /// cookie describes is there.
    pub fn next_part(&mut self, peer: &PeerClaims, max_bytes: u64) -> Option<Interval> {
        let (line, helping) = self.line.as_mut()?;
        match peer.words(*line) {
            Some(words) => helping.next_part(words, max_bytes),
            None => {
                self.line = None;
                None
            }
        }
    }

    /// Books that so many bytes of the part have been copied.
    pub fn copied(&mut self, peer: &PeerClaims, bytes: u64) {
        if let Some((line, helping)) = &mut self.line {
            helping.copied(peer.words(*line), bytes);
        }
    }

    /// Whether there is nothing more to do here: the message is whole, or a
    /// packet will tell how it ends.
    pub const fn is_over(&self) -> bool {
        match &self.line {
            None => true,
            Some((_, helping)) => helping.back.is_over(),
        }
    }

    /// Leaves. Returns whether the receiver has said in the line that the
    /// message is whole.
    pub fn leave(&mut self, peer: &PeerClaims) -> bool {
        let Some((line, mut helping)) = self.line.take() else { return false };
        peer.words(line).is_some_and(|words| helping.back.leave(words))
    }
}
