//! Reduce, allreduce and reduce-scatter.
//!
//! Operands are always combined in the order of ranks, so operations need not be
//! commutative; and each element of the result is worked out by one rank, or in
//! the same way by all, so all get the same bits.
#![forbid(unsafe_code)]

use super::Unsuitable;
use super::common::{
    after, await_all, before, combine_after, combine_before, copy, fits_slot, get, meet, others, post,
    receive, send, step, take, unsuitable, within,
};
use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::{Action, Place, Program, Remote, Span};

/// What one rank reads and combines at a time: three of them lie in its cache.
const PIECE_BYTES: u64 = 64 * 1024;

/// This rank's program.
pub(super) fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(Parts::of(call).program(Way::Messages)),
        Algorithm::DirectReduce => Ok(Parts::of(call).program(Way::Direct)),
        other => Err(unsuitable(other, format!("it does not do {}; direct-reduce does", call.kind))),
    }
}

/// Whether this rank's input is its output.
const fn in_place(call: &Call) -> bool {
    call.in_place && (!matches!(call.kind, Kind::Reduce) || call.rank == call.root)
}

/// How long the vectors are.
fn vector_bytes(call: &Call) -> u64 {
    if call.kind == Kind::ReduceScatter {
        return (0..call.size).map(|rank| call.blocks.of(rank).bytes).sum();
    }
    call.bytes
}

/// This rank's vector.
fn input(call: &Call) -> Span {
    let place = if in_place(call) { Place::Output } else { Place::Input };
    Span { place, offset: 0, bytes: vector_bytes(call) }
}

/// A part of the vectors: of reduce-scatter a rank's block, else that rank's share
/// of the elements.
fn part(call: &Call, rank: u32) -> (u64, u64) {
    if call.kind == Kind::ReduceScatter {
        let offset = (0..rank).map(|rank| call.blocks.of(rank).bytes).sum();
        return (offset, call.blocks.of(rank).bytes);
    }
    let size = u64::from(call.size);
    let element = call.element_bytes.max(1);
    let (each, over) = (call.bytes / element / size, call.bytes / element % size);
    let start = |rank: u64| (rank * each + rank.min(over)) * element;
    let (from, to) = (start(u64::from(rank)), start(u64::from(rank) + 1));
    (from, to - from)
}

/// All post their vectors, and each that needs a result combines what it needs of
/// them, from the first rank's to the last one's.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let vector = input(call);
    fits_slot(call, vector.bytes)?;
    let mut program = Program::default();
    if call.size > 1 && !(call.kind == Kind::Reduce && call.rank == call.root) {
        program.before.extend(post(vector, 0));
    }
    let (offset, bytes) = match call.kind {
        Kind::ReduceScatter => part(call, call.rank),
        Kind::Reduce if call.rank != call.root => return Ok(program),
        _ => (0, vector.bytes),
    };
    let own = within(vector, offset, bytes);
    let (result, first, other) = (Span::output(0, bytes), Span::work(0, bytes), Span::work(bytes, bytes));
    // In place the result may overlap what it is made from.
    let target = if own.place == Place::Output && offset > 0 { Span::work(2 * bytes, bytes) } else { result };
    program.work_bytes = target.offset.max(bytes) + bytes;
    step(&mut program, [copy(own, target)]);
    fold(call, &mut program, target, (first, other), |from, into| vec![take(from, offset, into)]);
    step(&mut program, [copy(target, result)]);
    Ok(program)
}

/// Combines what lower ranks have, in `first`, that with this rank's in `target`,
/// and that with what higher ranks have.
fn fold(
    call: &Call,
    program: &mut Program,
    target: Span,
    (first, other): (Span, Span),
    fetch: impl Fn(u32, Span) -> Vec<Option<Action>>,
) {
    for from in 0..call.rank {
        let into = if from == 0 { first } else { other };
        step(program, fetch(from, into));
        step(program, [combine_after(other, first).filter(|_| from > 0)]);
    }
    step(program, [combine_before(first, target).filter(|_| call.rank > 0)]);
    for from in call.rank + 1..call.size {
        step(program, fetch(from, other));
        step(program, [combine_after(other, target)]);
    }
}

/// How parts come from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Read where they lie.
    Direct,
    /// By messages.
    Messages,
}

/// Each rank combines its part of all ranks' vectors, then the parts go to where
/// they are wanted: no rank gets more than twice the vector, in all. A few short
/// steps more than a tree for vectors that fit slots anyway.
struct Parts<'a> {
    call: &'a Call,
    /// This rank's part.
    offset: u64,
    bytes: u64,
    /// Of scratch memory what is kept for others, before the pieces.
    kept_bytes: u64,
    /// How much is combined at a time, of whole elements.
    piece_bytes: u64,
    longest_part_bytes: u64,
}

impl<'a> Parts<'a> {
    fn of(call: &'a Call) -> Self {
        let (offset, bytes) = part(call, call.rank);
        let kept = match call.kind {
            Kind::Reduce => call.rank != call.root,
            Kind::ReduceScatter => in_place(call),
            _ => false,
        };
        let element = call.element_bytes.max(1);
        let longest_part_bytes = (0..call.size).map(|rank| part(call, rank).1).max().unwrap_or(0);
        let piece_bytes = (PIECE_BYTES / element).max(1) * element;
        let kept_bytes = if kept { bytes } else { 0 };
        Self {
            call,
            offset,
            bytes,
            kept_bytes,
            piece_bytes: piece_bytes.min(longest_part_bytes),
            longest_part_bytes,
        }
    }

    /// Where this rank's part of the result is put together.
    fn target(&self) -> Span {
        match self.call.kind {
            _ if self.kept_bytes > 0 => Span::work(0, self.bytes),
            Kind::ReduceScatter => Span::output(0, self.bytes),
            _ => Span::output(self.offset, self.bytes),
        }
    }

    fn program(&self, way: Way) -> Program {
        let mut program =
            Program { work_bytes: self.kept_bytes + 2 * self.piece_bytes, ..Program::default() };
        if way == Way::Direct {
            let place = input(self.call).place;
            let reduce = self.call.kind == Kind::Reduce;
            program.exposed.input = place == Place::Input || reduce;
            program.exposed.output = self.call.kind == Kind::Allreduce || (place == Place::Output && !reduce);
            program.exposed.work = reduce && self.kept_bytes > 0;
        }
        let mut at = 0;
        while at < self.longest_part_bytes {
            self.combine_piece(&mut program, way, at);
            at += self.piece_bytes;
        }
        match way {
            Way::Direct => self.collect(&mut program),
            Way::Messages => self.send_parts(&mut program),
        }
        if self.call.kind == Kind::ReduceScatter {
            step(&mut program, [copy(self.target(), Span::output(0, self.bytes))]);
        }
        program
    }

    /// The piece at `at` of a rank's part: where it is in the vectors.
    fn piece(&self, of: u32, at: u64) -> (u64, u64) {
        let (offset, bytes) = part(self.call, of);
        let at = at.min(bytes);
        (offset + at, self.piece_bytes.min(bytes - at))
    }

    /// Combines one piece: first with those of higher ranks, from the next one on,
    /// while no two ranks read from the same one; what lower ranks have is combined
    /// apart, and comes before it at the end.
    fn combine_piece(&self, program: &mut Program, way: Way, at: u64) {
        let Call { rank, size, .. } = *self.call;
        let (offset, bytes) = self.piece(rank, at);
        let vector = input(self.call);
        let result = within(self.target(), at.min(self.bytes), bytes);
        let lower = Span::work(self.kept_bytes, bytes);
        let other = Span::work(self.kept_bytes + self.piece_bytes, bytes);
        step(program, [copy(within(vector, offset, bytes), result)]);
        for number in 1..size {
            let from = after(rank, number, size);
            let into = if from == 0 { lower } else { other };
            if way == Way::Direct {
                step(program, [get(from, self.remote_input(offset), into)]);
            } else {
                let to = before(rank, number, size);
                let (offset, bytes) = self.piece(to, at);
                step(program, [receive(from, into), send(to, within(vector, offset, bytes))]);
            }
            if from > rank {
                step(program, [combine_after(other, result)]);
            } else if from > 0 {
                step(program, [combine_after(other, lower)]);
            }
        }
        step(program, [combine_before(lower, result).filter(|_| rank > 0)]);
    }

    /// Where a rank's vector is. In place is what all do, but for reduce, where
    /// nobody knows whether the root does: there its input is its output.
    fn remote_input(&self, offset: u64) -> Remote {
        let place = if self.call.kind == Kind::Reduce { Place::Input } else { input(self.call).place };
        Remote::At(place, offset)
    }

    /// The ranks whose part is not empty, and so read from all others.
    fn owners(&self) -> impl Iterator<Item = u32> {
        others(self.call).filter(|&rank| part(self.call, rank).1 > 0)
    }

    /// The ranks' parts are read by those who want them. Point 1: the rank's part
    /// is there, and it reads no inputs any more; point 2: it reads nothing more.
    fn collect(&self, program: &mut Program) {
        let call = self.call;
        if call.kind == Kind::ReduceScatter || (call.kind == Kind::Reduce && call.rank != call.root) {
            meet(program, 1, self.owners().map(|owner| (owner, 1)));
            if call.kind == Kind::Reduce && self.bytes > 0 {
                await_all(program, [(call.root, 2)]);
            }
            return;
        }
        program.then(Action::Publish(1));
        for owner in self.owners() {
            let (offset, bytes) = part(call, owner);
            await_all(program, [(owner, 1)]);
            let from = match call.kind {
                Kind::Reduce => Remote::At(Place::Work, 0),
                _ => Remote::At(Place::Output, offset),
            };
            step(program, [get(owner, from, Span::output(offset, bytes))]);
        }
        let readers = others(call).filter(|_| call.kind == Kind::Allreduce && self.bytes > 0);
        meet(program, 2, readers.map(|reader| (reader, 2)));
    }

    /// The ranks' parts are sent to those who want them.
    fn send_parts(&self, program: &mut Program) {
        let call = self.call;
        let arriving = |from: u32| {
            let (offset, bytes) = part(call, from);
            receive(from, Span::output(offset, bytes))
        };
        match call.kind {
            Kind::Reduce if call.rank == call.root => step(program, others(call).map(arriving)),
            Kind::Reduce => step(program, [send(call.root, self.target())]),
            Kind::Allreduce => {
                for number in 1..call.size {
                    let (from, to) =
                        (after(call.rank, number, call.size), before(call.rank, number, call.size));
                    step(program, [arriving(from), send(to, self.target())]);
                }
            }
            _ => {}
        }
    }
}
