//! Nobody leaves before all have come.

use crate::algorithm::Algorithm;
use crate::call::Call;
use crate::program::{Action, Program, Span};

use super::common::{after, before, doublings};

/// Of slots nothing is left to do: the meeting before the steps is the barrier.
/// Of messages it is the dissemination barrier: in round `i` each rank tells the
/// one `2^i` after it, and hears from the one `2^i` before it, so that after
/// ceil(log2 size) rounds it has heard, over others, from all. It needs no meeting.
pub fn program(call: &Call, algorithm: Algorithm) -> Program {
    let mut program = Program::default();
    if algorithm == Algorithm::Slots {
        return program;
    }
    let nothing = Span::output(0, 0);
    for distance in doublings(call.size) {
        program.then_all(vec![
            Action::Send { rank: after(call.rank, distance, call.size), from: nothing },
            Action::Receive { rank: before(call.rank, distance, call.size), into: nothing },
        ]);
    }
    program
}

#[cfg(test)]
#[path = "barrier_tests.rs"]
mod tests;
