//! Alltoall: one block of each rank's to each.
#![forbid(unsafe_code)]

use super::common::{
    after, await_all, before, block_of, copy, doublings, get, index_of, meet, others, output_block,
    output_tables, post, post_others, receive, send, step, take, within,
};
use super::{Unsuitable, suits};
use crate::algorithm::Algorithm;
use crate::call::{Blocks, Call};
use crate::program::{Action, Exposed, Place, Program, Remote, Span, Tables};

/// This rank's program.
pub(super) fn program(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    match algorithm {
        Algorithm::Slots => slots(call),
        Algorithm::Messages => Ok(messages(call)),
        Algorithm::Pairwise if call.in_place => Ok(pairwise_in_place(call)),
        Algorithm::Pairwise => Ok(pairwise(call)),
        Algorithm::PairwiseMessages => Ok(pairwise_messages(call)),
        Algorithm::Bruck | Algorithm::BruckMessages => bruck(call, algorithm),
        _ => Err(Unsuitable::kind(algorithm, call.kind)),
    }
}

/// What this rank sends to another: in place out of the output.
pub(super) fn source(call: &Call, to: u32) -> Span {
    if call.in_place {
        return output_block(call, to);
    }
    let block = call.input_blocks.of(to);
    Span::input(block.offset, block.bytes)
}

/// This rank's own block.
fn own_copy(call: &Call) -> Option<Action> {
    copy(source(call, call.rank), output_block(call, call.rank))
}

/// What to send to the ranks asked for: in place their blocks are set aside
/// first, since others come to where they are.
fn set_aside(call: &Call, program: &mut Program, asked: impl Fn(u32) -> bool) -> Vec<Span> {
    let mut sources = Vec::with_capacity(call.size as usize);
    for to in 0..call.size {
        let mut span = source(call, to);
        if call.in_place && to != call.rank && asked(to) {
            let aside = Span::work(program.work_bytes, span.bytes);
            program.work_bytes = program.work_bytes.saturating_add(span.bytes);
            program.before.extend(copy(span, aside));
            span = aside;
        }
        sources.push(span);
    }
    sources
}

/// Everything is posted, then each takes its blocks out of all slots.
///
/// Equal blocks lie in a slot as in the input, without the rank's own. Of listed ones
/// both ends know the length but nobody all of them: each has an equal share of the slot
/// for itself, and a block that is longer than that goes by a message.
fn slots(call: &Call) -> Result<Program, Unsuitable> {
    let Blocks::Equal(bytes) = call.blocks else { return Ok(listed_slots(call)) };
    suits::fits_slot(call, bytes.saturating_mul(u64::from(call.size - 1)))?;
    let mut program = Program::default();
    program.before.extend(post_others(source(call, 0), call.size, call.rank));
    let takes =
        others(call).map(|from| take(from, index_of(call.rank, from) * bytes, output_block(call, from)));
    step(&mut program, takes.chain([own_copy(call)]));
    Ok(program)
}

fn listed_slots(call: &Call) -> Program {
    let mut program = Program::default();
    let share = call.slot_bytes / u64::from(call.size);
    let at = |rank: u32| u64::from(rank) * share;
    let sources = set_aside(call, &mut program, |to| source(call, to).bytes > share);
    let mut exchange = vec![own_copy(call)];
    for to in others(call) {
        let from = sources[to as usize];
        if from.bytes <= share {
            program.before.extend(post(from, at(to)));
        } else {
            exchange.push(send(to, from));
        }
    }
    exchange.extend(others(call).map(|from| {
        let into = output_block(call, from);
        if into.bytes <= share { take(from, at(call.rank), into) } else { receive(from, into) }
    }));
    step(&mut program, exchange);
    program
}

/// With whom a rank is in a step: to whom it sends, and from whom it receives.
/// For powers of two these are the same (section IV.C.1).
const fn partners(call: &Call, step: u32) -> (u32, u32) {
    if call.size.is_power_of_two() {
        return (call.rank ^ step, call.rank ^ step);
    }
    (after(call.rank, step, call.size), before(call.rank, step, call.size))
}

/// All messages begin at once: the latency of one, for many small ones.
/// [`pairwise_messages`] keeps to one partner at a time.
fn messages(call: &Call) -> Program {
    let mut program = Program::default();
    let sources = set_aside(call, &mut program, |_| true);
    let receives = others(call).map(|from| message_from(call, from));
    let sends = others(call).map(|to| message_to(call, to, &sources));
    step(&mut program, receives.chain(sends).chain([own_copy(call)]));
    program
}

/// In each step one message to one rank and one from another.
fn pairwise_messages(call: &Call) -> Program {
    let mut program = Program::default();
    let sources = set_aside(call, &mut program, |_| true);
    step(&mut program, [own_copy(call)]);
    for number in 1..call.size {
        let (to, from) = partners(call, number);
        step(&mut program, [message_from(call, from), message_to(call, to, &sources)]);
    }
    program
}

/// Listed blocks without bytes are messages too: only so can a rank whose lists
/// differ from another's get an error rather than wait.
fn message_to(call: &Call, to: u32, sources: &[Span]) -> Option<Action> {
    let from = sources[to as usize];
    match call.blocks {
        Blocks::Equal(_) => send(to, from),
        Blocks::Listed(_) => Some(Action::Send { rank: to, from }),
    }
}

fn message_from(call: &Call, from: u32) -> Option<Action> {
    let into = output_block(call, from);
    match call.blocks {
        Blocks::Equal(_) => receive(from, into),
        Blocks::Listed(_) => Some(Action::Receive { rank: from, into }),
    }
}

/// In each step each rank reads from another one.
fn pairwise(call: &Call) -> Program {
    let listed = matches!(call.input_blocks, Blocks::Listed(_));
    let mut program = Program {
        exposed: Exposed { input: call.size > 1, ..Exposed::default() },
        tables: Tables { input: listed, output: false },
        ..Program::default()
    };
    for number in 1..call.size {
        let (_, from) = partners(call, number);
        let remote = block_of(&call.input_blocks, Place::Input, call.rank);
        step(&mut program, [get(from, remote, output_block(call, from))]);
    }
    end_of_reads(call, &mut program);
    program
}

/// The same where the blocks read are those to be replaced: what is read stays
/// aside until all have read.
fn pairwise_in_place(call: &Call) -> Program {
    let mut program = Program {
        exposed: Exposed { output: call.size > 1, ..Exposed::default() },
        tables: output_tables(&call.blocks),
        ..Program::default()
    };
    let mut back = Vec::new();
    for number in 1..call.size {
        let (_, from) = partners(call, number);
        let into = output_block(call, from);
        let aside = Span::work(program.work_bytes, into.bytes);
        program.work_bytes = program.work_bytes.saturating_add(into.bytes);
        let remote = block_of(&call.blocks, Place::Output, call.rank);
        step(&mut program, [get(from, remote, aside)]);
        back.push(copy(aside, into));
    }
    end_of_reads(call, &mut program);
    step(&mut program, back);
    program
}

/// Says that this rank has read all, copies its own block, which keeps nobody
/// waiting then, and waits until all who read from this rank have done so.
fn end_of_reads(call: &Call, program: &mut Program) {
    step(program, [Some(Action::Publish(1)), own_copy(call)]);
    let readers = others(call).filter(|&to| source(call, to).bytes > 0);
    await_all(program, readers.map(|reader| (reader, 1)));
}

/// Bruck's: in the step of distance `d`, a block that has to go `j` ranks further
/// goes `d` of them if `j` has that bit. Blocks are packed into scratch memory of
/// that step's own, so nobody waits before packing again.
fn bruck(call: &Call, algorithm: Algorithm) -> Result<Program, Unsuitable> {
    let Blocks::Equal(bytes) = call.blocks else {
        let reason = "it needs blocks of one length; pairwise does others".to_owned();
        return Err(Unsuitable { algorithm, reason });
    };
    let native = algorithm == Algorithm::Bruck;
    let (rank, size) = (call.rank, call.size);
    let mut program = Program::default();
    program.exposed.work = native && size > 1;
    // Where the block is now that has to go so many ranks further.
    let mut held: Vec<Span> = (0..size).map(|j| source(call, after(rank, j, size))).collect();
    for (number, distance) in (0..).zip(doublings(size)) {
        let moved: Vec<u32> = (1..size).filter(|j| j & distance != 0).collect();
        let packed = Span::work(program.work_bytes, moved.len() as u64 * bytes);
        let arrived = within(packed, packed.bytes, packed.bytes);
        let Some(end) = arrived.offset.checked_add(arrived.bytes) else {
            let reason = "it needs more than 2^64 bytes of scratch memory; pairwise needs less".to_owned();
            return Err(Unsuitable { algorithm, reason });
        };
        program.work_bytes = end;
        let mut packing = Vec::new();
        for (&j, index) in moved.iter().zip(0..) {
            packing.push(copy(held[j as usize], within(packed, index * bytes, bytes)));
            held[j as usize] = within(arrived, index * bytes, bytes);
        }
        let (to, from) = (after(rank, distance, size), before(rank, distance, size));
        if !native {
            step(&mut program, packing);
            step(&mut program, [receive(from, arrived), send(to, packed)]);
            continue;
        }
        if number == 0 {
            program.before.extend(packing.into_iter().flatten());
        } else {
            step(&mut program, packing);
            meet(&mut program, number, [(from, number)]);
        }
        step(&mut program, [get(from, Remote::At(Place::Work, packed.offset), arrived)]);
    }
    let done = doublings(size).count() as u32;
    let unpacking =
        (0..size).map(|j| copy(held[j as usize], output_block(call, before(rank, j % size, size))));
    let published = native.then_some(Action::Publish(done));
    step(&mut program, [published].into_iter().chain(unpacking));
    if native {
        let readers = doublings(size).zip(1..).map(|(distance, point)| (after(rank, distance, size), point));
        await_all(&mut program, readers);
    }
    Ok(program)
}

#[cfg(test)]
#[path = "alltoall_tests.rs"]
mod tests;
