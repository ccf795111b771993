//! The order in which the ends of messages in multi-receive buffers are told.

use std::collections::VecDeque;

use lmt::{PeerId, RequestId};

/// What has ended too early waits here for what was matched before it: a sender's
/// messages are told in the order in which they were matched, and a buffer's last end
/// after all others of the buffer.
///
/// A message may overtake the one before it by arriving in one piece while that one is
/// announced first. libfabric lets receives complete in any order, but Intel MPI keeps
/// a pointer into a copy of the later message, which it has freed by then (IMB-RMA's
/// `Get_local` ended in `FI_ENOKEY`).
#[derive(Debug)]
pub struct MultiOrder<T> {
    places: VecDeque<Place<T>>,
    /// How many of them have ended.
    ended: usize,
    last_ticket: u64,
}

/// What was matched, and its end once it is there.
#[derive(Debug)]
struct Place<T> {
    ticket: u64,
    matched: Matched,
    /// How many of the places before it it waits for.
    waits_for: usize,
    end: Option<T>,
}

/// What an end is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matched {
    /// The buffer's receive.
    pub receive: RequestId,
    /// Who has sent the message; none of an end without one.
    pub sender: Option<PeerId>,
    /// Whether the buffer is given back with it.
    pub is_last: bool,
}

impl Matched {
    fn waits_for(&self, before: &Self) -> bool {
        let is_same_sender = self.sender.is_some() && self.sender == before.sender;
        is_same_sender || (self.is_last && self.receive == before.receive)
    }
}

impl<T> Default for MultiOrder<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), ended: 0, last_ticket: 0 }
    }
}

impl<T> MultiOrder<T> {
    /// The ticket of what is matched now.
    pub fn enter(&mut self, matched: Matched) -> u64 {
        self.last_ticket += 1;
        let before = self.places.iter().filter(|before| matched.waits_for(&before.matched));
        let waits_for = before.count();
        self.places.push_back(Place { ticket: self.last_ticket, matched, waits_for, end: None });
        self.last_ticket
    }

    /// What has this ticket has ended.
    pub fn end(&mut self, ticket: u64, end: T) {
        let found = self.places.binary_search_by_key(&ticket, |place| place.ticket).ok();
        if let Some(place @ Place { end: None, .. }) = found.and_then(|at| self.places.get_mut(at)) {
            place.end = Some(end);
            self.ended += 1;
        }
    }

    /// The next end to be told.
    pub fn next(&mut self) -> Option<(Matched, T)> {
        let at = self.due()?;
        let Place { matched, end, .. } = self.places.remove(at)?;
        for later in self.places.iter_mut().skip(at).filter(|later| later.matched.waits_for(&matched)) {
            later.waits_for -= 1;
        }
        self.ended -= 1;
        Some((matched, end?))
    }

    /// The first that has ended and waits for none.
    fn due(&self) -> Option<usize> {
        let ended = self.places.iter().enumerate().filter(|(_, place)| place.end.is_some());
        // There are no more behind so many.
        let mut ended = ended.take(self.ended);
        ended.find(|(_, place)| place.waits_for == 0).map(|(at, _)| at)
    }
}

#[cfg(test)]
#[path = "multi_order_tests.rs"]
mod tests;
