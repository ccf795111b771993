//! How actions move bytes, a part at a time.

use crate::program::{Action, Place, Span};

use super::super::race::join;
use super::super::serial::combine;
use super::{Failure, World};

/// How far an action has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Moved {
    /// It waits for others.
    Nothing,
    /// A part of it is done.
    Some,
    /// It has ended.
    All,
}

/// Moving bytes.
impl World {
    pub(in super::super) fn read(&self, rank: usize, place: Place, offset: u64, bytes: u64) -> Vec<u8> {
        self.ranks[rank].memory[place as usize][offset as usize..(offset + bytes) as usize].to_vec()
    }

    pub(in super::super) fn write(&mut self, rank: usize, place: Place, offset: u64, bytes: &[u8]) {
        let offset = offset as usize;
        self.ranks[rank].memory[place as usize][offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Moves an action on, or says that it cannot move now. Those that have ended
    /// leave the list.
    pub(super) fn advance(&mut self, number: usize, at: usize) -> Result<bool, Failure> {
        use Action as A;
        let action = self.ranks[number].in_flight[at].action.clone();
        let moved = match action {
            A::Get { .. } | A::Put { .. } | A::Copy { .. } => self.advance_copy(number, at, &action)?,
            A::Publish(point) => self.publish(number, point)?,
            A::Await { rank, point } => self.learn(number, rank, point),
            A::Send { rank, .. } => self.advance_send(number, at, rank),
            A::Receive { rank, into } => self.receive(number, at, rank, into)?,
            A::CombineBefore { from, into } => self.combine(number, from, into, true),
            A::CombineAfter { from, into } => self.combine(number, from, into, false),
            A::Post { from, at } => self.post(number, from, at),
            A::Take { rank, at, into } => self.take(number, rank, at, into),
            A::Hand { from, cell } => self.hand(number, from, cell),
            A::Accept { cell, into } => self.accept(number, cell, into),
        };
        if moved == Moved::All {
            self.ranks[number].in_flight.swap_remove(at);
        }
        Ok(moved != Moved::Nothing)
    }

    /// A copy out of, into or within a rank's memory.
    fn advance_copy(&mut self, number: usize, at: usize, action: &Action) -> Result<Moved, Failure> {
        let here = |span: Span| (number, span.place, span.offset);
        let there = |world: &Self, rank: u32, remote, bytes| {
            let (place, offset) = world.resolve(rank, remote, bytes)?;
            Ok::<_, Failure>((rank as usize, place, offset))
        };
        let (from, into, bytes) = match *action {
            Action::Get { rank, from, into } => {
                (there(self, rank, from, into.bytes)?, here(into), into.bytes)
            }
            Action::Put { rank, from, into } => {
                (here(from), there(self, rank, into, from.bytes)?, from.bytes)
            }
            Action::Copy { from, into } => (here(from), here(into), into.bytes),
            _ => return Ok(Moved::Nothing),
        };
        Ok(self.piece(number, at, from, into, bytes))
    }

    /// That a rank has come to a point, with what it knew there.
    fn learn(&mut self, number: usize, rank: u32, point: u32) -> Moved {
        let points = &self.ranks[rank as usize].points;
        let Some((_, clock)) = points.iter().find(|(come_to, _)| *come_to >= point) else {
            return Moved::Nothing;
        };
        let clock = clock.clone();
        join(&mut self.ranks[number].learned, &clock);
        Moved::All
    }

    fn advance_send(&self, number: usize, at: usize, to: u32) -> Moved {
        let message = &self.mail[&(number as u32, to)][self.ranks[number].in_flight[at].ticket];
        if message.rendezvous && !message.received { Moved::Nothing } else { Moved::All }
    }

    /// Copies some of what is left.
    fn piece(
        &mut self,
        number: usize,
        at: usize,
        (source, from, from_offset): (usize, Place, u64),
        (target, into, into_offset): (usize, Place, u64),
        bytes: u64,
    ) -> Moved {
        let done = self.ranks[number].in_flight[at].done_bytes;
        let left = bytes - done;
        let now = if left == 0 || self.random.coin() { left } else { 1 + self.random.below(left) };
        let moved = self.read(source, from, from_offset + done, now);
        self.write(target, into, into_offset + done, &moved);
        self.ranks[number].in_flight[at].done_bytes += now;
        if done + now == bytes { Moved::All } else { Moved::Some }
    }

    fn publish(&mut self, number: usize, point: u32) -> Result<Moved, Failure> {
        let rank = &mut self.ranks[number];
        if let Some((last, _)) = rank.points.last().filter(|(last, _)| *last >= point) {
            return Err(format!("rank {number} comes to point {point} after {last}: points grow"));
        }
        rank.points.push((point, rank.clock.clone()));
        Ok(Moved::All)
    }

    fn receive(&mut self, number: usize, at: usize, from: u32, into: Span) -> Result<Moved, Failure> {
        let ticket = self.ranks[number].in_flight[at].ticket;
        let mail = self.mail.get_mut(&(from, number as u32)).map(|mail| mail.get_mut(ticket));
        let Some(Some(message)) = mail else { return Ok(Moved::Nothing) };
        message.received = true;
        let (bytes, clock) = (std::mem::take(&mut message.bytes), message.clock.clone());
        if bytes.len() as u64 != into.bytes {
            return Err(format!(
                "rank {from} sends {} bytes where rank {number} receives {}",
                bytes.len(),
                into.bytes
            ));
        }
        join(&mut self.ranks[number].learned, &clock);
        self.write(number, into.place, into.offset, &bytes);
        Ok(Moved::All)
    }

    fn combine(&mut self, number: usize, from: Span, into: Span, before: bool) -> Moved {
        let from = self.read(number, from.place, from.offset, from.bytes);
        let to = self.read(number, into.place, into.offset, into.bytes);
        let result = if before { combine(&from, &to) } else { combine(&to, &from) };
        self.write(number, into.place, into.offset, &result);
        Moved::All
    }
}
