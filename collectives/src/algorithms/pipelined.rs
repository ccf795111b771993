//! Through the slots piece by piece: what a rank has for others it posts into cells of
//! its slot, one after the other and round again, and the others take each piece as
//! soon as its point says that it is there (the pipelining of knem-jpdc2013, 3.3, with
//! two copies by the processor; both find the cells in a cache).
//!
//! A cell is filled again once who reads it has come to the point that says that it was
//! taken.

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;
use crate::layout::LINE_BYTES;
use crate::program::{Action, Program, Span};

use super::common::{MAX_PIECES, copy, has_lists, index_of, others, output_block, step, within};
use super::rooted::{at, from_root, whole};
use super::{Unsuitable, allgather, alltoall, gather, scatter};

/// What this rank does, with pieces of so many KiB.
pub(super) fn program(call: &Call, kib: u32) -> Result<Program, Unsuitable> {
    let unsuitable = |reason: String| Unsuitable { algorithm: Algorithm::Pipelined(kib), reason };
    if has_lists(call) && call.kind != Kind::Broadcast {
        return Err(unsuitable("it needs blocks of one length; messages do others".to_owned()));
    }
    let cells = Cells::new(call, u64::from(kib) << 10);
    if cells.are_too_many(call) {
        let reason = format!(
            "it would be of more than {MAX_PIECES} pieces for all ranks; longer ones, or messages, do it"
        );
        return Err(unsuitable(reason));
    }
    Ok(match call.kind {
        Kind::Broadcast => broadcast(call, &cells),
        Kind::Scatter => from_one(call, &cells),
        Kind::Gather => to_one(call, &cells),
        _ => exchange(call, &cells),
    })
}

/// Whether a rank's program of them would be longer than any should be.
pub(crate) fn has_too_many_pieces(call: &Call, kib: u32) -> bool {
    Cells::new(call, u64::from(kib) << 10).are_too_many(call)
}

/// How much of a slot one rank's cells have: of alltoall each other rank has its own.
fn share_bytes(kind: Kind, size: u32, slot_bytes: u64) -> u64 {
    match kind {
        Kind::Alltoall => slot_bytes / u64::from(size - 1).max(1),
        _ => slot_bytes,
    }
}

/// How long pieces are that were wanted so long.
pub(crate) fn piece_bytes(kind: Kind, size: u32, slot_bytes: u64, wanted_bytes: u64) -> u64 {
    let share = share_bytes(kind, size, slot_bytes);
    let most = share / MIN_CELLS / LINE_BYTES * LINE_BYTES;
    // Of slots of less than a line for each rank.
    let most = if most == 0 { (share / MIN_CELLS).max(1) } else { most };
    wanted_bytes.clamp(1, most)
}

/// How blocks are cut into pieces, and where in a slot these go.
struct Cells {
    piece_bytes: u64,
    block_bytes: u64,
    /// Of each block.
    pieces: u64,
    /// So many cells a slot has; of alltoall so many for each other rank.
    count: u64,
}

/// Two at least: while one is taken the next is filled.
const MIN_CELLS: u64 = 2;

impl Cells {
    fn new(call: &Call, wanted_bytes: u64) -> Self {
        let block_bytes = call.block_bytes();
        let share = share_bytes(call.kind, call.size, call.slot_bytes);
        let piece_bytes = piece_bytes(call.kind, call.size, call.slot_bytes, wanted_bytes);
        let pieces = block_bytes.div_ceil(piece_bytes);
        // The cells of a scatter's root are for the pieces of all.
        let posted = if call.kind == Kind::Scatter { pieces * u64::from(call.size - 1) } else { pieces };
        let count = (share / piece_bytes).clamp(MIN_CELLS, posted.max(MIN_CELLS));
        Self { piece_bytes, block_bytes, pieces, count }
    }

    /// Whether one rank would have more pieces to post or take than [`MAX_PIECES`].
    fn are_too_many(&self, call: &Call) -> bool {
        let partners = if call.kind == Kind::Broadcast { 1 } else { u64::from(call.size - 1) };
        self.pieces.saturating_mul(partners) > MAX_PIECES
    }

    /// A piece of a block.
    fn piece(&self, block: Span, number: u64) -> Span {
        let begin = number * self.piece_bytes;
        within(block, begin, self.piece_bytes.min(self.block_bytes - begin))
    }

    /// The cell of a piece that is so many after the first.
    const fn cell(&self, number: u64) -> u64 {
        number % self.count * self.piece_bytes
    }
}

/// What a rank that only writes posts: each piece, once its cell was read.
fn posts(program: &mut Program, cells: &Cells, pieces: impl Iterator<Item = (Span, Vec<Action>)>) {
    for ((from, read), number) in pieces.zip(0..) {
        let post = Action::Post { from, at: cells.cell(number) };
        let said = Action::Publish(number as u32 + 1);
        if number < cells.count {
            program.early.extend([vec![post], vec![said]]);
        } else {
            program.then_all(read).then(post).then(said);
        }
    }
}

/// Takes one piece, and says that so many were taken, if who posts waits for it.
fn taken(program: &mut Program, from: (u32, u64), at: u64, into: Span, said: Option<u64>) {
    let (rank, point) = (from.0, from.1 as u32);
    program.then(Action::Await { rank, point });
    program.then(Action::Take { rank, at, into });
    program.then_all(said.map(|count| Action::Publish(count as u32)).into_iter().collect());
}

const fn awaited(rank: u32, count: u64) -> Action {
    Action::Await { rank, point: count as u32 }
}

fn broadcast(call: &Call, cells: &Cells) -> Program {
    let mut program = Program::default();
    let whole = whole(call);
    if from_root(call) == 0 {
        if call.size == 1 {
            return program;
        }
        let read = |number: u64| match number.checked_sub(cells.count) {
            Some(before) => others(call).map(|rank| awaited(rank, before + 1)).collect(),
            None => Vec::new(),
        };
        let pieces = (0..cells.pieces).map(|number| (cells.piece(whole, number), read(number)));
        posts(&mut program, cells, pieces);
        return program;
    }
    for number in 0..cells.pieces {
        let said = (number + cells.count < cells.pieces).then_some(number + 1);
        let into = cells.piece(whole, number);
        taken(&mut program, (call.root, number + 1), cells.cell(number), into, said);
    }
    program
}

/// Scatter: the root posts all pieces of one rank, then those of the next, so that on a
/// CPU of several ranks each has to come once.
fn from_one(call: &Call, cells: &Cells) -> Program {
    let mut program = Program::default();
    let pieces = cells.pieces;
    let all = pieces * (u64::from(call.size) - 1);
    if from_root(call) == 0 {
        let reader = |number: u64| (number / pieces) as u32 + 1;
        let one = |number: u64| {
            let from = cells.piece(scatter::block(call, reader(number)), number % pieces);
            let before = number.checked_sub(cells.count);
            let read = before.map(|before| awaited(at(call, reader(before)), before % pieces + 1));
            (from, read.into_iter().collect())
        };
        posts(&mut program, cells, (0..all).map(one));
        step(&mut program, [scatter::root_copy(call)]);
        return program;
    }
    for piece in 0..pieces {
        let number = (u64::from(from_root(call)) - 1) * pieces + piece;
        let said = (number + cells.count < all).then_some(piece + 1);
        let into = cells.piece(whole(call), piece);
        taken(&mut program, (call.root, number + 1), cells.cell(number), into, said);
    }
    program
}

/// Gather: the root takes all pieces of one rank, then those of the next.
fn to_one(call: &Call, cells: &Cells) -> Program {
    let mut program = Program::default();
    // How far the root is once it has taken so many of a writer's.
    let point = |writer: u64, taken: u64| (writer - 1) * cells.pieces + taken;
    if from_root(call) > 0 {
        let own = u64::from(from_root(call));
        let read = |number: u64| match number.checked_sub(cells.count) {
            Some(before) => vec![awaited(call.root, point(own, before + 1))],
            None => Vec::new(),
        };
        let block = Span::input(0, call.bytes);
        let pieces = (0..cells.pieces).map(|number| (cells.piece(block, number), read(number)));
        posts(&mut program, cells, pieces);
        return program;
    }
    program.early.extend(gather::root_copy(call).map(|copy| vec![copy]));
    for writer in 1..u64::from(call.size) {
        let rank = at(call, writer as u32);
        for piece in 0..cells.pieces {
            let said = (piece + cells.count < cells.pieces).then_some(point(writer, piece + 1));
            let into = cells.piece(output_block(call, rank), piece);
            taken(&mut program, (rank, piece + 1), cells.cell(piece), into, said);
        }
    }
    program
}

/// Where a rank is when it has posted its pieces of this number: it takes the pieces
/// before only then ([`point_of_taken`]), so that others have something to do.
const fn point_of_posted(number: u64) -> u64 {
    if number == 0 { 1 } else { 2 * number }
}

const fn point_of_taken(number: u64) -> u64 {
    2 * number + 3
}

/// Allgather and alltoall: each is writer and reader.
fn exchange(call: &Call, cells: &Cells) -> Program {
    let mut program = Program::default();
    for number in 0..=cells.pieces {
        if number < cells.pieces {
            post_all(&mut program, call, cells, number);
        }
        if let Some(last) = number.checked_sub(1) {
            take_all(&mut program, call, cells, last);
        }
    }
    program
}

/// Posts this rank's pieces of a number, and copies that of its own block.
fn post_all(program: &mut Program, call: &Call, cells: &Cells, number: u64) {
    let posts = targets(call).map(|(to, block)| Action::Post {
        from: cells.piece(block, number),
        at: cell_of(call, cells, (call.rank, to), number),
    });
    let own = cells.piece(own_block(call), number);
    let copy = copy(own, cells.piece(output_block(call, call.rank), number));
    let said = Action::Publish(point_of_posted(number) as u32);
    let steps: [Vec<Action>; 2] = [posts.collect(), [said].into_iter().chain(copy).collect()];
    // Before the first two nothing is taken.
    if number < MIN_CELLS {
        return program.early.extend(steps);
    }
    if let Some(before) = number.checked_sub(cells.count) {
        let read = others(call).map(|rank| awaited(rank, point_of_taken(before)));
        program.then_all(read.collect());
    }
    for step in steps {
        program.then_all(step);
    }
}

/// To whom this rank posts: alltoall each block for its rank, allgather one for all.
fn targets(call: &Call) -> impl Iterator<Item = (u32, Span)> {
    let is_alltoall = call.kind == Kind::Alltoall;
    let each = others(call).filter(move |_| is_alltoall).map(|to| (to, alltoall::source(call, to)));
    let one = (!is_alltoall && call.size > 1).then(|| (0, own_block(call)));
    each.chain(one)
}

fn own_block(call: &Call) -> Span {
    match call.kind {
        Kind::Alltoall => alltoall::source(call, call.rank),
        _ => allgather::own(call),
    }
}

/// The cell of a piece from one rank for another.
fn cell_of(call: &Call, cells: &Cells, (from, to): (u32, u32), number: u64) -> u64 {
    let index = if call.kind == Kind::Alltoall { index_of(to, from) } else { 0 };
    index * cells.count * cells.piece_bytes + cells.cell(number)
}

/// Takes the pieces of a number from all.
fn take_all(program: &mut Program, call: &Call, cells: &Cells, number: u64) {
    for rank in others(call) {
        let into = cells.piece(output_block(call, rank), number);
        let at = cell_of(call, cells, (rank, call.rank), number);
        taken(program, (rank, point_of_posted(number)), at, into, None);
    }
    // Said last, since all ranks come to the same points, if anybody waits for it.
    if number + cells.count < cells.pieces {
        program.then(Action::Publish(point_of_taken(number) as u32));
    }
}

#[cfg(test)]
#[path = "pipelined_tests.rs"]
mod tests;
