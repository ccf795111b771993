//! The root's bytes go to all (V.B).

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::{Action, Program, Remote, Span};

use super::common::{post, put, step, take};
use super::rooted::{at, from_root, others_move, read, root_moves, whole};
use super::{Unsuitable, broadcast_trees, hierarchical, suits};

/// What this rank does.
pub fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(super::broadcast_messages::program(call)),
        Algorithm::DirectRead => Ok(direct_read(call)),
        Algorithm::DirectWrite => Ok(direct_write(call)),
        Algorithm::Knomial(readers) => Ok(broadcast_trees::knomial(call, readers)),
        Algorithm::Hierarchical(kib) => Ok(hierarchical::hierarchical(call, u64::from(kib) << 10)),
        Algorithm::ScatterAllgather => Ok(scatter_allgather(call)),
        _ => Err(Unsuitable::kind(algorithm, Kind::Broadcast)),
    }
}

/// The root's write of a stretch to another rank, unless it is empty.
fn write(to: u32, span: Span) -> Option<Action> {
    put(to, span, Remote::At(span.place, span.offset))
}

/// The root posts, all take.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    suits::fits_slot(call, call.bytes)?;
    let mut program = Program::default();
    if from_root(call) == 0 {
        program.before = post(whole(call), 0).into_iter().collect();
    } else {
        step(&mut program, [take(call.root, 0, whole(call))]);
    }
    Ok(program)
}

/// All read from the root at once (V.B.1).
fn direct_read(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.output = from_root(call) == 0;
    others_move(&mut program, call, call.size, read(call.root, whole(call)), None);
    program
}

/// The root writes to one after the other (V.B.1).
fn direct_write(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.output = from_root(call) > 0;
    root_moves(&mut program, call, |other| write(at(call, other), whole(call)), None);
    program
}

/// The root writes a chunk to each rank, one after the other; when all are there,
/// each rank reads the others where they are, in step `i` from the rank `i` before
/// it, so that no two read from the same one if all go at the same pace (V.B.3,
/// with the sequential write and the ring-source-read of VI). Nobody reads from the
/// root but its own chunk, and that the first rank does while the root still writes:
/// two ranks move half of the message each, at the same time.
fn scatter_allgather(call: &Call) -> Program {
    let mut program = Program::default();
    program.exposed.output = true;
    let own = from_root(call);
    let rank = |other| at(call, other);
    let arrived = |other: u32| Action::Await { rank: rank(other), point: 1 };
    if own == 0 {
        for other in 1..call.size {
            step(&mut program, [write(rank(other), chunk(call, other))]);
        }
        program.then(Action::Publish(1));
    } else {
        // The root's own chunk is there from the beginning.
        let mut scattered = Some(arrived(0));
        for back in 1..call.size {
            let from = (own + (call.size - back)) % call.size;
            if from > 0 {
                step(&mut program, [scattered.take()]);
            }
            step(&mut program, [read(rank(from), chunk(call, from))]);
        }
        step(&mut program, [scattered]);
        program.then(Action::Publish(1));
    }
    program.then_all((1..call.size).filter(|&other| other != own).map(arrived).collect());
    program
}

/// The chunk of the rank that many after the root. Chunks begin at pages of the
/// message if it has one for each rank, else at cache lines, else anywhere: of a
/// chunk that does not begin and end at pages, one page more must be pinned, which
/// the paper saw with many ranks. They differ by at most one such unit.
fn chunk(call: &Call, from_root: u32) -> Span {
    const UNITS: [u64; 3] = [4096, 64, 1];
    let size = u64::from(call.size);
    let unit = UNITS.into_iter().find(|unit| call.bytes / unit >= size).unwrap_or(1);
    let units = u128::from(call.bytes.div_ceil(unit));
    // At most `units`, which came from 64 bits; the last border may be beyond the end.
    let border = |index: u64| {
        let before = (units * u128::from(index) / u128::from(size)) as u64;
        before.saturating_mul(unit).min(call.bytes)
    };
    let begin = border(from_root.into());
    Span::output(begin, border(u64::from(from_root) + 1) - begin)
}

#[cfg(test)]
#[path = "broadcast_tests.rs"]
mod tests;
