//! The sender's part: a peer's lines, and one message that this end helps with.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::Name;
use super::grain::{Appetite, Grain};
use super::line::{Back, Found, GENERATIONS};
use super::memory::Lines;
use crate::belief::Beliefs;
use crate::mechanism::{Hello, Interval};
use crate::process::PeerProcess;

/// A peer: its lines, and how it has helped.
#[derive(Debug)]
pub struct PeerClaims {
    process: Arc<PeerProcess>,
    pub(super) lines: Option<Lines>,
    pub(super) beliefs: Beliefs,
    /// Whether it was given this endpoint's lines ...
    pub(super) is_introduced: bool,
    /// (which there may have been no descriptor for)
    pub(super) has_lines: bool,
    /// ... or will be, by their descriptor.
    pub(super) due: Option<OwnedFd>,
}

impl PeerClaims {
    /// A peer whose lines are not known yet: messages to it are not helped with.
    pub fn new(process: Arc<PeerProcess>) -> Self {
        let (lines, due) = (None, None);
        Self { process, lines, beliefs: Beliefs::new(), is_introduced: false, has_lines: false, due }
    }

    /// The peer has handed over the descriptor of its lines; untrusted. One of
    /// something else counts as none: then this end does not help.
    pub fn take(&mut self, descriptor: OwnedFd) {
        self.lines = Lines::attach(descriptor);
    }

    /// The descriptor that the peer is to be handed now, if any: for its
    /// [`Self::take`]. It goes beside the packets ([`crate::mechanism::Lmt::parcel`]),
    /// so the first messages may come without it, and then without help.
    pub const fn to_hand_over(&mut self) -> Option<OwnedFd> {
        self.due.take()
    }

    /// [`Self::to_hand_over`] as a parcel, for mechanisms that have no others.
    pub fn parcel(&mut self) -> Option<Hello> {
        let descriptor = self.to_hand_over()?;
        Some(Hello { bytes: Vec::new(), descriptors: vec![descriptor] })
    }

    /// Takes what [`Self::parcel`] has packed; untrusted.
    pub fn take_parcel(&mut self, mut parcel: Hello) {
        if let Some(descriptor) = parcel.descriptors.pop() {
            self.take(descriptor);
        }
    }

    /// The peer's process.
    pub const fn process(&self) -> &Arc<PeerProcess> {
        &self.process
    }
}

/// One message that goes out, with what this end copies of it.
#[derive(Debug)]
pub struct Help {
    grain: Grain,
    line: Option<(u32, Back)>,
    /// What this end has claimed and not copied.
    part: Option<Interval>,
}

impl Help {
    /// Help for `peer` with `interval`, by the name that its cookie gives; untrusted.
    pub fn new(peer: &PeerClaims, name: u64, interval: Interval, steal_bytes: u64) -> Self {
        let named = Name::unpack(name).filter(|named| named.generation < GENERATIONS);
        let percent = named.map_or(100, |named| named.receiver_percent);
        let grain = Grain::new(interval, percent, steal_bytes);
        let line = named.map(|named| (named.line, Back::new(named.generation, grain.units())));
        // The first claim would wait for it.
        if let Some(words) = named.and_then(|named| peer.lines.as_ref()?.words(named.line)) {
            words.take_over();
        }
        Self { grain, line, part: None }
    }

    /// Of a message with which this end cannot help.
    pub fn none(interval: Interval) -> Self {
        Self { grain: Grain::new(interval, 100, 0), line: None, part: None }
    }

    /// What this end is to copy now, of at most about `max_bytes`: the same part
    /// again until [`Self::copied`] has booked all of it, which only a failure
    /// keeps from being at once. With 0 bytes it only looks.
    ///
    /// While a part is claimed the receiver does not end the message: what its
    /// cookie describes is there.
    pub fn next_part(&mut self, peer: &PeerClaims, max_bytes: u64) -> Option<Interval> {
        if self.part.is_some() {
            return self.part;
        }
        let grain = self.grain;
        let (line, back) = self.line.as_mut()?;
        let Some(words) = peer.lines.as_ref().and_then(|lines| lines.words(*line)) else {
            self.line = None;
            return None;
        };
        let appetite = Appetite { max_bytes, alone: false };
        let found = if max_bytes == 0 {
            back.look(words)
        } else {
            back.claim(words, |view| grain.for_sender(view, appetite))
        };
        let Found::Claimed(units) = found else { return None };
        self.part = Some(grain.bytes(back.back(), back.back() + units));
        self.part
    }

    /// Books that so many bytes of the part have been copied.
    pub fn copied(&mut self, peer: &PeerClaims, bytes: u64) {
        let Some(part) = &mut self.part else { return };
        part.start = part.start.saturating_add(bytes);
        if part.start < part.end {
            return;
        }
        self.part = None;
        if let Some((line, back)) = &mut self.line
            && let Some(words) = peer.lines.as_ref().and_then(|lines| lines.words(*line))
        {
            back.retire(words);
        }
    }

    /// Whether there is nothing more to do here: the message is whole, or a
    /// packet will tell how it ends.
    pub const fn is_over(&self) -> bool {
        match &self.line {
            None => true,
            Some((_, back)) => back.is_over(),
        }
    }

    /// Leaves. Returns whether the receiver has said in the line that the
    /// message is whole.
    pub fn leave(&mut self, peer: &PeerClaims) -> bool {
        let Some((line, mut back)) = self.line.take() else { return false };
        let words = peer.lines.as_ref().and_then(|lines| lines.words(line));
        words.is_some_and(|words| back.leave(words))
    }
}
