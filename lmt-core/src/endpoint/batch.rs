//! How many messages one call of progress takes: a single one, where one comes at a time.

/// So many calls in a row that have found a message, with no empty one between, before a call looks
/// for more behind it. Who is answered has an empty poll between two answers, or comes late for one
/// or two.
const LOOKS_BEHIND_AFTER: u32 = 3;

/// The most messages of one call.
pub(super) const MOST: u32 = 32;

/// Whether messages come several at once. Where they do not, a look behind one takes the line of the
/// next away from its sender, who has it ready for writing.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Calls in a row that have found a message.
    in_a_row: u32,
}

impl Batch {
    /// How many messages a call takes that has found one, behind so many empty ones.
    #[inline]
    pub fn begin(&mut self, empty_polls: u32) -> u32 {
        self.in_a_row = if empty_polls > 0 { 0 } else { self.in_a_row.saturating_add(1) };
        if self.in_a_row < LOOKS_BEHIND_AFTER { 1 } else { MOST }
    }

    /// A call that was to take `most` has taken so many.
    #[inline]
    pub const fn end(&mut self, most: u32, taken: u32) {
        if most > 1 && taken == 1 {
            self.in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that find so many messages each, behind so many empty ones: what each takes.
    fn takes(calls: &[(u32, u32)]) -> Vec<u32> {
        let mut batch = Batch::default();
        let call = |&(empty, there): &(u32, u32)| {
            let most = batch.begin(empty);
            let taken = there.min(most);
            batch.end(most, taken);
            taken
        };
        calls.iter().map(call).collect()
    }

    #[test]
    fn one_is_taken_where_one_comes_at_a_time() {
        assert_eq!(takes(&[(1, 9), (7, 8), (0, 9), (1, 9), (0, 9), (0, 9), (1, 9)]), [1; 7]);
    }

    #[test]
    fn several_are_taken_where_calls_find_them_in_a_row() {
        assert_eq!(takes(&[(0, 9), (0, 8), (0, 7), (0, 2), (0, 50), (0, 3)]), [1, 1, 7, 2, 32, 3]);
    }

    #[test]
    fn a_look_behind_that_finds_nothing_is_the_last() {
        assert_eq!(takes(&[(0, 9), (0, 9), (0, 1), (0, 9), (0, 9), (0, 9)]), [1, 1, 1, 1, 1, 9]);
    }
}
