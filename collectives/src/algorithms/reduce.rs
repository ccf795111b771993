//! Reduce, allreduce and reduce-scatter.
//!
//! Operands are always combined in the order of ranks, so operations need not be
//! commutative; and each element of the result is worked out by one rank, or in
//! the same way by all, so all get the same bits.
#![forbid(unsafe_code)]

use super::common::{
    MAX_PIECES, after, await_all, before, combine_after, combine_before, copy, get, meet, others,
    piece_bytes, post, receive, send, step, take, within,
};
use super::{Unsuitable, suits};
use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::program::{Action, Exposed, Place, Program, Remote, Span};

/// What one rank reads and combines at a time: three of them lie in its cache.
const PIECE_BYTES: u64 = 64 * 1024;

/// This rank's program.
pub(super) fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(Parts::new(call).program(Way::Messages)),
        Algorithm::DirectReduce => Ok(Parts::new(call).program(Way::Direct)),
        _ => Err(Unsuitable::kind(algorithm, call.kind)),
    }
}

/// Whether this rank's input is its output.
const fn in_place(call: &Call) -> bool {
    call.in_place && (!matches!(call.kind, Kind::Reduce) || call.rank == call.root)
}

/// A stretch of the vectors.
#[derive(Clone, Copy)]
struct Part {
    offset: u64,
    bytes: u64,
}

/// The vectors' parts: of reduce-scatter the ranks' blocks, else their shares of
/// the elements.
fn parts(call: &Call) -> Vec<Part> {
    let element = call.element_bytes.max(1);
    let size = u64::from(call.size);
    let (each, over) = (call.bytes / element / size, call.bytes / element % size);
    let mut offset = 0_u64;
    let part = |rank: u32| {
        let bytes = match call.kind {
            Kind::ReduceScatter => call.blocks.of(rank).bytes,
            _ => (each + u64::from(u64::from(rank) < over)) * element,
        };
        let part = Part { offset, bytes };
        offset = offset.saturating_add(bytes);
        part
    };
    (0..call.size).map(part).collect()
}

/// This rank's vector, of these parts.
fn input(call: &Call, parts: &[Part]) -> Span {
    let place = if in_place(call) { Place::Output } else { Place::Input };
    let bytes = parts.last().map_or(0, |last| last.offset.saturating_add(last.bytes));
    Span { place, offset: 0, bytes }
}

/// All post their vectors, and each that needs a result combines what it needs of
/// them, from the first rank's to the last one's.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let parts = parts(call);
    let vector = input(call, &parts);
    suits::fits_slot(call, vector.bytes)?;
    let mut program = Program::default();
    if call.size > 1 && !(call.kind == Kind::Reduce && call.rank == call.root) {
        program.before.extend(post(vector, 0));
    }
    let Part { offset, bytes } = match call.kind {
        Kind::ReduceScatter => parts[call.rank as usize],
        Kind::Reduce if call.rank != call.root => return Ok(program),
        _ => Part { offset: 0, bytes: vector.bytes },
    };
    let own = within(vector, offset, bytes);
    let (result, first, other) = (Span::output(0, bytes), Span::work(0, bytes), Span::work(bytes, bytes));
    // In place the result may overlap what it is made from.
    let target = if own.place == Place::Output && offset > 0 { Span::work(2 * bytes, bytes) } else { result };
    program.work_bytes = target.offset.max(bytes) + bytes;
    step(&mut program, [copy(own, target)]);
    fold(call, &mut program, offset, target, (first, other));
    step(&mut program, [copy(target, result)]);
    Ok(program)
}

/// Combines what lower ranks have posted, from `offset` on, in `first`, that with
/// this rank's in `target`, and that with what higher ranks have.
fn fold(call: &Call, program: &mut Program, offset: u64, target: Span, (first, other): (Span, Span)) {
    for from in 0..call.rank {
        let into = if from == 0 { first } else { other };
        step(program, [take(from, offset, into)]);
        step(program, [combine_after(other, first).filter(|_| from > 0)]);
    }
    step(program, [combine_before(first, target).filter(|_| call.rank > 0)]);
    for from in call.rank + 1..call.size {
        step(program, [take(from, offset, other)]);
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
    vector: Span,
    of: Vec<Part>,
    /// This rank's.
    mine: Part,
    /// Of scratch memory what is kept for others, before the pieces.
    kept_bytes: u64,
    /// How much is combined at a time, of whole elements.
    piece_bytes: u64,
    longest_bytes: u64,
}

impl<'a> Parts<'a> {
    fn new(call: &'a Call) -> Self {
        let of = parts(call);
        let mine = of[call.rank as usize];
        let kept = match call.kind {
            Kind::Reduce => call.rank != call.root,
            Kind::ReduceScatter => in_place(call),
            _ => false,
        };
        let longest_bytes = of.iter().map(|part| part.bytes).max().unwrap_or(0);
        let most = (MAX_PIECES / u64::from(call.size)).max(1);
        let piece_bytes = piece_bytes(longest_bytes, PIECE_BYTES, call.element_bytes, most);
        Self {
            call,
            vector: input(call, &of),
            mine,
            kept_bytes: if kept { mine.bytes } else { 0 },
            piece_bytes: piece_bytes.min(longest_bytes),
            longest_bytes,
            of,
        }
    }

    /// Where in scratch memory what comes from one rank goes, behind what is kept and
    /// what is combined of lower ranks.
    fn other(&self) -> u64 {
        self.kept_bytes.saturating_add(self.piece_bytes)
    }

    /// Where this rank's part of the result is put together.
    fn target(&self) -> Span {
        match self.call.kind {
            _ if self.kept_bytes > 0 => Span::work(0, self.mine.bytes),
            Kind::ReduceScatter => Span::output(0, self.mine.bytes),
            _ => Span::output(self.mine.offset, self.mine.bytes),
        }
    }

    fn program(&self, way: Way) -> Program {
        let mut program =
            Program { work_bytes: self.other().saturating_add(self.piece_bytes), ..Program::default() };
        if way == Way::Direct && self.call.size > 1 {
            program.exposed = self.exposed();
        }
        let mut at = 0;
        while at < self.longest_bytes {
            self.combine_piece(&mut program, way, at);
            at = at.saturating_add(self.piece_bytes);
        }
        match way {
            Way::Direct => self.collect(&mut program),
            Way::Messages => self.send_parts(&mut program),
        }
        if self.call.kind == Kind::ReduceScatter {
            step(&mut program, [copy(self.target(), Span::output(0, self.mine.bytes))]);
        }
        program
    }

    /// Inputs are read by all, of allreduce outputs too, and what reduce's root
    /// gets from others.
    fn exposed(&self) -> Exposed {
        let place = self.input_place();
        Exposed {
            input: place == Place::Input,
            output: place == Place::Output || self.call.kind == Kind::Allreduce,
            work: self.call.kind == Kind::Reduce && self.kept_bytes > 0,
        }
    }

    /// As what others reach a rank's vector. In place is what all do, but for
    /// reduce, where nobody knows whether the root does: its output is reached as
    /// its input then.
    fn input_place(&self) -> Place {
        if self.call.kind == Kind::Reduce { Place::Input } else { self.vector.place }
    }

    /// The piece at `at` of a rank's part.
    fn piece(&self, of: u32, at: u64) -> Part {
        let part = self.of[of as usize];
        let at = at.min(part.bytes);
        Part { offset: part.offset.saturating_add(at), bytes: self.piece_bytes.min(part.bytes - at) }
    }

    /// Combines one piece: first with those of higher ranks, from the next one on,
    /// while no two ranks read from the same one; what lower ranks have is combined
    /// apart, and comes before it at the end.
    fn combine_piece(&self, program: &mut Program, way: Way, at: u64) {
        let Call { rank, size, .. } = *self.call;
        let Part { offset, bytes } = self.piece(rank, at);
        let result = within(self.target(), at.min(self.mine.bytes), bytes);
        let lower = Span::work(self.kept_bytes, bytes);
        let other = Span::work(self.other(), bytes);
        step(program, [copy(within(self.vector, offset, bytes), result)]);
        for number in 1..size {
            let from = after(rank, number, size);
            let into = if from == 0 { lower } else { other };
            if way == Way::Direct {
                step(program, [get(from, Remote::At(self.input_place(), offset), into)]);
            } else {
                let to = before(rank, number, size);
                let theirs = self.piece(to, at);
                let leaving = within(self.vector, theirs.offset, theirs.bytes);
                step(program, [receive(from, into), send(to, leaving)]);
            }
            if from > rank {
                step(program, [combine_after(other, result)]);
            } else if from > 0 {
                step(program, [combine_after(other, lower)]);
            }
        }
        step(program, [combine_before(lower, result).filter(|_| rank > 0)]);
    }

    /// The ranks whose part is not empty, and so read from all others.
    fn owners(&self) -> impl Iterator<Item = u32> {
        others(self.call).filter(|&rank| self.of[rank as usize].bytes > 0)
    }

    /// The ranks' parts are read by those who want them. Point 1: the rank's part
    /// is there, and it reads no inputs any more; point 2: it reads nothing more.
    fn collect(&self, program: &mut Program) {
        let call = self.call;
        if call.kind == Kind::ReduceScatter || (call.kind == Kind::Reduce && call.rank != call.root) {
            meet(program, 1, self.owners().map(|owner| (owner, 1)));
            if call.kind == Kind::Reduce && self.mine.bytes > 0 {
                await_all(program, [(call.root, 2)]);
            }
            return;
        }
        program.then(Action::Publish(1));
        for owner in self.owners() {
            let Part { offset, bytes } = self.of[owner as usize];
            await_all(program, [(owner, 1)]);
            let from = match call.kind {
                Kind::Reduce => Remote::At(Place::Work, 0),
                _ => Remote::At(Place::Output, offset),
            };
            step(program, [get(owner, from, Span::output(offset, bytes))]);
        }
        let readers = others(call).filter(|_| call.kind == Kind::Allreduce && self.mine.bytes > 0);
        meet(program, 2, readers.map(|reader| (reader, 2)));
    }

    /// The ranks' parts are sent to those who want them.
    fn send_parts(&self, program: &mut Program) {
        let call = self.call;
        let arriving = |from: u32| {
            let Part { offset, bytes } = self.of[from as usize];
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

#[cfg(test)]
#[path = "reduce_tests.rs"]
mod tests;
