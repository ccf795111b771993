//! Nobody leaves before all have come.

use crate::algorithm::Algorithm;
use crate::call::Call;
use crate::program::{Action, Program, Span};

/// Of slots nothing is left to do: the meeting before the steps is the barrier.
/// Of messages it is the dissemination barrier: in round `i` each rank tells the
/// one `2^i` after it, and hears from the one `2^i` before it, so that after
/// ceil(log2 size) rounds it has heard, over others, from all. It needs no meeting.
pub fn program(call: &Call, algorithm: Algorithm) -> Program {
    let mut program = Program::default();
    if algorithm == Algorithm::Slots {
        return program;
    }
    let size = u64::from(call.size);
    let nothing = Span::output(0, 0);
    let mut distance = 1;
    while distance < size {
        let at = |far: u64| ((u64::from(call.rank) + far) % size) as u32;
        program.then_all(vec![
            Action::Send { rank: at(distance), from: nothing },
            Action::Receive { rank: at(size - distance), into: nothing },
        ]);
        distance *= 2;
    }
    program
}

#[cfg(test)]
#[path = "barrier_tests.rs"]
mod tests;
