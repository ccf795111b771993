//! Broadcast by reads along a tree, so that not all read from the root.

use crate::call::Call;
use crate::program::{Action, Program, Span};

use super::broadcast::{read, whole};
use super::common::{await_all, pieces, step};
use super::rooted::{MOVED, at, from_root};

/// In each round everybody who has the message is read from by `readers` others at
/// a time (V.B.2), so that there are `readers` + 1 times as many after it, and
/// ceil(log(readers + 1) p) rounds. (The paper says the logarithm to the base k,
/// which does not count the source itself.)
///
/// Ranks count from the root. With `wide` ranks in the tree, rank `v < wide` is read
/// by `v + wide`, `v + 2 wide`, up to `v + readers wide`. There are no rounds that
/// all keep to: a reader waits for the one that reads from the same source, at the
/// same place in line, one round before; for the source itself in the source's first
/// round. So a source has never more than `readers` at a time, and who has the
/// message does not wait for the slowest of a round. A rank ends when the last one
/// at each place of its line has read.
pub fn knomial(call: &Call, readers: u32) -> Program {
    let mut program = Program::default();
    let (own, size) = (u64::from(from_root(call)), u64::from(call.size));
    let moved = |other: u64| Action::Await { rank: at(call, other as u32), point: MOVED };
    let grow = |wide: u64| wide * (u64::from(readers) + 1);

    // How wide the tree is when this rank joins it.
    let mut wide = 1;
    while own > 0 && grow(wide) <= own {
        wide = grow(wide);
    }
    if own > 0 {
        let (source, place) = (own % wide, own / wide);
        let narrower = wide / grow(1);
        let before = if source < narrower { source + place * narrower } else { source };
        // Nobody is to be waited for where the root is read from first.
        if before > 0 {
            program.then(moved(before));
        }
        step(&mut program, [read(at(call, source as u32), whole(call))]);
        program.then(Action::Publish(MOVED));
        wide = grow(wide);
    }

    let places = (1..=u64::from(readers)).map_while(|place| last_at(own, place, wide, size, grow));
    let lasts: Vec<Action> = places.map(moved).collect();
    program.exposed.output = !lasts.is_empty();
    program.then_all(lasts);
    program
}

/// The last that reads from `source` at a place in its line, if any does.
fn last_at(source: u64, place: u64, first: u64, size: u64, grow: impl Fn(u64) -> u64) -> Option<u64> {
    let reader = |wide: u64| Some(source + place * wide).filter(|&reader| reader < size);
    let mut last = reader(first)?;
    let mut wide = grow(first);
    while let Some(next) = reader(wide) {
        last = next;
        wide = grow(wide);
    }
    Some(last)
}

/// One rank of each domain, its leader, reads from the root, piece by piece; the
/// others of the domain read each piece from the leader as soon as it is there, out
/// of the cache that they share, while the leader reads the next (knem-jpdc2013,
/// 3.3, figure 3, and 5.5). The root leads its own domain. Who reads from the root
/// and is read by nobody reads all in one piece.
pub fn hierarchical(call: &Call, piece_bytes: u64) -> Program {
    let mut program = Program::default();
    let leader = leader(call, call.rank);
    let pieces: Vec<_> = pieces(call.bytes, piece_bytes, 1024).collect();
    // Points are pieces that have come; the last one is that of the end.
    let last = pieces.len().max(1) as u32;
    let reads_from_me = |&other: &u32| other != call.root && source(call, other) == call.rank;
    let readers: Vec<u32> = (0..call.size).filter(reads_from_me).collect();
    program.exposed.output = !readers.is_empty();
    if call.rank != call.root {
        if readers.is_empty() && (leader == call.rank || leader == call.root) {
            step(&mut program, [read(call.root, whole(call))]);
        } else if leader == call.rank {
            lead(&mut program, call, &pieces);
        } else {
            for (point, piece) in (1..).zip(&pieces) {
                program.then(Action::Await { rank: leader, point });
                step(&mut program, [read(leader, *piece)]);
            }
        }
        program.then(Action::Publish(last));
    }
    await_all(&mut program, readers.into_iter().map(|rank| (rank, last)));
    program
}

/// Reads from the root, which has everything from the beginning, piece by piece,
/// saying of each but the last that it has come while it reads the next.
fn lead(program: &mut Program, call: &Call, pieces: &[Span]) {
    for (come, piece) in (0..).zip(pieces) {
        let said = (come > 0).then_some(Action::Publish(come));
        step(program, [said, read(call.root, *piece)]);
    }
}

/// Who reads from the root for a rank's domain.
fn leader(call: &Call, rank: u32) -> u32 {
    let domain = |rank: u32| call.domains[rank as usize];
    if domain(rank) == domain(call.root) { call.root } else { domain(rank) }
}

/// From whom a rank that is not the root reads.
fn source(call: &Call, rank: u32) -> u32 {
    let leader = leader(call, rank);
    if leader == rank { call.root } else { leader }
}
