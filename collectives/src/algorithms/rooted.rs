//! What scatter, gather and broadcast have in common: one rank, the root, has or
//! gets the bytes of all, and either the others or the root move them.
//!
//! Ranks count from the root here: the root is 0, who comes after it 1.

use crate::call::Call;
use crate::program::{Action, Program, Remote, Span};

use super::common::{after, before, get, step};

/// The point that a rank comes to when it has moved what it moves.
pub const MOVED: u32 = 1;

/// This rank, counted from the root.
pub fn from_root(call: &Call) -> u32 {
    before(call.rank, call.root, call.size)
}

/// Which rank is the one that many after the root.
pub fn at(call: &Call, from_root: u32) -> u32 {
    after(call.root, from_root, call.size)
}

/// Adds the steps of a rank of which all but the root move something, so many at a
/// time, in the order from the root. Who is beyond the first `at_a_time` waits for
/// who came that many before it (in the paper's IV.A.3 if rank - k >= 0, which is
/// misprinted there): as soon as one has ended the next begins, so that no more than
/// that many move at once and none waits for more than it must. The root, which
/// does `alone` meanwhile, waits for the last ones, and so for all.
pub fn others_move(
    program: &mut Program,
    call: &Call,
    at_a_time: u32,
    moves: Option<Action>,
    alone: Option<Action>,
) {
    let last = call.size - 1;
    let moved = |from_root| Action::Await { rank: at(call, from_root), point: MOVED };
    match from_root(call) {
        0 => {
            let lasts = last.saturating_sub(at_a_time) + 1..=last;
            program.then_all(alone.into_iter().chain(lasts.map(moved)).collect());
        }
        own => {
            if own > at_a_time {
                program.then(moved(own - at_a_time));
            }
            step(program, [moves]);
            program.then(Action::Publish(MOVED));
        }
    }
}

/// Adds the steps of a rank of which the root moves something to or from one rank
/// after the other: `moves` of each, counted from the root. Each knows as soon as
/// it has been served; what the root does `alone` keeps none of them waiting.
pub fn root_moves(
    program: &mut Program,
    call: &Call,
    moves: impl Fn(u32) -> Option<Action>,
    alone: Option<Action>,
) {
    let own = from_root(call);
    if own > 0 {
        program.then(Action::Await { rank: call.root, point: own });
        return;
    }
    // That a rank is served is said while the next one is.
    let served = |from_root: u32| (from_root > 0).then_some(Action::Publish(from_root));
    for other in 1..call.size {
        program.then_all(served(other - 1).into_iter().chain(moves(other)).collect());
    }
    program.then_all(served(call.size - 1).into_iter().chain(alone).collect());
}

/// All that is sent.
pub fn whole(call: &Call) -> Span {
    Span::output(0, call.bytes)
}

/// Reads a stretch where another rank has it, unless it is empty.
pub fn read(from: u32, span: Span) -> Option<Action> {
    get(from, Remote::At(span.place, span.offset), span)
}

#[cfg(test)]
#[path = "rooted_tests.rs"]
mod tests;
