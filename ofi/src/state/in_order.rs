//! Ends that are told in the order in which their operations were begun.

use std::collections::VecDeque;

/// What has ended too early waits here for those that were begun before it.
///
/// For receives that any message matches: they match in the order in which they
/// were posted, so all that one waits for here are on their way. A message may
/// overtake the one before it by arriving in one piece while that one is announced
/// first.
#[derive(Debug)]
pub struct InOrder<T> {
    /// The ticket of the first in the queue.
    first: u64,
    /// The ends that are there, by ticket.
    ends: VecDeque<Option<T>>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { first: 0, ends: VecDeque::new() }
    }
}

impl<T> InOrder<T> {
    /// The ticket of an operation that is begun now.
    pub fn enter(&mut self) -> u64 {
        self.ends.push_back(None);
        self.first + (self.ends.len() - 1) as u64
    }

    /// The operation with this ticket has ended, or was not begun after all.
    pub fn end(&mut self, ticket: u64, end: T) {
        let place = ticket.checked_sub(self.first).and_then(|at| self.ends.get_mut(at as usize));
        if let Some(place) = place {
            *place = Some(end);
        }
    }

    /// Whether there is one to be told.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.ends.front().is_some_and(Option::is_some)
    }

    /// The next end to be told.
    pub fn next(&mut self) -> Option<T> {
        self.ends.front()?.as_ref()?;
        self.first += 1;
        self.ends.pop_front().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_wait_for_those_before_them() {
        let mut order = InOrder::default();
        let tickets: Vec<u64> = (0..4).map(|_| order.enter()).collect();
        order.end(tickets[2], 'c');
        order.end(tickets[1], 'b');
        assert_eq!(order.next(), None);
        order.end(tickets[0], 'a');
        assert_eq!(
            [order.next(), order.next(), order.next(), order.next()],
            [Some('a'), Some('b'), Some('c'), None]
        );
        order.end(tickets[0], 'x');
        order.end(99, 'x');
        let last = order.enter();
        order.end(last, 'e');
        assert_eq!(order.next(), None, "the fourth has not ended");
        order.end(tickets[3], 'd');
        assert_eq!((order.next(), order.next(), order.next()), (Some('d'), Some('e'), None));
    }
}
