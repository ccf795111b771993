//! One block of each rank's to the root: scatter the other way (IV.B).

use crate::algorithm::{Algorithm, Kind};
use crate::call::{Blocks, Call};
use crate::program::{Action, Exposed, Lists, Place, Program, Remote, Span};

use super::rooted::{at, block_at_root, from_root, others_move, root_moves};
use super::{Unsuitable, suits};

/// What this rank does.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(messages(call)),
        Algorithm::ParallelWrite => Ok(writes(call, call.size)),
        Algorithm::ThrottledWrite(at_a_time) => Ok(writes(call, at_a_time)),
        Algorithm::SequentialRead => Ok(sequential_read(call)),
        _ => Err(Unsuitable::kind(algorithm, Kind::Gather)),
    }
}

/// Where the root wants the bytes of the rank that many after it.
fn block(call: &Call, from_root: u32) -> Span {
    let block = call.blocks.of(at(call, from_root));
    Span::output(block.offset, block.bytes)
}

/// This rank's input.
fn own(call: &Call) -> Span {
    Span::input(0, call.bytes)
}

/// The root's copy of its own block, unless it is there already.
fn root_copy(call: &Call) -> Option<Action> {
    let wanted = from_root(call) == 0 && !call.in_place && call.bytes > 0;
    wanted.then(|| Action::Copy { from: own(call), into: block(call, 0) })
}

/// Each posts its block, the root takes them all.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let mut program = Program::default();
    if from_root(call) > 0 {
        suits::fits_slot(call, call.bytes)?;
        if call.bytes > 0 {
            program.before = vec![Action::Post { from: own(call), at: 0 }];
        }
        return Ok(program);
    }
    let mut takes: Vec<Action> = root_copy(call).into_iter().collect();
    for other in 1..call.size {
        let into = block(call, other);
        suits::fits_slot(call, into.bytes)?;
        if into.bytes > 0 {
            takes.push(Action::Take { rank: at(call, other), at: 0, into });
        }
    }
    program.then_all(takes);
    Ok(program)
}

/// A message from each rank, all at once.
fn messages(call: &Call) -> Program {
    let mut program = Program::default();
    if from_root(call) > 0 {
        program.then(Action::Send { rank: call.root, from: own(call) });
        return program;
    }
    let receive = |other| Action::Receive { rank: at(call, other), into: block(call, other) };
    program.then_all((1..call.size).map(receive).chain(root_copy(call)).collect());
    program
}

/// Each rank writes its block, so many at a time; all of them are parallel writes.
fn writes(call: &Call, at_a_time: u32) -> Program {
    let mut program = Program::default();
    if from_root(call) == 0 {
        program.exposed = Exposed { output: true, ..Exposed::default() };
        program.lists = Lists { input: false, output: matches!(call.blocks, Blocks::Listed(_)) };
    }
    let write = (call.bytes > 0).then(|| Action::Put {
        rank: call.root,
        from: own(call),
        into: block_at_root(call, Place::Output),
    });
    others_move(&mut program, call, at_a_time, write, root_copy(call));
    program
}

/// The root reads from one rank after the other.
fn sequential_read(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.input = from_root(call) > 0;
    let read = |other| {
        let into = block(call, other);
        let from = Remote::At(Place::Input, 0);
        (into.bytes > 0).then(|| Action::Get { rank: at(call, other), from, into })
    };
    root_moves(&mut program, call, read, root_copy(call));
    program
}
