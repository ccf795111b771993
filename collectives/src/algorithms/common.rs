//! What programs are put together from.
#![forbid(unsafe_code)]

use crate::algorithm::Kind;
use crate::call::{Blocks, Call};
use crate::program::{Action, Place, Program, Remote, Span, Tables};

/// A piece of a span.
pub(super) const fn within(span: Span, offset: u64, bytes: u64) -> Span {
    Span { place: span.place, offset: span.offset.saturating_add(offset), bytes }
}

/// With more pieces than that a program would grow long, and what the last one adds
/// to the time is nothing against the whole.
pub(super) const MAX_PIECES: u64 = 1 << 14;

/// How long the pieces are that so many bytes are cut into: as long as wanted but of
/// whole units, at least one, and longer if there were more than `most`.
pub(super) fn piece_bytes(bytes: u64, wanted_bytes: u64, unit_bytes: u64, most: u64) -> u64 {
    let unit_bytes = unit_bytes.max(1);
    let least = bytes.div_ceil(unit_bytes).div_ceil(most);
    (wanted_bytes / unit_bytes).max(least).max(1).saturating_mul(unit_bytes)
}

/// Where in the outputs the pieces are ([`piece_bytes`]) that so many bytes are cut
/// into.
pub(super) fn pieces(bytes: u64, wanted_bytes: u64, unit_bytes: u64) -> impl Iterator<Item = Span> {
    let each = piece_bytes(bytes, wanted_bytes, unit_bytes, MAX_PIECES);
    (0..bytes.div_ceil(each)).map(move |index| {
        let begin = index * each;
        Span::output(begin, each.min(bytes - begin))
    })
}

/// The other ranks, from the one after this on, round to the one before it: if
/// all go through them in step, no two are at the same one.
pub(super) fn others(call: &Call) -> impl Iterator<Item = u32> + use<> {
    let (rank, size) = (call.rank, call.size);
    (1..size).map(move |step| after(rank, step, size))
}

/// Where a rank's block is among those that another has for all but itself.
pub(super) const fn index_of(of: u32, owner: u32) -> u64 {
    (if of > owner { of - 1 } else { of }) as u64
}

/// Posts equal blocks of all ranks but its owner's, which follow each other from
/// `first` on, without a gap.
pub(super) fn post_others(first: Span, size: u32, owner: u32) -> impl Iterator<Item = Action> {
    let (bytes, before) = (first.bytes, u64::from(owner) * first.bytes);
    let after = u64::from(size - owner - 1) * bytes;
    let lower = post(Span { bytes: before, ..first }, 0);
    let higher = post(Span { bytes: after, ..within(first, before.saturating_add(bytes), 0) }, before);
    lower.into_iter().chain(higher)
}

/// The rank that many after one.
pub(super) const fn after(rank: u32, step: u32, size: u32) -> u32 {
    ((rank as u64 + step as u64) % size as u64) as u32
}

/// The rank that many, less than `size`, before one.
pub(super) const fn before(rank: u32, step: u32, size: u32) -> u32 {
    after(rank, size - step, size)
}

/// 1, 2, 4 and so on, below the number of ranks.
pub(super) fn doublings(size: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|bit| 1 << bit).take_while(move |&distance| distance < size)
}

/// A copy within this rank, if there is anything to copy.
pub(super) fn copy(from: Span, into: Span) -> Option<Action> {
    (into.bytes > 0 && from != into).then_some(Action::Copy { from, into })
}

/// Whether its blocks are listed, so that they may be of different lengths.
pub(super) fn has_lists(call: &Call) -> bool {
    let is_listed = |blocks: &Blocks| matches!(blocks, Blocks::Listed(_));
    let reads_input_blocks = call.kind == Kind::Alltoall && !call.in_place;
    is_listed(&call.blocks) || (reads_input_blocks && is_listed(&call.input_blocks))
}

/// A copy out of a rank's memory, if there is anything to copy.
pub(super) fn get(rank: u32, from: Remote, into: Span) -> Option<Action> {
    (into.bytes > 0).then_some(Action::Get { rank, from, into })
}

/// A copy into a rank's memory, if there is anything to copy.
pub(super) fn put(rank: u32, from: Span, into: Remote) -> Option<Action> {
    (from.bytes > 0).then_some(Action::Put { rank, from, into })
}

/// A message, if there is anything to send.
pub(super) fn send(rank: u32, from: Span) -> Option<Action> {
    (from.bytes > 0).then_some(Action::Send { rank, from })
}

/// Its other side.
pub(super) fn receive(rank: u32, into: Span) -> Option<Action> {
    (into.bytes > 0).then_some(Action::Receive { rank, into })
}

/// A copy into this rank's slot, if there is anything to copy.
pub(super) fn post(from: Span, at: u64) -> Option<Action> {
    (from.bytes > 0).then_some(Action::Post { from, at })
}

/// A copy out of a rank's slot, if there is anything to copy.
pub(super) fn take(rank: u32, at: u64, into: Span) -> Option<Action> {
    (into.bytes > 0).then_some(Action::Take { rank, at, into })
}

/// `into = from op into`, if there is anything to combine.
pub(super) fn combine_before(from: Span, into: Span) -> Option<Action> {
    (into.bytes > 0).then_some(Action::CombineBefore { from, into })
}

/// `into = into op from`, if there is anything to combine.
pub(super) fn combine_after(from: Span, into: Span) -> Option<Action> {
    (into.bytes > 0).then_some(Action::CombineAfter { from, into })
}

/// Adds a step of those actions that there are.
pub(super) fn step(program: &mut Program, actions: impl IntoIterator<Item = Option<Action>>) {
    program.then_all(actions.into_iter().flatten().collect());
}

/// Adds a step that waits for these ranks and points.
pub(super) fn await_all(program: &mut Program, points: impl IntoIterator<Item = (u32, u32)>) {
    program.then_all(points.into_iter().map(|(rank, point)| Action::Await { rank, point }).collect());
}

/// Adds a step that says that this rank is at a point and waits for others.
pub(super) fn meet(program: &mut Program, point: u32, points: impl IntoIterator<Item = (u32, u32)>) {
    let awaits = points.into_iter().map(|(rank, point)| Action::Await { rank, point });
    program.then_all([Action::Publish(point)].into_iter().chain(awaits).collect());
}

/// Where a rank's block of its input or output is that belongs to another rank.
pub(super) fn block_of(blocks: &Blocks, place: Place, of: u32) -> Remote {
    match blocks {
        Blocks::Equal(_) => Remote::At(place, blocks.of(of).offset),
        Blocks::Listed(_) => Remote::Listed { place, of },
    }
}

/// The tables that [`block_of`] needs of the output.
pub(super) const fn output_tables(blocks: &Blocks) -> Tables {
    Tables { input: false, output: matches!(blocks, Blocks::Listed(_)) }
}

/// A rank's block of the output.
pub(super) fn output_block(call: &Call, of: u32) -> Span {
    let block = call.blocks.of(of);
    Span::output(block.offset, block.bytes)
}
