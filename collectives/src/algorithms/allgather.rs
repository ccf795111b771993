//! Allgather: one block of each rank's to all.
#![forbid(unsafe_code)]

use std::ops::Range;

use super::common::{
    after, await_all, before, block_of, copy, doublings, get, meet, others, output_block, output_tables,
    post, put, receive, send, step, take, within,
};
use super::{Unsuitable, suits};
use crate::algorithm::Algorithm;
use crate::call::{Blocks, Call};
use crate::program::{Action, Exposed, Place, Program, Remote, Span, Tables};

/// This rank's program.
pub(super) fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(ring_messages(call)),
        Algorithm::RingNeighbor(j) => ring_neighbor(call, j),
        Algorithm::RingSourceRead => Ok(ring_source_read(call)),
        Algorithm::RingSourceWrite => Ok(ring_source_write(call)),
        Algorithm::RecursiveDoubling => Ok(recursive_doubling(call)),
        Algorithm::Bruck | Algorithm::BruckMessages => Ok(bruck(call, algorithm)),
        _ => Err(Unsuitable::kind(algorithm, call.kind)),
    }
}

/// Where this rank's block comes from.
pub(super) fn own(call: &Call) -> Span {
    if call.in_place {
        output_block(call, call.rank)
    } else {
        Span::input(0, call.blocks.of(call.rank).bytes)
    }
}

/// It goes into the output.
fn own_copy(call: &Call) -> Option<Action> {
    copy(own(call), output_block(call, call.rank))
}

/// A program in which others read this rank's block where it comes from, if
/// `sources`, and reach into its output, if `outputs`. In place these are one.
fn open(call: &Call, sources: bool, outputs: bool) -> Program {
    let output = outputs || (sources && call.in_place);
    Program {
        exposed: Exposed { input: sources && !call.in_place, output, work: false },
        tables: if output { output_tables(&call.blocks) } else { Tables::default() },
        ..Program::default()
    }
}

/// Where another rank's output has a block.
fn there(call: &Call, of: u32) -> Remote {
    block_of(&call.blocks, Place::Output, of)
}

/// A block read out of another rank's output into this one's.
fn fetch(call: &Call, from: u32, of: u32) -> Option<Action> {
    get(from, there(call, of), output_block(call, of))
}

/// A rank's block read where it comes from. The inputs are as before the call, so
/// nobody waits for a copy, and who calls again with the same ones finds them in
/// its cache.
fn fetch_source(call: &Call, from: u32) -> Option<Action> {
    let source = if call.in_place { there(call, from) } else { Remote::At(Place::Input, 0) };
    get(from, source, output_block(call, from))
}

/// All post, all take.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    for rank in 0..call.size {
        suits::fits_slot(call, call.blocks.of(rank).bytes)?;
    }
    let mut program = Program::default();
    program.before.extend(post(own(call), 0));
    let takes = others(call).map(|from| take(from, 0, output_block(call, from)));
    step(&mut program, takes.chain([own_copy(call)]));
    Ok(program)
}

/// To the rank after this one goes what came from the one before it. Few messages
/// at a time; [`bruck`] by messages has fewer steps, for short blocks.
fn ring_messages(call: &Call) -> Program {
    let (rank, size) = (call.rank, call.size);
    let mut program = Program::default();
    step(&mut program, [own_copy(call)]);
    for number in 1..size {
        let arriving = output_block(call, before(rank, number, size));
        let leaving = output_block(call, before(rank, number - 1, size));
        let messages = [receive(before(rank, 1, size), arriving), send(after(rank, 1, size), leaving)];
        step(&mut program, messages);
    }
    program
}

const fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Whether a ring in steps of `j` comes by all ranks (V.A.1).
pub(crate) const fn goes_round(size: u32, j: u32) -> bool {
    size <= 1 || common_divisor(size, j) == 1
}

/// The distances at which a ring comes by all ranks, as they are told to a user.
fn distances(size: u32) -> String {
    const SHOWN: usize = 8;
    let mut good = (1..size).filter(|&j| common_divisor(size, j) == 1).map(|j| j.to_string());
    let shown: Vec<String> = good.by_ref().take(SHOWN).collect();
    let more = if good.next().is_some() { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Each rank reads from the one `j` before it what that has read last.
fn ring_neighbor(call: &Call, j: u32) -> Result<Program, Unsuitable> {
    let (rank, size) = (call.rank, call.size);
    if !goes_round(size, j) {
        let reason = format!(
            "in steps of {j} a ring does not come by all of {size} ranks; those without a common divisor do: {}",
            distances(size)
        );
        return Err(Unsuitable { algorithm: Algorithm::RingNeighbor(j), reason });
    }
    let mut program = open(call, size > 1, size > 2);
    let (mut of, left) = (rank, before(rank, j % size, size));
    for number in 0..size - 1 {
        of = before(of, j % size, size);
        if number == 0 {
            step(&mut program, [fetch_source(call, left)]);
        } else {
            meet(&mut program, number, [(left, number)]);
            step(&mut program, [fetch(call, left, of)]);
        }
    }
    let right = after(rank, j, size);
    end(call, &mut program, size, (size > 1).then_some((right, size)));
    Ok(program)
}

/// Says that this rank has all but its own block, which it copies last, and waits
/// for these ranks and points.
fn end(call: &Call, program: &mut Program, point: u32, points: impl IntoIterator<Item = (u32, u32)>) {
    step(program, [Some(Action::Publish(point)), own_copy(call)]);
    await_all(program, points);
}

/// Each rank reads each block where it comes from.
fn ring_source_read(call: &Call) -> Program {
    let (rank, size) = (call.rank, call.size);
    let mut program = open(call, size > 1, false);
    for number in 1..size {
        step(&mut program, [fetch_source(call, before(rank, number, size))]);
    }
    end(call, &mut program, 1, all_others(call));
    program
}

/// Each rank writes its block to all.
fn ring_source_write(call: &Call) -> Program {
    let mut program = open(call, false, call.size > 1);
    for to in others(call) {
        step(&mut program, [put(to, own(call), there(call, call.rank))]);
    }
    end(call, &mut program, 1, all_others(call));
    program
}

fn all_others(call: &Call) -> impl Iterator<Item = (u32, u32)> {
    others(call).map(|rank| (rank, 1))
}

/// Successive blocks out of another rank's output.
fn fetch_range(call: &Call, from: u32, of: Range<u32>) -> Vec<Option<Action>> {
    match call.blocks {
        Blocks::Equal(bytes) if !of.is_empty() => {
            let into = within(output_block(call, of.start), 0, bytes * u64::from(of.end - of.start));
            vec![get(from, there(call, of.start), into)]
        }
        _ => of.map(|of| fetch(call, from, of)).collect(),
    }
}

/// Twice as much from twice as far in each step. Of other numbers of ranks than
/// powers of two, those past the largest one (`main`) each leave their block with
/// a rank before that and get everything from it at the end.
fn recursive_doubling(call: &Call) -> Program {
    let (rank, size) = (call.rank, call.size);
    let main = 1 << size.ilog2();
    let rest = size - main;
    let all = main.ilog2() + 1;
    if rank >= main {
        let mut program = open(call, true, false);
        let partner = rank - main;
        await_all(&mut program, [(partner, all)]);
        let (lower, higher) =
            (fetch_range(call, partner, 0..rank), fetch_range(call, partner, rank + 1..size));
        step(&mut program, lower.into_iter().chain(higher));
        end(call, &mut program, 1, None);
        return program;
    }
    let mut program = open(call, rest == 0 && main > 1, rest > 0 || main > 2);
    if rest > 0 {
        let left = (rank < rest).then(|| fetch_source(call, main + rank)).flatten();
        step(&mut program, [left, own_copy(call)]);
    }
    for (distance, point) in doublings(main).zip(1..) {
        let peer = rank ^ distance;
        if rest == 0 && point == 1 {
            step(&mut program, [fetch_source(call, peer), own_copy(call)]);
            continue;
        }
        meet(&mut program, point, [(peer, point)]);
        let first = peer & !(distance - 1);
        let moved = fetch_range(call, peer, first..first + distance);
        let left = fetch_range(call, peer, main + first.min(rest)..main + (first + distance).min(rest));
        step(&mut program, moved.into_iter().chain(left));
    }
    if size == 1 {
        step(&mut program, [own_copy(call)]);
    }
    let readers = doublings(main).zip(2..).map(|(distance, point)| (rank ^ distance, point));
    meet(&mut program, all, readers.chain((rank < rest).then_some((main + rank, 1))));
    program
}

/// Bruck's: each rank has its block and those of the ranks after it, one after the
/// other in scratch memory, twice as many after each step; at the end they are
/// turned to where they belong.
fn bruck(call: &Call, algorithm: Algorithm) -> Program {
    let native = algorithm == Algorithm::Bruck;
    let (rank, size) = (call.rank, call.size);
    let mut program = Program::default();
    program.exposed.work = native && size > 1;
    // How long the blocks of so many ranks from one on are.
    let length = |first: u32, count: u32| -> u64 {
        let lengths = (0..count).map(|j| call.blocks.of(after(first, j, size)).bytes);
        lengths.fold(0, u64::saturating_add)
    };
    program.work_bytes = length(rank, size);
    program.before.extend(copy(own(call), Span::work(0, length(rank, 1))));
    for (distance, point) in doublings(size).zip(0..) {
        let count = distance.min(size - distance);
        let (from, to) = (after(rank, distance, size), before(rank, distance, size));
        let into = Span::work(length(rank, distance), length(from, count));
        if !native {
            step(&mut program, [receive(from, into), send(to, Span::work(0, length(rank, count)))]);
            continue;
        }
        if point > 0 {
            meet(&mut program, point, [(from, point)]);
        }
        step(&mut program, [get(from, Remote::At(Place::Work, 0), into)]);
    }
    let done = doublings(size).count() as u32;
    let published = native.then_some(Action::Publish(done));
    step(&mut program, [published].into_iter().chain(turned(call)));
    if native {
        let readers = doublings(size).zip(1..);
        await_all(&mut program, readers.map(|(distance, point)| (before(rank, distance, size), point)));
    }
    program
}

/// The copies of [`bruck`]'s end: two where the blocks are equal.
fn turned(call: &Call) -> Vec<Option<Action>> {
    let (rank, size) = (call.rank, call.size);
    if let Blocks::Equal(bytes) = call.blocks {
        let (ours, wrapped) = (u64::from(size - rank) * bytes, u64::from(rank) * bytes);
        let first = copy(Span::work(0, ours), Span::output(wrapped, ours));
        return vec![first, copy(Span::work(ours, wrapped), Span::output(0, wrapped))];
    }
    let mut end = 0_u64;
    let copies = (0..size).map(|j| {
        let into = output_block(call, after(rank, j, size));
        let from = Span::work(end, into.bytes);
        end = end.saturating_add(into.bytes);
        copy(from, into)
    });
    copies.collect()
}

#[cfg(test)]
#[path = "allgather_tests.rs"]
mod tests;
