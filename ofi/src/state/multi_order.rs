//! The order in which the ends of receives into multi-receive buffers are told.

use std::collections::VecDeque;

use lmt::{PeerId, Source};

/// What has ended too early waits here for those that were posted before it.
///
/// Such receives take any message, of anybody or of one peer, so a peer's messages
/// match those of them that are for it in the order in which they were posted: when
/// one has got its message, all before it that this peer's messages could match have
/// been matched, and are on their way. A message may overtake the one before it by
/// arriving in one piece while that one is announced first. libfabric lets receives
/// complete in any order, but Intel MPI keeps a pointer into a copy of the later
/// message, which it has freed by then (IMB-RMA's `Get_local` ended in `FI_ENOKEY`).
///
/// Of a receive from anybody that has not ended nobody knows who has matched it: all
/// messages after it wait.
#[derive(Debug)]
pub struct MultiOrder<T> {
    places: VecDeque<Place<T>>,
    last_ticket: u64,
    /// Ends without a message that wait.
    without_message: usize,
}

#[derive(Debug)]
struct Place<T> {
    ticket: u64,
    buffer: usize,
    source: Source,
    end: Option<End<T>>,
}

/// An end, and whose message it brings, if any.
#[derive(Debug)]
struct End<T> {
    sender: Option<PeerId>,
    end: T,
}

impl<T> Default for MultiOrder<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), last_ticket: 0, without_message: 0 }
    }
}

/// Who waits, as far as the places were looked at.
#[derive(Default)]
struct Waiting {
    everybody: bool,
    senders: Vec<PeerId>,
    /// Buffers of which an end before is not told yet.
    buffers: Vec<usize>,
}

impl Waiting {
    fn holds<T>(&self, place: &Place<T>, end: &End<T>) -> bool {
        let by_sender = end.sender.is_some_and(|one| self.everybody || self.senders.contains(&one));
        by_sender || self.buffers.contains(&place.buffer)
    }
}

impl<T> MultiOrder<T> {
    /// The ticket of a receive that is posted now.
    pub fn enter(&mut self, buffer: usize, source: Source) -> u64 {
        self.last_ticket += 1;
        self.places.push_back(Place { ticket: self.last_ticket, buffer, source, end: None });
        self.last_ticket
    }

    /// The receive with this ticket has ended, with a message of `sender` if it has
    /// got one.
    pub fn end(&mut self, ticket: u64, sender: Option<PeerId>, end: T) {
        let found = self.places.binary_search_by_key(&ticket, |place| place.ticket).ok();
        let place = found.and_then(|at| self.places.get_mut(at));
        if let Some(place @ Place { end: None, .. }) = place {
            place.end = Some(End { sender, end });
            self.without_message += usize::from(sender.is_none());
        }
    }

    /// The next end to be told: of a message once all that could be the sender's
    /// before it are, of a buffer's last once all of that buffer are.
    pub fn next(&mut self) -> Option<T> {
        let End { sender, end } = self.places.remove(self.due()?)?.end?;
        self.without_message -= usize::from(sender.is_none());
        Some(end)
    }

    fn due(&self) -> Option<usize> {
        let mut waiting = Waiting::default();
        for (at, place) in self.places.iter().enumerate() {
            match (&place.end, place.source) {
                (Some(end), _) if !waiting.holds(place, end) => return Some(at),
                (Some(_), _) => waiting.buffers.push(place.buffer),
                (None, Source::Peer(peer)) => waiting.senders.push(peer),
                (None, Source::Any) if self.without_message == 0 => return None,
                (None, Source::Any) => waiting.everybody = true,
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "multi_order_tests.rs"]
mod tests;
