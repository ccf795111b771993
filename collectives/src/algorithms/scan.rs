//! Scan and exscan: to each rank what those up to it, or before it, have, combined
//! in the order of ranks.
#![forbid(unsafe_code)]

use super::common::{
    combine_after, combine_before, copy, doublings, get, pieces, post, receive, send, step, take, within,
};
use super::{Unsuitable, suits};
use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::{Action, Exposed, Place, Program, Remote, Span};

/// This rank's program.
pub(super) fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match (algorithm, call.kind) {
        (Algorithm::Slots, _) => slots(call),
        (Algorithm::Messages, Kind::Scan) => Ok(messages(call)),
        (Algorithm::Messages, _) => Ok(exclusive_messages(call)),
        (Algorithm::Chain(kib), Kind::Scan) => Ok(chain(call, kib)),
        (Algorithm::Chain(kib), _) => Ok(exclusive_chain(call, kib)),
        _ => Err(Unsuitable::kind(algorithm, call.kind)),
    }
}

/// This rank's vector.
const fn input(call: &Call) -> Span {
    let place = if call.in_place { Place::Output } else { Place::Input };
    Span { place, offset: 0, bytes: call.bytes }
}

/// All post their vectors, and each combines those it needs from the first one on.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    suits::fits_slot(call, call.bytes)?;
    let mut program = Program::default();
    if call.rank + 1 < call.size {
        program.before.extend(post(input(call), 0));
    }
    let output = Span::output(0, call.bytes);
    let [lower, other] = [Span::work(0, call.bytes), Span::work(call.bytes, call.bytes)];
    program.work_bytes = 2 * call.bytes;
    let exclusive = call.kind == Kind::Exscan;
    let sum = if exclusive { output } else { lower };
    for from in 0..call.rank {
        let into = if from == 0 { sum } else { other };
        step(&mut program, [take(from, 0, into)]);
        step(&mut program, [combine_after(other, sum).filter(|_| from > 0)]);
    }
    if !exclusive {
        step(&mut program, [copy(input(call), output)]);
        step(&mut program, [combine_before(lower, output).filter(|_| call.rank > 0)]);
    }
    Ok(program)
}

/// With what all have: in each step each rank sends what it has put together to
/// the rank twice as far after it.
fn messages(call: &Call) -> Program {
    let mut program = Program { work_bytes: call.bytes, ..Program::default() };
    step(&mut program, [copy(input(call), Span::output(0, call.bytes))]);
    doubled(call, &mut program, 0);
    program
}

/// The vectors go one rank further, and from rank 1 on it is a scan.
fn exclusive_messages(call: &Call) -> Program {
    let mut program = Program { work_bytes: call.bytes, ..Program::default() };
    let output = Span::output(0, call.bytes);
    let into = if call.in_place { Span::work(0, call.bytes) } else { output };
    let arriving = (call.rank > 0).then(|| receive(call.rank - 1, into)).flatten();
    let leaving = (call.rank + 1 < call.size).then(|| send(call.rank + 1, input(call))).flatten();
    step(&mut program, [arriving, leaving]);
    if call.rank > 0 {
        step(&mut program, [copy(into, output)]);
        doubled(call, &mut program, 1);
    }
    program
}

/// Scans the outputs of the ranks from `first` on.
fn doubled(call: &Call, program: &mut Program, first: u32) {
    let (output, other) = (Span::output(0, call.bytes), Span::work(0, call.bytes));
    for distance in doublings(call.size - first) {
        let from = (call.rank - first).checked_sub(distance).map(|from| from + first);
        let to = call.rank.checked_add(distance).filter(|&to| to < call.size);
        let arriving = from.and_then(|from| receive(from, other));
        step(program, [arriving, to.and_then(|to| send(to, output))]);
        step(program, [combine_before(other, output).filter(|_| from.is_some())]);
    }
}

/// The pieces of so many KiB, but of whole elements, that a vector is of.
fn chain_pieces(call: &Call, kib: u32) -> Vec<Span> {
    pieces(call.bytes, u64::from(kib) * 1024, call.element_bytes).collect()
}

/// Each rank gets what the one before it has put together, piece by piece, while
/// that works on the next one.
fn chain(call: &Call, kib: u32) -> Program {
    let pieces = chain_pieces(call, kib);
    let longest = pieces.first().map_or(0, |piece| piece.bytes);
    let mut program = Program {
        exposed: Exposed { output: call.rank + 1 < call.size, ..Exposed::default() },
        work_bytes: longest,
        ..Program::default()
    };
    for (&piece, point) in pieces.iter().zip(1..) {
        step(&mut program, [copy(within(input(call), piece.offset, piece.bytes), piece)]);
        if let Some(from) = call.rank.checked_sub(1) {
            let arrived = Span::work(0, piece.bytes);
            program.then(Action::Await { rank: from, point });
            step(&mut program, [get(from, Remote::At(Place::Output, piece.offset), arrived)]);
            step(&mut program, [combine_before(arrived, piece)]);
        }
        program.then(Action::Publish(point));
    }
    end_of_chain(call, &mut program, pieces.len());
    program
}

/// The next rank has read everything.
fn end_of_chain(call: &Call, program: &mut Program, pieces: usize) {
    let last = pieces as u32;
    if last > 0 && call.rank + 1 < call.size {
        program.then(Action::Await { rank: call.rank + 1, point: last });
    }
}

/// The same where what a rank gets is its result, and what it puts together with
/// its own, in scratch memory, is for the next one.
fn exclusive_chain(call: &Call, kib: u32) -> Program {
    let pieces = chain_pieces(call, kib);
    let last = call.rank + 1 == call.size;
    let mut program = Program {
        exposed: Exposed { work: !last, ..Exposed::default() },
        work_bytes: if last { 0 } else { call.bytes },
        ..Program::default()
    };
    for (&result, point) in pieces.iter().zip(1..) {
        let Span { offset, bytes, .. } = result;
        let next = Span::work(offset, bytes);
        step(&mut program, [copy(within(input(call), offset, bytes), next).filter(|_| !last)]);
        if let Some(from) = call.rank.checked_sub(1) {
            program.then(Action::Await { rank: from, point });
            step(&mut program, [get(from, Remote::At(Place::Work, offset), result)]);
            step(&mut program, [combine_before(result, next).filter(|_| !last)]);
        }
        program.then(Action::Publish(point));
    }
    end_of_chain(call, &mut program, pieces.len());
    program
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
