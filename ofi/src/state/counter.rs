//! A counter of completions.

use super::watch::Watch;
use crate::abi::flags;

/// Counts operations of the endpoints that are bound to it. Its numbers wrap.
#[derive(Debug, Default)]
pub struct Counter {
    /// Operations that ended well.
    pub value: u64,
    /// Operations that failed.
    pub errors: u64,
    /// The endpoints that it counts.
    pub endpoints: Vec<usize>,
    /// Who waits for a change.
    pub watch: Watch,
    /// Its numbers when they were last looked at.
    pub seen: (u64, u64),
}

impl Counter {
    /// Its numbers.
    pub const fn numbers(&self) -> (u64, u64) {
        (self.value, self.errors)
    }

    /// Counts one operation.
    #[inline]
    pub fn count(&mut self, is_good: bool) {
        let number = if is_good { &mut self.value } else { &mut self.errors };
        *number = number.wrapping_add(1);
        self.watch.ring();
    }

    /// Has its user change it, who knows its numbers then.
    pub fn change(&mut self, f: impl FnOnce(&mut Self)) {
        f(self);
        self.seen = self.numbers();
        self.watch.ring();
    }
}

/// Which counter counts which operations of an endpoint.
#[derive(Debug, Default)]
pub struct Counted {
    by_kind: [Option<usize>; KINDS.len()],
    /// Whether anything is counted.
    counts: bool,
}

/// As `fi_ep_bind` names them. What peers do to this process's memory is not among
/// them (`FI_RMA_EVENT`): nothing here hears of it.
const KINDS: [u64; 4] = [flags::SEND, flags::RECV, flags::READ, flags::WRITE];

impl Counted {
    /// Whether the flags name kinds of operations, and nothing else.
    pub fn are_kinds(flags: u64) -> bool {
        flags & !KINDS.iter().fold(0, |all, kind| all | kind) == 0
    }

    /// Has a counter count operations of these kinds.
    pub fn bind(&mut self, kinds: u64, counter: usize) {
        self.counts = true;
        for (place, kind) in self.by_kind.iter_mut().zip(KINDS) {
            if kinds & kind != 0 {
                *place = Some(counter);
            }
        }
    }

    /// The counter of a kind of operations, given by one flag.
    #[inline]
    pub fn of(&self, kind: u64) -> Option<usize> {
        if !self.counts {
            return None;
        }
        KINDS.iter().position(|one| *one == kind).and_then(|at| self.by_kind[at])
    }

    /// All counters, one as often as it counts a kind.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        self.by_kind.iter().copied().flatten()
    }

    /// Whether any of these kinds is counted.
    pub fn any_of(&self, kinds: u64) -> bool {
        KINDS.iter().zip(&self.by_kind).any(|(kind, counter)| kinds & kind != 0 && counter.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_the_kinds_that_it_was_bound_for() {
        let mut counted = Counted::default();
        counted.bind(flags::SEND | flags::WRITE, 3);
        counted.bind(flags::RECV, 4);
        assert_eq!((counted.of(flags::SEND), counted.of(flags::RECV)), (Some(3), Some(4)));
        assert_eq!((counted.of(flags::WRITE), counted.of(flags::READ)), (Some(3), None));
        assert!(counted.any_of(flags::READ | flags::RECV) && !counted.any_of(flags::READ));
        assert!(!Counted::are_kinds(flags::SEND | flags::COMPLETION));
        assert!(!Counted::are_kinds(flags::SEND | flags::REMOTE_WRITE));
    }
}
