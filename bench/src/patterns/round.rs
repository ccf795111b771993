//! One repetition of each pattern.

use std::time::Instant;

use super::Pattern;
use super::arena::Arena;
use super::handling::{Handling, Message};
use super::link::{Incoming, Link, LinkError, Outgoing};

const DATA_TAG: u64 = 1;
const RIGHT_TAG: u64 = 2;
const LEFT_TAG: u64 = 3;
const ANSWER_TAG: u64 = 4;
const SECONDS_TAG: u64 = 5;
const NUMBER_TAG: u64 = 6;

/// What one repetition works with.
#[derive(Debug)]
pub struct Round<'r, 'o, 'i, L, H> {
    /// The ranks.
    pub link: &'r mut L,
    /// Where messages come from.
    pub outgoing: &'r mut Arena<'o>,
    /// Where they go.
    pub incoming: &'r mut Arena<'i>,
    /// What else is done to their bytes.
    pub handling: &'r mut H,
}

impl<L: Link, H: Handling> Round<'_, '_, '_, L, H> {
    /// Does `iterations` of `pattern`, all ranks together.
    ///
    /// Returns the seconds of the slowest rank on rank 0, and this rank's own
    /// elsewhere.
    ///
    /// # Errors
    /// What the link says.
    pub fn run(&mut self, pattern: Pattern, iterations: u64) -> Result<f64, LinkError> {
        self.link.barrier()?;
        let start = Instant::now();
        match pattern {
            Pattern::Latency | Pattern::Pingpong => self.pingpong(iterations)?,
            // They have courses of their own and no rounds.
            Pattern::Limits | Pattern::Overlap | Pattern::Pollution | Pattern::Regions => {}
            Pattern::Pingping => self.trade(self.partner(), self.partner(), iterations)?,
            Pattern::Ring => self.trade(Some(self.neighbour(1)), Some(self.neighbour(-1)), iterations)?,
            Pattern::Pairs => self.trade(self.pair_partner(), self.pair_partner(), iterations)?,
            Pattern::Exchange => self.exchange(iterations)?,
            Pattern::Bw => self.bw(iterations)?,
            Pattern::Bibw => self.bibw(iterations)?,
            Pattern::Alltoall => self.alltoall(iterations)?,
        }
        let seconds = start.elapsed().as_secs_f64();
        slowest(self.link, seconds, pattern)
    }

    /// The other of ranks 0 and 1; none for ranks that only look on.
    fn partner(&self) -> Option<u32> {
        let rank = self.link.rank();
        (rank < 2).then(|| 1 - rank)
    }

    /// The rank so many places further in the ring.
    fn neighbour(&self, places: i32) -> u32 {
        let ranks = self.link.ranks();
        (self.link.rank() + ranks).wrapping_add_signed(places) % ranks
    }

    /// The other of two ranks that follow each other; none for the last of an odd number.
    fn pair_partner(&self) -> Option<u32> {
        let other = self.link.rank() ^ 1;
        (other < self.link.ranks()).then_some(other)
    }

    fn send(&mut self, to: u32, number: u64) -> Result<(), LinkError> {
        let source = self.link.rank();
        let data = self.outgoing.slot();
        self.handling.before_send(data, Message { source, tag: DATA_TAG, number });
        self.link.send(to, DATA_TAG, data)
    }

    fn receive(&mut self, source: u32, number: u64) -> Result<(), LinkError> {
        let data = self.incoming.slot();
        self.handling.before_receive(data);
        self.link.receive(source, DATA_TAG, data)?;
        self.handling.after_receive(data, Message { source, tag: DATA_TAG, number });
        Ok(())
    }

    fn pingpong(&mut self, iterations: u64) -> Result<(), LinkError> {
        match (self.link.rank(), self.partner()) {
            (0, Some(partner)) => {
                for number in 0..iterations {
                    self.send(partner, number)?;
                    self.receive(partner, number)?;
                }
            }
            (_, Some(partner)) => {
                for number in 0..iterations {
                    self.receive(partner, number)?;
                    self.send(partner, number)?;
                }
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// One message to one rank while one comes from another; nothing for ranks that only look on.
    fn trade(&mut self, to: Option<u32>, from: Option<u32>, iterations: u64) -> Result<(), LinkError> {
        let (Some(to), Some(from)) = (to, from) else { return Ok(()) };
        let rank = self.link.rank();
        for number in 0..iterations {
            let (out, into) = (self.outgoing.slot(), self.incoming.slot());
            self.handling.before_send(out, Message { source: rank, tag: DATA_TAG, number });
            self.handling.before_receive(into);
            let sends = [Outgoing { to, tag: DATA_TAG, data: out }];
            self.link.transfer(&sends, &mut [Incoming { from, tag: DATA_TAG, data: into }])?;
            self.handling.after_receive(into, Message { source: from, tag: DATA_TAG, number });
        }
        Ok(())
    }

    fn exchange(&mut self, iterations: u64) -> Result<(), LinkError> {
        let rank = self.link.rank();
        let (left, right) = (self.neighbour(-1), self.neighbour(1));
        for number in 0..iterations {
            let [to_right, to_left] = self.outgoing.pair();
            let [from_left, from_right] = self.incoming.pair();
            self.handling.before_send(to_right, Message { source: rank, tag: RIGHT_TAG, number });
            self.handling.before_send(to_left, Message { source: rank, tag: LEFT_TAG, number });
            self.handling.before_receive(from_left);
            self.handling.before_receive(from_right);
            let sends = [
                Outgoing { to: right, tag: RIGHT_TAG, data: to_right },
                Outgoing { to: left, tag: LEFT_TAG, data: to_left },
            ];
            let mut receives = [
                Incoming { from: left, tag: RIGHT_TAG, data: from_left },
                Incoming { from: right, tag: LEFT_TAG, data: from_right },
            ];
            self.link.transfer(&sends, &mut receives)?;
            let [from_left, from_right] = receives.map(|receive| &*receive.data);
            self.handling.after_receive(from_left, Message { source: left, tag: RIGHT_TAG, number });
            self.handling.after_receive(from_right, Message { source: right, tag: LEFT_TAG, number });
        }
        Ok(())
    }

    /// Each rank begins with its right neighbour and ends with its left one, so
    /// that no rank is everybody's first.
    fn alltoall(&mut self, iterations: u64) -> Result<(), LinkError> {
        let (rank, ranks) = (self.link.rank(), self.link.ranks());
        for number in 0..iterations {
            let group = self.outgoing.group();
            let mut sends = Vec::with_capacity(group.len());
            for (step, data) in (1..ranks).zip(group) {
                self.handling.before_send(data, Message { source: rank, tag: DATA_TAG, number });
                sends.push(Outgoing { to: (rank + step) % ranks, tag: DATA_TAG, data });
            }
            let group = self.incoming.group();
            let mut receives = Vec::with_capacity(group.len());
            for (step, data) in (1..ranks).zip(group) {
                self.handling.before_receive(data);
                receives.push(Incoming { from: (rank + ranks - step) % ranks, tag: DATA_TAG, data });
            }
            self.link.transfer(&sends, &mut receives)?;
            for receive in &receives {
                let message = Message { source: receive.from, tag: DATA_TAG, number };
                self.handling.after_receive(receive.data, message);
            }
        }
        Ok(())
    }

    fn bw(&mut self, iterations: u64) -> Result<(), LinkError> {
        let Some(partner) = self.partner() else { return Ok(()) };
        let mut answer = [0u8; 4];
        for window in 0..iterations {
            if partner == 1 {
                self.window(window, Some(partner), None)?;
                self.link.receive(partner, ANSWER_TAG, &mut answer)?;
            } else {
                self.window(window, None, Some(partner))?;
                self.link.send(partner, ANSWER_TAG, &answer)?;
            }
        }
        Ok(())
    }

    fn bibw(&mut self, iterations: u64) -> Result<(), LinkError> {
        let Some(partner) = self.partner() else { return Ok(()) };
        (0..iterations).try_for_each(|window| self.window(window, Some(partner), Some(partner)))
    }

    /// A window of messages to one rank and from one rank, all at once.
    fn window(&mut self, window: u64, to: Option<u32>, from: Option<u32>) -> Result<(), LinkError> {
        let rank = self.link.rank();
        let mut sends = Vec::new();
        if let Some(to) = to {
            let group = self.outgoing.group();
            sends.reserve(group.len());
            let first = window * group.len() as u64;
            for (number, data) in (first..).zip(group) {
                self.handling.before_send(data, Message { source: rank, tag: DATA_TAG, number });
                sends.push(Outgoing { to, tag: DATA_TAG, data });
            }
        }
        let mut receives = Vec::new();
        if let Some(from) = from {
            let group = self.incoming.group();
            receives.reserve(group.len());
            for data in group {
                self.handling.before_receive(data);
                receives.push(Incoming { from, tag: DATA_TAG, data });
            }
        }
        self.link.transfer(&sends, &mut receives)?;
        let first = window * receives.len() as u64;
        for (number, receive) in (first..).zip(&receives) {
            self.handling
                .after_receive(receive.data, Message { source: receive.from, tag: DATA_TAG, number });
        }
        Ok(())
    }
}

/// The seconds of the slowest rank, on rank 0. Where only rank 0's clock
/// counts (half a round trip) nothing is exchanged.
fn slowest<L: Link>(link: &mut L, seconds: f64, pattern: Pattern) -> Result<f64, LinkError> {
    if !pattern.times_slowest() {
        return Ok(seconds);
    }
    if link.rank() != 0 {
        link.send(0, SECONDS_TAG, &seconds.to_le_bytes())?;
        return Ok(seconds);
    }
    let mut slowest = seconds;
    for other in 1..link.ranks() {
        let mut theirs = [0u8; 8];
        link.receive(other, SECONDS_TAG, &mut theirs)?;
        slowest = slowest.max(f64::from_le_bytes(theirs));
    }
    Ok(slowest)
}

/// Tells every rank a number that rank 0 knows.
///
/// # Errors
/// What the link says.
pub fn share<L: Link>(link: &mut L, number: u64) -> Result<u64, LinkError> {
    if link.rank() == 0 {
        for other in 1..link.ranks() {
            link.send(other, NUMBER_TAG, &number.to_le_bytes())?;
        }
        return Ok(number);
    }
    let mut theirs = [0u8; 8];
    link.receive(0, NUMBER_TAG, &mut theirs)?;
    Ok(u64::from_le_bytes(theirs))
}

/// Adds up a number over all ranks, on rank 0; this rank's own elsewhere.
///
/// # Errors
/// What the link says.
pub fn sum<L: Link>(link: &mut L, number: u64) -> Result<u64, LinkError> {
    if link.rank() != 0 {
        link.send(0, NUMBER_TAG, &number.to_le_bytes())?;
        return Ok(number);
    }
    let mut sum = number;
    for other in 1..link.ranks() {
        let mut theirs = [0u8; 8];
        link.receive(other, NUMBER_TAG, &mut theirs)?;
        sum += u64::from_le_bytes(theirs);
    }
    Ok(sum)
}
