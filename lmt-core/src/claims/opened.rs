//! A message whose sender opens the line, before its receiver is asked: for mechanisms whose
//! receivers need few words to say where the message goes.
//!
//! The line is one of the sender's own. It opens it as one that it has joined, and names it
//! in its announcement. The receiver says in the line where its memory is, and with its
//! first claim the sender may help; so no answer travels. All else is as in lines that the
//! receiver opens ([`super::line`]), but that the line is the sender's again as soon as it
//! knows of the end, since its receiver writes nothing there behind it.

use super::Sharing;
use super::grain::{Appetite, Grain};
use super::line::{Back, Found, Front, Garbage, Told, View, Words};
use super::memory::LINES;
use super::receiving::{Claims, Pool, wait_until};
use super::sending::{Helping, PeerClaims};
use crate::mechanism::Interval;

/// Stands in the name of each such line.
const MARK: u32 = 1 << 31;
const LINE_SHIFT: u32 = 24;
const GENERATION_MASK: u32 = (1 << LINE_SHIFT) - 1;
const _: () = assert!((LINES - 1) << LINE_SHIFT < MARK);

/// So many lines an endpoint opens at most; the others are for messages that come in.
const MOST_OPENED: u32 = LINES / 2;

/// So often in a row a receiver looks whether the sender has copied what it has claimed: for
/// longer than a part takes. A sender that is not done by then may have been stopped, and is
/// waited for as any transfer waits.
const LOOKS: u32 = 10_000;

/// The sender's end of a message for which it has opened a line.
#[derive(Debug)]
pub struct Opened {
    line: u32,
    helping: Helping,
}

impl Opened {
    /// For the announcement: what the receiver [joins](PeerClaims::join); never 0.
    pub const fn name(&self) -> u32 {
        MARK | self.line << LINE_SHIFT | self.helping.back.generation()
    }

    /// Whether there is nothing more to do here: the message is whole, or a packet will
    /// tell how it ends.
    pub const fn is_over(&self) -> bool {
        self.helping.back.is_over()
    }
}

impl Claims {
    /// Opens a line for `interval` of a message to `peer`, to which this was introduced
    /// ([`Self::introduce`]); nothing where no line is free, or many are open. It is to be
    /// [shut](Self::shut).
    pub fn open(&mut self, peer: &PeerClaims, interval: Interval) -> Option<Opened> {
        let sharing = self.sharing();
        let pool = self.pool.as_mut().filter(|pool| peer.has_lines && pool.opened < MOST_OPENED)?;
        let grain = Grain::new(interval, sharing.receiver_percent, sharing.steal_bytes);
        let (line, generation) = pool.take_line()?;
        let back = Back::of_own(generation, grain.units());
        back.open(pool.lines.words(line)?);
        pool.opened += 1;
        Some(Opened { line, helping: Helping::new(grain, back) })
    }

    fn words(&self, opened: &Opened) -> Option<Words<'_>> {
        self.pool.as_ref()?.lines.words(opened.line)
    }

    /// Looks whether the receiver has begun, and where its memory is; claims nothing.
    /// Nothing where it has not, has said nothing, or the message has
    /// [ended](Opened::is_over).
    pub fn begun(&self, opened: &mut Opened) -> Option<Told> {
        let words = self.words(opened)?;
        let back = &mut opened.helping.back;
        let is_there = back.look(words) == Found::Nothing && back.has_begun();
        if is_there { back.told(words) } else { None }
    }

    /// What the sender of a message that [has begun](Self::begun) is to copy now, of at most
    /// about `max_bytes`: the same part again until [`Self::copied`] has booked it.
    pub fn next_part_of(&self, opened: &mut Opened, max_bytes: u64) -> Option<Interval> {
        let words = self.words(opened)?;
        opened.helping.next_part(words, max_bytes, true)
    }

    /// Books that so many bytes of the part have been copied.
    pub fn copied(&self, opened: &mut Opened, bytes: u64) {
        let words = self.words(opened);
        opened.helping.copied(words, bytes);
    }

    /// Claims nothing any more. Returns whether the receiver has said in the line that the
    /// message is whole; if not, a packet does.
    pub fn leave(&self, opened: &mut Opened) -> bool {
        self.words(opened).is_some_and(|words| opened.helping.back.leave(words))
    }

    /// Gives the line back, whatever has become of the message: no receiver begins any more.
    pub fn shut(&mut self, mut opened: Opened) {
        self.leave(&mut opened);
        let Some(Pool { lines, free, opened: open, .. }) = &mut self.pool else { return };
        *open -= 1;
        if let Some(words) = lines.words(opened.line) {
            opened.helping.back.shut(words);
        }
        free.push(opened.line);
    }
}

/// The receiver's end of a message for which its sender has opened a line.
#[derive(Debug)]
pub struct Joined {
    line: u32,
    front: Front,
    grain: Grain,
    /// Nobody is expected to help.
    alone: bool,
    /// What is claimed and not copied.
    part: Option<Interval>,
    copied_by_sender: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not all is there.
    Coming,
    /// It is; whether the sender learns of it from the line.
    Ended(bool),
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coming {
    /// All of it is there.
    Whole,
    /// The sender is still to copy what it has claimed.
    Waits,
}

/// A message cannot come by its line: a part could not be copied, or the sender has shut the
/// line, or has spoilt it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost;

impl From<Garbage> for Lost {
    fn from(_: Garbage) -> Self {
        Self
    }
}

impl PeerClaims {
    /// The words of the line of this name (untrusted), if this end knows it and could tell the
    /// sender's death; and the generation.
    fn named(&self, name: u32) -> Option<(Words<'_>, u32, u32)> {
        let (line, generation) = ((name & !MARK) >> LINE_SHIFT, name & GENERATION_MASK);
        let may_be = name & MARK != 0 && self.process().pidfd().is_some();
        Some((self.words(line).filter(|_| may_be)?, line, generation))
    }

    /// Asks for the line of this name (untrusted), which is soon to be [joined](Self::join).
    pub fn ask_for(&self, name: u32) {
        if let Some((words, ..)) = self.named(name) {
            words.take_over();
        }
    }

    /// Whether [`Self::join`] will most likely begin.
    pub fn can_join(&self, name: u32, told: Told) -> bool {
        let named = self.named(name).filter(|_| told.is_sayable());
        named.is_some_and(|(words, _, generation)| Front::new(generation, 1).is_open(words))
    }

    /// Begins to receive all of a message of `interval` for which this peer has opened the
    /// line of this name (untrusted): claims the receiver's first part, and says where its
    /// memory is. Nothing where it cannot: then nothing has begun.
    pub fn join(&mut self, name: u32, interval: Interval, sharing: Sharing, told: Told) -> Option<Joined> {
        let alone = self.beliefs.of(interval.bytes()).is_alone();
        let (words, line, generation) = self.named(name).filter(|_| told.is_sayable())?;
        words.take_over();
        let grain = Grain::new(interval, sharing.receiver_percent, sharing.steal_bytes);
        let front = Front::new(generation, grain.units());
        if !front.is_open(words) {
            return None;
        }
        front.tell(words, told);
        let (state, copied_by_sender) = (State::Coming, 0);
        let mut joined = Joined { line, front, grain, alone, part: None, copied_by_sender, state };
        joined.part = joined.claim(words).ok()?;
        joined.part.is_some().then_some(joined)
    }
}

impl Joined {
    fn words<'p>(&self, peer: &'p PeerClaims) -> Result<Words<'p>, Lost> {
        peer.words(self.line).ok_or(Lost)
    }

    /// Brings the message in, as far as it goes without waiting for long: `copy` copies a
    /// part, and returns whether it could. To be called again while it [waits](Coming::Waits).
    ///
    /// # Errors
    /// [`Lost`].
    pub fn bring_in(
        &mut self,
        peer: &PeerClaims,
        mut copy: impl FnMut(Interval) -> bool,
    ) -> Result<Coming, Lost> {
        let words = self.words(peer)?;
        let is_first = self.part.is_some();
        while let Some(part) = self.part {
            if !copy(part) {
                return Err(Lost);
            }
            self.part = self.claim(words)?;
        }
        if self.is_whole(words, if is_first { LOOKS } else { 1 })? {
            self.copied_by_sender = self.rest().bytes();
            return Ok(Coming::Whole);
        }
        if !self.front.is_open(words) {
            return Err(Lost);
        }
        if !self.front.is_quiet(words) && peer.process().is_alive() {
            return Ok(Coming::Waits);
        }
        // What it has said before it died, or gave its part up, is there.
        if self.is_whole(words, 1)? {
            self.copied_by_sender = self.rest().bytes();
        } else if !copy(self.rest()) {
            return Err(Lost);
        }
        Ok(Coming::Whole)
    }

    /// What the receiver is to copy next; nothing when all is claimed.
    fn claim(&mut self, words: Words<'_>) -> Result<Option<Interval>, Garbage> {
        let (grain, first, alone) = (self.grain, self.front.front(), self.alone);
        // A sender that is there says so from the beginning: no other is expected.
        let appetite = Appetite { max_bytes: u64::MAX, alone: true };
        let want = |view: View| if alone { view.left() } else { grain.for_receiver(view, appetite) };
        let units = self.front.claim(words, want)?;
        Ok((units > 0).then(|| grain.bytes(first, first + units)))
    }

    /// Whether the sender has copied what it has claimed, when all is claimed; by so many looks
    /// at most.
    fn is_whole(&mut self, words: Words<'_>, looks: u32) -> Result<bool, Garbage> {
        for look in 0..looks {
            if self.front.is_whole(words)? {
                return Ok(true);
            }
            if look > 0 {
                std::hint::spin_loop();
            }
        }
        Ok(false)
    }

    /// What the sender has claimed.
    fn rest(&self) -> Interval {
        self.grain.bytes(self.front.front(), self.grain.units())
    }

    /// What the sender has copied of a message that is whole, in bytes.
    pub const fn copied_by_sender(&self) -> u64 {
        self.copied_by_sender
    }

    /// Whether the sender learns from the line that the message [has ended](Self::end).
    pub fn sender_knows(&self) -> bool {
        self.state == State::Ended(true)
    }

    /// Ends a message that is whole. Returns whether the sender learns of it from the line.
    ///
    /// # Errors
    /// [`Lost`]: the sender has shut the line, and may have used its memory before all was
    /// read.
    pub fn end(&mut self, peer: &mut PeerClaims) -> Result<bool, Lost> {
        let words = self.words(peer)?;
        let sender_knows = self.front.end(words)?;
        self.state = State::Ended(sender_knows);
        let copied = self.copied_by_sender > 0;
        peer.beliefs.of(self.grain.bytes(0, self.grain.units()).bytes()).learn(copied, copied);
        Ok(sender_knows)
    }

    /// Lets go of a message, ended or not. Of one that has not ended the sender claims nothing
    /// any more, and this waits until it copies nothing.
    pub fn finish(mut self, peer: &PeerClaims) {
        let Ok(words) = self.words(peer) else { return };
        if self.state == State::Coming {
            self.front.close_there(words);
            let front = &self.front;
            wait_until(|| front.is_quiet(words) || !front.is_named(words) || !peer.process().is_alive());
        }
    }
}

#[cfg(test)]
#[path = "opened_tests.rs"]
mod tests;
