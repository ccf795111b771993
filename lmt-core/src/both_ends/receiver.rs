//! The receiver's part: the endpoint's lines, and one message that comes in.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::line::{GENERATIONS, Garbage, ReceiverEnd, gone};
use super::memory::{LINES, Lines};
use super::sender::PeerClaims;
use super::units::{Expectation, Grain};
use super::{Name, Sharing};
use crate::base::process::PeerProcess;
use crate::vocabulary::transfer::{Fault, Interval};

/// The lines of one endpoint, for one mechanism: which are free.
#[derive(Debug, Default)]
pub(super) struct Claims {
    sharing: Sharing,
    pool: Option<Pool>,
}

#[derive(Debug)]
struct Pool {
    lines: Lines,
    fd: OwnedFd,
    free: Vec<u32>,
    /// The generation that each line had last.
    generations: Vec<u32>,
    /// Lines of ended messages, from which the senders have to read that; the oldest
    /// first.
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    line: u32,
    sender: Arc<PeerProcess>,
}

/// So often in a row a receiver looks whether the sender has copied what it has claimed:
/// for a tenth of a microsecond, in which a step of its endpoint would look once.
const LOOKS: u32 = 16;

impl Claims {
    /// How the two ends share.
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Sees to it that the peer gets the descriptor of the lines: the first time
    /// it is there to be handed over ([`PeerClaims::take_pending_descriptor`]). To be called
    /// before each message that the peer may help with is received. Where there
    /// is no memory or no descriptor for it, senders cannot help this endpoint.
    pub fn introduce(&mut self, peer: &mut PeerClaims) {
        if !peer.has_lines {
            if self.pool.is_none() {
                self.pool = Pool::new();
            }
            peer.pending_descriptor = self.pool.as_ref().and_then(|pool| pool.fd.try_clone().ok());
            peer.has_lines = true;
        }
    }

    /// Begins to receive `interval` from `peer`, who may help if it was
    /// introduced, a line is free and its death can be told. From here on it may claim
    /// parts, as soon as it knows the name.
    pub fn receive(&mut self, peer: &mut PeerClaims, interval: Interval) -> Reception {
        let pool = self.pool.as_mut().filter(|_| peer.has_lines && peer.process().pidfd().is_some());
        Self::begin(self.sharing, pool, interval)
    }

    /// As [`Self::receive`], of a message with which nobody can help.
    pub fn receive_alone(&mut self, interval: Interval) -> Reception {
        Self::begin(self.sharing, None, interval)
    }

    fn begin(sharing: Sharing, pool: Option<&mut Pool>, interval: Interval) -> Reception {
        let Sharing { receiver_percent, steal_bytes } = sharing;
        let grain = Grain::new(interval, receiver_percent, steal_bytes);
        let line = pool.and_then(|pool| pool.open_line(grain.units()));
        let alone = line.is_none();
        Reception {
            grain,
            receiver_percent,
            line,
            alone,
            front: 0,
            part: None,
            by_sender: 0,
            state: State::Open,
        }
    }

    /// What the receiver is to copy next, of at most about `max_bytes`: the same
    /// part again until [`Reception::copied`] has booked all of it. `None` when
    /// there is nothing that it may copy.
    ///
    /// # Errors
    /// What stands in the line nobody honest has written.
    pub fn next_part(&self, reception: &mut Reception, max_bytes: u64) -> Result<Option<Interval>, Fault> {
        if reception.part.is_none() {
            let appetite = Expectation { max_bytes, alone: reception.alone };
            let first = reception.front;
            let units = reception.claim(self.pool.as_ref(), appetite)?;
            if units > 0 {
                reception.front += units;
                reception.part = Some(reception.grain.bytes(first, first + units));
            }
        }
        Ok(reception.part)
    }

    /// Whether the message is whole.
    ///
    /// # Errors
    /// As [`Self::next_part`].
    pub fn is_whole(&self, reception: &mut Reception) -> Result<bool, Fault> {
        if reception.part.is_some() {
            return Ok(false);
        }
        let units = reception.grain.units();
        if reception.front == units {
            return Ok(true);
        }
        let Some((line, front)) = &mut reception.line else { return Ok(false) };
        let Some(words) = self.pool.as_ref().and_then(|pool| pool.lines.words(*line)) else {
            return Ok(false);
        };
        // Its end is written there next, or another claim.
        words.prefetch_for_write();
        let mut whole = false;
        for _ in 0..LOOKS {
            whole = front.is_whole(words).map_err(|Garbage| garbage_fault())?;
            if whole || !front.is_all_claimed() {
                break;
            }
        }
        if whole {
            reception.by_sender = reception.grain.bytes(reception.front, units).bytes();
        }
        Ok(whole)
    }

    /// Ends a message that is whole. Returns whether the sender learns of it
    /// from the line.
    pub fn end(&self, reception: &mut Reception) -> bool {
        let words = |line| self.pool.as_ref().and_then(|pool| pool.lines.words(line));
        let mut sender_knows = false;
        if let Some((line, front)) = &mut reception.line
            && let Some(words) = words(*line)
        {
            sender_knows = front.end(words).unwrap_or_else(|Garbage| {
                // It is whole all the same; who spoils the line is told by a packet.
                front.close(words);
                false
            });
        }
        reception.state = if sender_knows { State::Ended } else { State::Closed };
        sender_knows
    }

    /// Keeps the sender from claiming more of a message that fails. Returns
    /// whether it copies nothing any more.
    pub fn is_quiescent(&self, peer: &PeerClaims, reception: &mut Reception) -> bool {
        let Some((line, front)) = &mut reception.line else { return true };
        let Some(words) = self.pool.as_ref().and_then(|pool| pool.lines.words(*line)) else { return true };
        if reception.state == State::Open {
            front.close(words);
            reception.state = State::Closed;
        }
        front.is_quiescent(words) || !peer.process().is_alive()
    }

    /// Gives back what a message held, whole or not; waits until the sender
    /// copies nothing any more.
    pub fn finish(&mut self, peer: &PeerClaims, mut reception: Reception) {
        if reception.state != State::Ended {
            wait_until(|| self.is_quiescent(peer, &mut reception));
        }
        let (Some(pool), Some((line, _))) = (&mut self.pool, reception.line) else { return };
        if reception.state == State::Ended {
            pool.keep(Kept { line, sender: Arc::clone(peer.process()) });
        } else {
            pool.free.push(line);
        }
    }
}

/// Waits for a sender to copy a part, which takes microseconds: the first looks are close.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let mut looks = 0_u32;
    while !is_so() {
        looks += 1;
        if looks > 100 {
            std::thread::sleep(Duration::from_micros(50));
        } else {
            std::thread::yield_now();
        }
    }
}

impl Pool {
    fn new() -> Option<Self> {
        let (lines, fd) = Lines::create()?;
        let generations = vec![0; LINES as usize];
        Some(Self {
            lines,
            fd,
            free: (0..LINES).rev().collect(),
            generations,
            kept: VecDeque::with_capacity(LINES as usize),
        })
    }

    /// Opens a free line under its next name, if there is one.
    fn open_line(&mut self, units: u32) -> Option<(u32, ReceiverEnd)> {
        let line = self.free_line()?;
        let generation = self.generations.get_mut(line as usize)?;
        *generation = (*generation + 1) % GENERATIONS;
        let mut front = ReceiverEnd::new(*generation, units);
        front.open(self.lines.words(line)?);
        Some((line, front))
    }

    /// Keeps the line of an ended message, and has the one that is next in the cache by
    /// then: its sender has mostly left it by now, and was the last that wrote to it.
    fn keep(&mut self, kept: Kept) {
        self.kept.push_back(kept);
        let next = self.kept.front().filter(|_| self.kept.len() > 1);
        if let Some(words) = next.and_then(|next| self.lines.words(next.line)) {
            words.prefetch();
        }
    }

    /// The line that was kept first, if its sender has left it and it is not the last one,
    /// which its sender may be about to leave: with few messages at once it is in the
    /// cache. Else a free one; while a sender lingers in the line kept first, those behind
    /// it wait until none is free.
    fn free_line(&mut self) -> Option<u32> {
        if let Some(oldest) = self.kept.front()
            && self.kept.len() > 1
            && self.has_left(oldest.line)
        {
            return self.kept.pop_front().map(|kept| kept.line);
        }
        self.free.pop().or_else(|| self.sweep())
    }

    fn has_left(&self, line: u32) -> bool {
        let generation = self.generations.get(line as usize);
        let words = self.lines.words(line);
        generation.zip(words).is_some_and(|(generation, words)| gone(words, *generation))
    }

    /// Takes back every line whose sender has left or is dead.
    #[cold]
    fn sweep(&mut self) -> Option<u32> {
        let mut at = 0;
        while let Some(kept) = self.kept.get(at) {
            if self.has_left(kept.line) || !kept.sender.is_alive() {
                self.free.push(kept.line);
                self.kept.remove(at);
            } else {
                at += 1;
            }
        }
        self.free.pop()
    }
}

/// Where the line of a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// The sender reads the end there.
    Ended,
    Closed,
}

/// One message that comes in.
#[derive(Debug)]
pub(super) struct Reception {
    grain: Grain,
    receiver_percent: u8,
    line: Option<(u32, ReceiverEnd)>,
    /// Nobody is expected to help.
    alone: bool,
    /// First unit that this end has not claimed.
    front: u32,
    /// What this end has claimed and not copied.
    part: Option<Interval>,
    by_sender: u64,
    state: State,
}

impl Reception {
    /// For the receiver's cookie: what the sender makes its [`super::Help`] of.
    pub fn name(&self) -> u64 {
        let receiver_percent = self.receiver_percent;
        let name = |(line, front): &(u32, ReceiverEnd)| Name {
            line: *line,
            generation: front.generation(),
            receiver_percent,
        };
        self.line.as_ref().map(name).map_or(Name::NONE, Name::pack)
    }

    /// Books that so many bytes of the part have been copied.
    pub fn copied(&mut self, bytes: u64) {
        if let Some(part) = &mut self.part {
            part.start = part.start.saturating_add(bytes);
            if part.start >= part.end {
                self.part = None;
            }
        }
    }

    /// What the sender has copied of a message that is whole, in bytes.
    pub const fn copied_by_sender(&self) -> u64 {
        self.by_sender
    }

    fn claim(&mut self, pool: Option<&Pool>, appetite: Expectation) -> Result<u32, Fault> {
        let grain = self.grain;
        let words = self.line.as_ref().and_then(|(line, _)| pool?.lines.words(*line));
        if let (Some((_, front)), Some(words)) = (&mut self.line, words) {
            return front
                .claim(words, |view| grain.for_receiver(view, appetite))
                .map_err(|Garbage| garbage_fault());
        }
        let view = super::line::View { front: self.front, back: grain.units(), joined: false };
        Ok(grain.for_receiver(view, appetite).min(view.left()))
    }
}

fn garbage_fault() -> Fault {
    Fault::Demote {
        errno: 0,
        for_good: false,
        sentence: "a peer has spoilt the claims on the message; its lmt may be of another version".into(),
    }
}
