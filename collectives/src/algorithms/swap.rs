//! Two ranks hand each other pieces in cells of shared memory that change their owner
//! with each piece: what a rank has taken out of a cell it writes into that cell next. A
//! line that is read only goes back to its writer the next time, one that is taken over
//! crosses once (docs/performance.md).
#![forbid(unsafe_code)]

use super::common::{copy, has_lists, output_block, step, within};
use super::{Unsuitable, allgather, alltoall};
use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::layout::{CELL_BYTES, LINE_BYTES};
use crate::program::{Action, Program, Span};

/// An odd number: the next call with these cells, in which they have changed places, goes
/// on where this one ends.
const MAX_PIECES: u64 = 3;

/// The longest blocks; longer ones gain nothing, since caches do not hold the cells.
pub(crate) const MAX_BYTES: u64 = MAX_PIECES * CELL_BYTES;

/// Whether a call is of those that it does.
pub(crate) fn is_swap(call: &Call) -> bool {
    !has_lists(call) && is_swap_of(call.kind, call.size, call.block_bytes())
}

/// The same by the length of a block.
pub(crate) fn is_swap_of(kind: Kind, ranks: u32, bytes: u64) -> bool {
    Algorithm::Swap.does(kind) && ranks == 2 && bytes <= MAX_BYTES
}

/// What this rank does.
pub(super) fn program(call: &Call) -> Result<Program, Unsuitable> {
    if !is_swap(call) {
        let most_kib = MAX_BYTES >> 10;
        let reason =
            format!("it is for two ranks and blocks of one length, up to {most_kib} KiB; messages do others");
        return Err(Unsuitable { algorithm: Algorithm::Swap, reason });
    }
    let other = 1 - call.rank;
    let (own, given) = match call.kind {
        Kind::Alltoall => (alltoall::source(call, call.rank), alltoall::source(call, other)),
        _ => (allgather::own(call), allgather::own(call)),
    };
    let bytes = call.block_bytes();
    let pieces = if bytes <= CELL_BYTES { 1 } else { MAX_PIECES };
    let piece_bytes = bytes.div_ceil(pieces).next_multiple_of(LINE_BYTES);
    let mut program = Program::default();
    for number in 0..pieces {
        let begin = (number * piece_bytes).min(bytes);
        let piece = |block: Span| within(block, begin, piece_bytes.min(bytes - begin));
        let cell = |writer: u32| writer + number as u32;
        let into = piece(output_block(call, other));
        let hand = Action::Hand { from: piece(given), cell: cell(call.rank) };
        let accept = Action::Accept { cell: cell(other), into };
        let copy = copy(piece(own), piece(output_block(call, call.rank)));
        if into.bytes == 0 {
            break;
        }
        if number == 0 {
            program.before.push(hand);
            program.early.extend(copy.map(|copy| vec![copy]));
        } else {
            let point = number as u32;
            step(&mut program, [Some(hand)]);
            step(&mut program, [Some(Action::Publish(point)), copy]);
            step(&mut program, [Some(Action::Await { rank: other, point })]);
        }
        step(&mut program, [Some(accept)]);
    }
    Ok(program)
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
