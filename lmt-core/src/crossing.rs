//! Whether a single copy of a message takes longer than two copies through a pipeline, by where
//! its lines are, for mechanisms in which a message is copied once.
//!
//! Where both processes use their buffers between messages, the sender's lines are in
//! its core's cache and those that the receiver has read in its core's. Then single
//! copies take two to three times as long as where nobody looks at the buffers, and a
//! pipeline of two copies is faster up to some hundred KiB: its cells stay, and each
//! line crosses once. Where the application has no time to look at its buffers
//! ([`Plan::left_alone`]) nothing crosses; but they may be in no cache, and then a pipeline
//! whose receiver stores past the caches does not read the lines that it overwrites; of long
//! messages that is so whether they are used or not. Nobody tells the library which it is, but
//! its own copies do: a sender that helps its receiver sees how fast its part goes. While lines
//! cross, or come from memory, it gives messages up ([`Fault::Pass`]), where its plan allows it.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::mechanism::{Fault, Interval, Lines, Model, Plan, Role};
use crate::trials::Trials;

/// The shortest, in bytes; a part of a shorter one says little.
const ABOVE_BYTES: u64 = 32 << 10;
/// The longest that may be passed on, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// From one power of two to the next.
const CLASSES: usize = (MOST_BYTES / ABOVE_BYTES).ilog2() as usize;

/// For which messages the next way is faster, by measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Slow {
    /// Longer than this, in bytes...
    pub above_bytes: u64,
    /// ...and up to this; at most 16 MiB.
    pub most_bytes: u64,
    /// Where the time in the caches is such a part of what a copy took, of one piece of memory
    /// on either side, whose pages are there.
    pub parts: Range<f32>,
    /// What is passed on is so until a part is so many times beyond these, where the times of one
    /// kind of messages spread over them; 1 where they do not.
    pub beyond: f32,
}

/// When messages are passed on.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// Where the application uses its buffers between messages: their lines have crossed, and
    /// have not come from memory, from where the next way is no faster.
    pub in_use: Slow,
    /// The same for longer ones: they are in no cache, and the next way is no slower where they
    /// are used.
    pub long_in_use: Option<Slow>,
    /// Where it leaves them alone: they are in no cache.
    pub left_alone: Option<Slow>,
}

/// So many messages are passed on at most before the next is a trial: of 130 two are copied.
const MOST_PASSES: u16 = 128;
/// Each pause is so many times as long as the one before: a trial takes two messages, which were a
/// tenth of those of short series where pauses only doubled.
const LONGER: u16 = 4;

/// The first messages of a class that is passed on if it comes from memory, which are not timed:
/// theirs may be used for the first time, and then they do, but those behind them do not.
const FIRST_UNTIMED: u8 = 2;

/// So many messages behind one that was copied as fast as in the caches are not timed: to
/// ask the clock twice takes 2 % of the time of one of 64 KiB.
const UNTIMED: u8 = 7;

/// The least of a part that says something of the rest, in bytes.
const LEAST_PART_BYTES: u64 = 12 << 10;

/// Begins to time a part of a message that is timed, if it is the first and like what it
/// is compared with: long, and one piece on either side.
pub fn begin_part(is_timed: &mut bool, part: Interval, near: &Buffer, far_pieces: usize) -> Option<Instant> {
    let is_like = std::mem::take(is_timed)
        && part.bytes() >= LEAST_PART_BYTES
        && near.is_contiguous()
        && far_pieces == 1;
    is_like.then(Instant::now)
}

/// For a receiver that copies whole messages of one peer at once: where their lines were.
/// It times one in some messages while all are at hand.
#[derive(Debug, Default)]
pub struct Looks {
    untimed: u8,
}

impl Looks {
    /// Before the copy.
    pub fn begin(&mut self) -> Option<Instant> {
        if self.untimed > 0 {
            self.untimed -= 1;
            return None;
        }
        Some(Instant::now())
    }

    /// Behind it; `begun` is what [`Self::begin`] gave. It would have taken `in_caches` with
    /// its lines at hand, and they are taken to be elsewhere where that is less than
    /// `slow_below` of what it took.
    pub fn end(
        &mut self,
        begun: Option<Instant>,
        in_caches: impl FnOnce() -> Option<Duration>,
        slow_below: f32,
    ) -> Lines {
        let Some(took) = begun.map(|begun| begun.elapsed()) else { return Lines::AtHand };
        // Where nothing is known, what is safe wherever the lines are.
        let Some(in_caches) = in_caches() else { return Lines::Elsewhere };
        if in_caches.as_secs_f32() < took.as_secs_f32() * slow_below {
            return Lines::Elsewhere;
        }
        self.untimed = UNTIMED;
        Lines::AtHand
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// It had better go the next way.
    PassOn,
    /// It is copied.
    Copy,
    /// It is copied, and the time of the sender's first part is of interest.
    CopyAndTime,
}

/// What is known of messages to one peer.
#[derive(Debug)]
pub struct Crossing {
    limits: Limits,
    in_use: Classes,
    long_in_use: Classes,
    left_alone: Classes,
}

type Classes = [Class; CLASSES];

#[derive(Debug, Default)]
struct Class {
    /// Whether there was a message of it.
    is_begun: bool,
    /// Whether one was timed.
    was_timed: bool,
    trials: Trials,
    /// Messages that are still to be copied untimed.
    untimed: u8,
    /// Whether the last one that was timed was not slow though others had been: a second one in
    /// a row ends that.
    was_fast: bool,
}

impl Class {
    /// What is taken for granted of messages of one class before there were any. Those of a shorter
    /// class, of which the nearest counts that was timed, or of the next longer one: if they are
    /// passed on, these are too. What comes from memory since it is much longer says nothing.
    /// Otherwise the `first` ones are not timed.
    fn like_a_shorter(class: usize, classes: &Classes, first: u8) -> Self {
        let shorter = classes[..class].iter().rev();
        let nearest = shorter.chain(classes.get(class + 1)).find(|other| other.was_timed);
        let trials = nearest.map_or_else(Trials::default, |other| other.trials.begin_alike());
        let untimed = if trials.is_good() { first } else { 0 };
        Self { is_begun: true, was_timed: false, trials, untimed, was_fast: false }
    }
}

impl Crossing {
    /// Nothing is known yet.
    pub fn new(limits: Limits) -> Self {
        let (in_use, long_in_use, left_alone) = Default::default();
        Self { limits, in_use, long_in_use, left_alone }
    }

    fn class(&mut self, message_bytes: u64, left_alone: bool) -> Option<(&Slow, &mut Class)> {
        let limits = &self.limits;
        let (slow, classes, first) = if left_alone {
            (limits.left_alone.as_ref()?, &mut self.left_alone, FIRST_UNTIMED)
        } else if message_bytes > limits.in_use.most_bytes {
            (limits.long_in_use.as_ref()?, &mut self.long_in_use, FIRST_UNTIMED)
        } else {
            // What comes from memory is no reason to pass on.
            (&limits.in_use, &mut self.in_use, 0)
        };
        if message_bytes <= slow.above_bytes.max(ABOVE_BYTES) || message_bytes > slow.most_bytes {
            return None;
        }
        let class = ((message_bytes - 1).ilog2() - ABOVE_BYTES.ilog2()) as usize;
        if !classes.get(class)?.is_begun {
            classes[class] = Class::like_a_shorter(class, classes, first);
        }
        Some((slow, &mut classes[class]))
    }

    /// For [`crate::mechanism::Lmt::prepare`], where this end `passes_on` messages at all:
    /// whether the time of this end's first part is of interest ([`begin_part`]).
    ///
    /// # Errors
    /// [`Fault::Pass`].
    pub fn prepare(&mut self, plan: &Plan, passes_on: bool, message_bytes: u64) -> Result<bool, Fault> {
        let helps = (plan.model, plan.role) == (Model::Both, Role::Sender);
        if !helps || !plan.may_pass_on || !passes_on {
            return Ok(false);
        }
        match self.begin(message_bytes, plan.left_alone) {
            Passing::PassOn => Err(Fault::Pass),
            begin => Ok(begin == Passing::CopyAndTime),
        }
    }

    /// For [`crate::mechanism::Lmt::open`], of a whole message. One that is to be passed on is
    /// [prepared](Self::prepare) next, and counted there.
    pub fn open(&mut self, plan: &Plan) -> Passing {
        let bytes = plan.interval.bytes();
        if !plan.may_pass_on {
            return Passing::Copy;
        }
        match self.class(bytes, plan.left_alone) {
            Some((_, class)) if !class.trials.is_due() => Passing::PassOn,
            _ => self.begin(bytes, plan.left_alone),
        }
    }

    /// What becomes of the next message of so many bytes.
    fn begin(&mut self, message_bytes: u64, left_alone: bool) -> Passing {
        let Some((_, class)) = self.class(message_bytes, left_alone) else { return Passing::Copy };
        if !class.trials.is_due() {
            class.trials.pass();
            return Passing::PassOn;
        }
        if class.trials.take_back() {
            return Passing::Copy;
        }
        if class.untimed > 0 {
            class.untimed -= 1;
            return Passing::Copy;
        }
        Passing::CopyAndTime
    }

    /// Notes how long the copy of a part of a message took, one for each message at
    /// most, and how long it would have taken `in_caches`.
    pub fn note(&mut self, message_bytes: u64, left_alone: bool, took: Duration, in_caches: Duration) {
        let Some((slow, class)) = self.class(message_bytes, left_alone) else { return };
        if !class.trials.is_due() {
            return;
        }
        class.was_timed = true;
        let ratio = in_caches.as_secs_f32() / took.as_secs_f32().max(f32::MIN_POSITIVE);
        let beyond = if class.trials.is_good() { 1.0 } else { slow.beyond };
        if (slow.parts.start / beyond..slow.parts.end * beyond).contains(&ratio) {
            class.was_fast = false;
            class.trials.fail(LONGER, MOST_PASSES);
        } else if class.trials.is_good() || std::mem::take(&mut class.was_fast) {
            class.trials.succeed();
            class.untimed = UNTIMED;
        } else {
            // An interrupt, or the first one after others had the cores, may be anything.
            class.was_fast = true;
        }
    }
}

#[cfg(test)]
#[path = "crossing_tests.rs"]
mod tests;
