//! A message whose sender opens the line, before its receiver is asked: for mechanisms whose
//! receivers need few words to say where the message goes.
//!
//! The line is one of the sender's own. It opens it as one that it has joined, and names it
//! in its announcement. The receiver says in the line where its memory is, and with its
//! first claim the sender may help; so no answer travels. All else is as in lines that the
//! receiver opens ([`super::line`]), but that the line is the sender's again as soon as it
//! knows of the end, since its receiver writes nothing there behind it.

use std::time::Duration;

use super::Sharing;
use super::grain::{Appetite, Grain};
use super::line::{Back, Found, Front, Garbage, Told, View, Words};
use super::memory::LINES;
use super::receiving::{Claims, Pool};
use super::sending::PeerClaims;
use crate::mechanism::{Interval, Met};

/// Stands in the name of each such line.
const MARK: u32 = 1 << 31;
const LINE_SHIFT: u32 = 24;
const GENERATION_MASK: u32 = (1 << LINE_SHIFT) - 1;
const _: () = assert!((LINES - 1) << LINE_SHIFT < MARK);

/// So often a receiver looks, without making way for anybody, whether the sender has copied
/// what it has claimed: for longer than a part takes.
const BUSY_LOOKS: u32 = 20_000;
/// So often it then makes way between two looks, before it sleeps.
const YIELDS: u32 = 1_000;

/// The sender's end of a message for which it has opened a line.
#[derive(Debug)]
pub struct Opened {
    grain: Grain,
    line: u32,
    back: Back,
    /// What is claimed and not copied.
    part: Option<Interval>,
}

impl Opened {
    /// For the announcement: what the receiver [joins](PeerClaims::join); never 0.
    pub const fn name(&self) -> u32 {
        MARK | self.line << LINE_SHIFT | self.back.generation()
    }

    /// Whether there is nothing more to do here: the message is whole, or a packet will
    /// tell how it ends.
    pub const fn is_over(&self) -> bool {
        self.back.is_over()
    }
}

impl Claims {
    /// Opens a line for `interval` of a message to `peer`, to which this was introduced
    /// ([`Self::introduce`]); nothing where no line is free. It is to be
    /// [shut](Self::shut).
    pub fn open(&mut self, peer: &PeerClaims, interval: Interval) -> Option<Opened> {
        let sharing = self.sharing();
        let pool = self.pool.as_mut().filter(|_| peer.is_introduced)?;
        let grain = Grain::new(interval, sharing.receiver_percent, sharing.steal_bytes);
        let (line, generation) = pool.take_line()?;
        let back = Back::of_own(generation, grain.units());
        back.open(pool.lines.words(line)?);
        Some(Opened { grain, line, back, part: None })
    }

    /// Looks whether the receiver has begun, and where its memory is; claims nothing.
    /// Nothing where it has not, has said nothing, or the message has
    /// [ended](Opened::is_over).
    pub fn begun(&self, opened: &mut Opened) -> Option<Told> {
        let words = self.pool.as_ref()?.lines.words(opened.line)?;
        let is_there = opened.back.look(words) == Found::Nothing && opened.back.has_begun();
        if is_there { opened.back.told(words) } else { None }
    }

    /// What the sender of a message that [has begun](Self::begun) is to copy now, of at most
    /// about `max_bytes`: the same part again until [`Self::copied`] has booked it.
    pub fn next_part_of(&self, opened: &mut Opened, max_bytes: u64) -> Option<Interval> {
        if opened.part.is_some() {
            return opened.part;
        }
        let words = self.pool.as_ref()?.lines.words(opened.line)?;
        let (grain, appetite) = (opened.grain, Appetite { max_bytes, alone: false });
        // Before the receiver has begun nothing is known of its memory.
        let want = |view: View| if view.front == 0 { 0 } else { grain.for_sender(view, appetite) };
        let Found::Claimed(units) = opened.back.claim(words, want) else { return None };
        opened.part = Some(grain.bytes(opened.back.back(), opened.back.back() + units));
        opened.part
    }

    /// Books that so many bytes of the part have been copied.
    pub fn copied(&self, opened: &mut Opened, bytes: u64) {
        let Some(part) = &mut opened.part else { return };
        part.start = part.start.saturating_add(bytes);
        if part.start < part.end {
            return;
        }
        opened.part = None;
        if let Some(words) = self.pool.as_ref().and_then(|pool| pool.lines.words(opened.line)) {
            opened.back.retire(words);
        }
    }

    /// Claims nothing any more. Returns whether the receiver has said in the line that the
    /// message is whole; if not, a packet does.
    pub fn leave(&self, opened: &mut Opened) -> bool {
        let words = self.pool.as_ref().and_then(|pool| pool.lines.words(opened.line));
        words.is_some_and(|words| opened.back.leave(words))
    }

    /// Gives the line back, whatever has become of the message: no receiver begins any more.
    pub fn shut(&mut self, mut opened: Opened) {
        self.leave(&mut opened);
        let Some(Pool { lines, free, .. }) = &mut self.pool else { return };
        if let Some(words) = lines.words(opened.line) {
            opened.back.shut(words);
        }
        free.push(opened.line);
    }
}

/// The receiver's end of a message for which its sender has opened a line.
#[derive(Debug)]
pub struct Joined<'p> {
    peer: &'p PeerClaims,
    line: u32,
    front: Front,
    grain: Grain,
    /// What is claimed and not copied.
    part: Option<Interval>,
}

/// What has become of the sender's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// It is there: the message is whole.
    Whole,
    /// The sender is dead or has given its part up: this may be missing.
    Missing(Interval),
}

impl PeerClaims {
    /// Begins to receive all of a message of `interval` for which this peer has opened the
    /// line of this name (untrusted): claims the receiver's first part, and says where its
    /// memory is. Nothing where this end does not know the line, or could not tell the
    /// sender's death: then nothing has begun.
    pub fn join(&self, name: u32, interval: Interval, sharing: Sharing, told: Told) -> Option<Joined<'_>> {
        if name & MARK == 0 || self.process().pidfd().is_none() || !told.is_sayable() {
            return None;
        }
        let (line, generation) = ((name & !MARK) >> LINE_SHIFT, name & GENERATION_MASK);
        let words = self.lines.as_ref()?.words(line)?;
        words.take_over();
        let grain = Grain::new(interval, sharing.receiver_percent, sharing.steal_bytes);
        let front = Front::new(generation, grain.units());
        front.tell(words, told);
        let mut joined = Joined { peer: self, line, front, grain, part: None };
        joined.part = joined.claim().ok()?;
        joined.part.is_some().then_some(joined)
    }
}

impl<'p> Joined<'p> {
    fn words(&self) -> Result<Words<'p>, Garbage> {
        self.peer.lines.as_ref().and_then(|lines| lines.words(self.line)).ok_or(Garbage)
    }

    /// Brings the message in: `copy` copies a part, and returns whether it could; it is
    /// dropped when all is there, before the sender hears of it. If it could not, nothing is
    /// returned, and the sender copies nothing any more.
    pub fn bring_in(mut self, mut copy: impl FnMut(Interval) -> bool) -> Option<Met> {
        let Some(copied_by_sender) = self.copy_all(&mut copy) else {
            self.give_up();
            return None;
        };
        drop(copy);
        Some(Met { copied_by_sender, sender_knows: self.end() })
    }

    /// How many bytes the sender has copied of a message that is whole.
    fn copy_all(&mut self, copy: &mut impl FnMut(Interval) -> bool) -> Option<u64> {
        while let Some(part) = self.part {
            if !copy(part) {
                return None;
            }
            self.part = self.claim().ok()?;
        }
        match self.await_sender().ok()? {
            Awaited::Whole => Some(self.rest().bytes()),
            Awaited::Missing(rest) => copy(rest).then_some(0),
        }
    }

    /// What the receiver is to copy next; nothing when all is claimed.
    fn claim(&mut self) -> Result<Option<Interval>, Garbage> {
        let (grain, first) = (self.grain, self.front.front());
        // A sender that is there says so from the beginning: no other is expected.
        let appetite = Appetite { max_bytes: u64::MAX, alone: true };
        let words = self.words()?;
        let units = self.front.claim(words, |view| grain.for_receiver(view, appetite))?;
        Ok((units > 0).then(|| grain.bytes(first, first + units)))
    }

    /// Waits until the sender has copied what it has claimed, when all is.
    fn await_sender(&mut self) -> Result<Awaited, Garbage> {
        let (words, mut looks) = (self.words()?, 0);
        while !self.front.is_whole(words)? {
            if !self.is_worth_waiting(words, &mut looks) {
                // What it has said before it died, or went, is there.
                let whole = self.front.is_whole(words)?;
                return Ok(if whole { Awaited::Whole } else { Awaited::Missing(self.rest()) });
            }
        }
        Ok(Awaited::Whole)
    }

    /// Waits a little for a sender that is copying, if it is; so often it was looked before.
    fn is_worth_waiting(&self, words: Words<'_>, looks: &mut u32) -> bool {
        *looks = looks.saturating_add(1);
        if *looks < BUSY_LOOKS {
            std::hint::spin_loop();
            return true;
        }
        if self.front.is_quiet(words) || !self.peer.process().is_alive() {
            return false;
        }
        if *looks < BUSY_LOOKS + YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }

    /// What the sender has claimed.
    fn rest(&self) -> Interval {
        self.grain.bytes(self.front.front(), self.grain.units())
    }

    /// Ends a message that is whole. Returns whether the sender learns of it from the line.
    fn end(mut self) -> bool {
        // Who has spoilt the line is told by a packet.
        self.words().is_ok_and(|words| self.front.end(words).unwrap_or(false))
    }

    /// Ends one that is not, and waits until the sender copies nothing any more.
    fn give_up(mut self) {
        let Ok(words) = self.words() else { return };
        self.front.close_there(words);
        let mut looks = 0;
        while !self.front.is_quiet(words) && self.is_worth_waiting(words, &mut looks) {}
    }
}

#[cfg(test)]
#[path = "opened_tests.rs"]
mod tests;
