//! Ranges of lengths, for every value that DMAmin may have.

use crate::rules::Bound;

/// Lengths, both ends included; wide enough for the end behind the last.
pub(super) type Lengths = (u128, u128);

/// The values of DMAmin for which ranges with these bounds have to be compared,
/// so that what holds for them holds for all from 1 on: `given`, if that is
/// what the file sets it to.
///
/// A range holds the lengths between its bounds, so whether ranges are empty or
/// have lengths in common depends on the order of the bounds alone. Each
/// neighbourhood of the sizes that are named, they themselves, and the two ends
/// are therefore all places that DMAmin can have among them.
pub(super) fn dma_mins(given: Option<u64>, bounds: impl IntoIterator<Item = Option<Bound>>) -> Vec<u64> {
    if let Some(given) = given {
        return vec![given];
    }
    let mut values = vec![1];
    let mut is_asked_for = false;
    for bound in bounds.into_iter().flatten() {
        match bound {
            Bound::Bytes(bytes) => values.extend([bytes.saturating_sub(1), bytes, bytes.saturating_add(1)]),
            Bound::DmaMin => is_asked_for = true,
        }
    }
    if !is_asked_for {
        return vec![1];
    }
    values.push(u64::MAX);
    values.retain(|bytes| *bytes > 0);
    values.sort_unstable();
    values.dedup();
    values
}

/// The lengths between two bounds for one value of DMAmin; `None` when there
/// are none.
pub(super) fn lengths(above: Option<Bound>, up_to: Option<Bound>, dma_min: u64) -> Option<Lengths> {
    let bytes = |bound: Bound| match bound {
        Bound::Bytes(bytes) => u128::from(bytes),
        Bound::DmaMin => u128::from(dma_min),
    };
    let first = above.map_or(0, |above| bytes(above) + 1);
    let last = up_to.map_or(u128::from(u64::MAX), bytes);
    (first <= last).then_some((first, last))
}

/// The lengths that are in both.
pub(super) fn common(one: Lengths, other: Lengths) -> Option<Lengths> {
    let (first, last) = (one.0.max(other.0), one.1.min(other.1));
    (first <= last).then_some((first, last))
}

/// Whether the ranges together hold all of `wanted`.
pub(super) fn covers(mut ranges: Vec<Lengths>, wanted: Lengths) -> bool {
    ranges.sort_unstable();
    let mut next = wanted.0;
    for (first, last) in ranges {
        if first <= next && last >= next {
            next = last + 1;
        }
    }
    next > wanted.1
}
