//! One block of the root's to each rank (IV.A).

use crate::algorithm::{Algorithm, Kind};
use crate::call::{Block, Blocks, Call};
use crate::program::{Action, Exposed, Place, Program, Remote, Span, Tables};

use super::common::{block_of, copy, get, index_of, post, post_others, put, step, take};
use super::rooted::{at, from_root, others_move, root_moves};
use super::{Unsuitable, suits};

/// What this rank does.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(messages(call)),
        Algorithm::ParallelRead => Ok(reads(call, call.size)),
        Algorithm::ThrottledRead(at_a_time) => Ok(reads(call, at_a_time)),
        Algorithm::SequentialWrite => Ok(sequential_write(call)),
        _ => Err(Unsuitable::kind(algorithm, Kind::Scatter)),
    }
}

/// What the root has for the rank that many after it.
pub(super) fn block(call: &Call, from_root: u32) -> Span {
    let block = call.blocks.of(at(call, from_root));
    Span::input(block.offset, block.bytes)
}

/// This rank's output.
fn own(call: &Call) -> Span {
    Span::output(0, call.bytes)
}

/// The root's copy of its own block, unless it is to stay where it is.
pub(super) fn root_copy(call: &Call) -> Option<Action> {
    let wanted = from_root(call) == 0 && !call.in_place;
    if wanted { copy(block(call, 0), own(call)) } else { None }
}

/// The root posts all blocks but its own, each takes its own: one after the other in the
/// plain form; in the v form, where nobody knows the others' lengths, at equal distances.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let mut program = Program::default();
    let distance = call.slot_bytes / u64::from(call.size);
    let at = match call.blocks {
        Blocks::Equal(_) => index_of(call.rank, call.root) * call.bytes,
        Blocks::Listed(_) => u64::from(call.rank) * distance,
    };
    let longest = match &call.blocks {
        Blocks::Equal(_) => call.bytes,
        Blocks::Listed(list) => list.iter().fold(call.bytes, |longest, block| longest.max(block.bytes)),
    };
    let posted = match &call.blocks {
        Blocks::Equal(_) => call.size - 1,
        Blocks::Listed(_) => call.size,
    };
    suits::fits_slot(call, longest.saturating_mul(posted.into()))?;
    if from_root(call) > 0 {
        step(&mut program, [take(call.root, at, own(call))]);
        return Ok(program);
    }
    program.before = match &call.blocks {
        Blocks::Equal(bytes) => post_others(Span::input(0, *bytes), call.size, call.root).collect(),
        Blocks::Listed(list) => {
            let one =
                |(rank, block): (u64, &Block)| post(Span::input(block.offset, block.bytes), rank * distance);
            (0..).zip(list).filter_map(one).collect()
        }
    };
    step(&mut program, [root_copy(call)]);
    Ok(program)
}

/// A message to each rank, all at once.
fn messages(call: &Call) -> Program {
    let mut program = Program::default();
    if from_root(call) > 0 {
        program.then(Action::Receive { rank: call.root, into: own(call) });
        return program;
    }
    let send = |other| Action::Send { rank: at(call, other), from: block(call, other) };
    program.then_all((1..call.size).map(send).chain(root_copy(call)).collect());
    program
}

/// Each rank reads its block, so many at a time; all of them are parallel reads.
fn reads(call: &Call, at_a_time: u32) -> Program {
    let mut program = Program::default();
    if from_root(call) == 0 {
        program.exposed = Exposed { input: true, ..Exposed::default() };
        program.tables = Tables { input: matches!(call.blocks, Blocks::Listed(_)), output: false };
    }
    let read = get(call.root, block_of(&call.blocks, Place::Input, call.rank), own(call));
    others_move(&mut program, call, at_a_time, read, root_copy(call));
    program
}

/// The root writes to one rank after the other.
fn sequential_write(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.output = from_root(call) > 0;
    let write = |other| put(at(call, other), block(call, other), Remote::At(Place::Output, 0));
    root_moves(&mut program, call, write, root_copy(call));
    program
}
