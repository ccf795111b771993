//! Broadcast along NUMA nodes and caches, in pieces, so that what lies between them is
//! crossed once for each (knem-jpdc2013, 3.3, figure 3, and 5.5).

use crate::call::Call;
use crate::program::{Action, Program, Span};

use super::common::{await_all, pieces, step};
use super::rooted::{read, whole};

/// One rank of each NUMA node, its leader, reads from the root; one of each cache of the
/// node reads from that one, and the others from the leader of their cache. Who is read
/// by others reads piece by piece, and says of each that it has come while it reads the
/// next: so a piece goes on to the caches while the next one comes to the node, and is
/// read out of the cache that its readers share. The root leads its own node and cache.
/// Who reads from the root and is read by nobody reads all in one piece, so that in one
/// domain this is the direct read.
pub fn hierarchical(call: &Call, piece_bytes: u64) -> Program {
    let mut program = Program::default();
    let pieces: Vec<Span> = pieces(call.bytes, piece_bytes, 1024).collect();
    // Points are pieces that have come; the last one is that of the end.
    let last = pieces.len().max(1) as u32;
    let readers: Vec<u32> = (0..call.size).filter(|&other| source(call, other) == Some(call.rank)).collect();
    program.exposed.output = !readers.is_empty();
    if let Some(source) = source(call, call.rank) {
        if readers.is_empty() && source == call.root {
            step(&mut program, [read(source, whole(call))]);
        } else {
            pass_on(&mut program, call, source, &pieces, !readers.is_empty());
        }
        program.then(Action::Publish(last));
    }
    await_all(&mut program, readers.into_iter().map(|rank| (rank, last)));
    program
}

/// Reads from a source piece by piece. Of one that has everything from the beginning
/// none is awaited; where nobody reads from this rank, only the end is worth saying.
fn pass_on(program: &mut Program, call: &Call, source: u32, pieces: &[Span], is_read: bool) {
    let comes_later = source != call.root;
    for (come, piece) in (0..).zip(pieces) {
        let said = (is_read && come > 0).then_some(Action::Publish(come));
        let read = read(source, *piece);
        if comes_later {
            step(program, [said, Some(Action::Await { rank: source, point: come + 1 })]);
            step(program, [read]);
        } else {
            step(program, [said, read]);
        }
    }
}

/// From whom a rank reads; nobody is the root's source.
fn source(call: &Call, rank: u32) -> Option<u32> {
    if rank == call.root {
        return None;
    }
    let node = leader_of_node(call, rank);
    let cache = leader_of_cache(call, rank);
    Some(match rank {
        _ if rank == node => call.root,
        _ if rank == cache => node,
        _ => cache,
    })
}

/// Who reads from the root for a rank's node.
fn leader_of_node(call: &Call, rank: u32) -> u32 {
    let node = |rank: u32| call.domains[rank as usize].node;
    if node(rank) == node(call.root) { call.root } else { node(rank) }
}

/// Who reads from the leader of its node for a rank's cache.
fn leader_of_cache(call: &Call, rank: u32) -> u32 {
    let cache = |rank: u32| call.domains[rank as usize].cache;
    let node = leader_of_node(call, rank);
    if cache(rank) == cache(node) { node } else { cache(rank) }
}

#[cfg(test)]
#[path = "hierarchical_tests.rs"]
mod tests;
