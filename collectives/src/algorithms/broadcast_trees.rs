//! Broadcast by reads along a tree, so that not all read from the root.

use crate::call::Call;
use crate::program::{Action, Program};

use super::common::step;
use super::rooted::{MOVED, at, from_root, read, whole};

/// In each round everybody who has the message is read from by `readers` others at
/// a time (V.B.2), so that there are `readers` + 1 times as many after it, and
/// ceil(log(readers + 1) p) rounds. (The paper says the logarithm to the base k,
/// which does not count the source itself.)
///
/// Ranks count from the root. With `wide` ranks in the tree, rank `v < wide` is read
/// by `v + wide`, `v + 2 wide`, up to `v + readers wide`. There are no rounds that
/// all keep to: a reader waits for the one that reads from the same source, at the
/// same place in line, one round before; for the source itself in the source's first
/// round. So a source has never more than `readers` at a time, and who has the
/// message does not wait for the slowest of a round. A rank ends when the last one
/// at each place of its line has read.
pub fn knomial(call: &Call, readers: u32) -> Program {
    let mut program = Program::default();
    let (own, size) = (u64::from(from_root(call)), u64::from(call.size));
    let moved = |other: u64| Action::Await { rank: at(call, other as u32), point: MOVED };
    let grow = |wide: u64| wide * (u64::from(readers) + 1);

    // How wide the tree is when this rank joins it.
    let mut wide = 1;
    while own > 0 && grow(wide) <= own {
        wide = grow(wide);
    }
    if own > 0 {
        let (source, place) = (own % wide, own / wide);
        let narrower = wide / grow(1);
        let before = if source < narrower { source + place * narrower } else { source };
        // Nobody is to be waited for where the root is read from first.
        if before > 0 {
            program.then(moved(before));
        }
        step(&mut program, [read(at(call, source as u32), whole(call))]);
        program.then(Action::Publish(MOVED));
        wide = grow(wide);
    }

    let places = (1..=u64::from(readers)).map_while(|place| last_at(own, place, wide, size, grow));
    let lasts: Vec<Action> = places.map(moved).collect();
    program.exposed.output = !lasts.is_empty();
    program.then_all(lasts);
    program
}

/// The last that reads from `source` at a place in its line, if any does.
fn last_at(source: u64, place: u64, first: u64, size: u64, grow: impl Fn(u64) -> u64) -> Option<u64> {
    let reader = |wide: u64| Some(source + place * wide).filter(|&reader| reader < size);
    let mut last = reader(first)?;
    let mut wide = grow(first);
    while let Some(next) = reader(wide) {
        last = next;
        wide = grow(wide);
    }
    Some(last)
}
