//! One block of each rank's to the root: scatter the other way (IV.B).

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::{Action, Exposed, Place, Program, Remote, Span};

use super::common::{block_of, copy, get, output_block, output_tables, post, put, step, take};
use super::rooted::{at, from_root, others_move, root_moves};
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
    output_block(call, at(call, from_root))
}

/// This rank's input.
fn own(call: &Call) -> Span {
    Span::input(0, call.bytes)
}

/// The root's copy of its own block, unless it is there already.
pub(super) fn root_copy(call: &Call) -> Option<Action> {
    let wanted = from_root(call) == 0 && !call.in_place;
    if wanted { copy(own(call), block(call, 0)) } else { None }
}

/// Each posts its block, the root takes them all.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let mut program = Program::default();
    if from_root(call) > 0 {
        suits::fits_slot(call, call.bytes)?;
        program.before = post(own(call), 0).into_iter().collect();
        return Ok(program);
    }
    let others = || (1..call.size).map(|other| (at(call, other), block(call, other)));
    others().try_for_each(|(_, into)| suits::fits_slot(call, into.bytes))?;
    let takes = others().map(|(rank, into)| take(rank, 0, into));
    step(&mut program, takes.chain([root_copy(call)]));
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
        program.tables = output_tables(&call.blocks);
    }
    let write = put(call.root, own(call), block_of(&call.blocks, Place::Output, call.rank));
    others_move(&mut program, call, at_a_time, write, root_copy(call));
    program
}

/// The root reads from one rank after the other.
fn sequential_read(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.input = from_root(call) > 0;
    let read = |other| get(at(call, other), Remote::At(Place::Input, 0), block(call, other));
    root_moves(&mut program, call, read, root_copy(call));
    program
}
