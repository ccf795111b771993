//! What the tests of several processes share.
#![allow(dead_code)] // Each test uses a part.

#[path = "../../src/simulation/random.rs"]
mod random;

use std::time::Duration;

use lmt::{Config, Endpoint};
use lmt_collectives::{Algorithm, Block, Group, GroupError, Kind, Memory, Operation, Reduction};
use lmt_conformance::group::Group as Ranks;

pub use random::Random;

/// The time limit of most tests; they take far less on an idle machine.
pub const LIMIT: Duration = Duration::from_secs(90);

/// An endpoint under this rank's address.
pub fn endpoint(ranks: &Ranks, change: impl FnOnce(&mut Config) + 'static) -> Endpoint {
    let builder = Endpoint::builder().id(ranks.id().member(ranks.rank())).configure(change);
    builder.build().expect("an endpoint can be made")
}

/// The group of all ranks.
pub fn group<'e>(endpoint: &'e Endpoint, ranks: &Ranks) -> Group<'e> {
    Group::from_launch(endpoint, ranks.launch()).expect("a group can be made")
}

/// What rank `from` has for rank `to` in a round: every eighth byte depends on all of
/// that and on its place.
pub fn bytes(round: u32, from: u32, to: u32, length: u64) -> Vec<u8> {
    let seed = u64::from(round) << 48 ^ u64::from(from) << 24 ^ u64::from(to);
    let word = |at: u64| {
        let mixed = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 31).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(word).collect();
    bytes.truncate(length as usize);
    bytes
}

/// The composition of affine maps modulo 2^32: associative, not commutative. An element
/// is a factor and a summand.
pub fn affine() -> Reduction {
    Reduction::custom(1, 8, false, |left, right| {
        for (left, right) in left.as_chunks::<8>().0.iter().zip(right.as_chunks_mut::<8>().0) {
            *right = composed(*left, *right);
        }
    })
}

fn composed(left: [u8; 8], right: [u8; 8]) -> [u8; 8] {
    let read = |map: [u8; 8]| {
        let word = u64::from_le_bytes(map);
        (word as u32, (word >> 32) as u32)
    };
    let ((a, b), (c, d)) = (read(left), read(right));
    let word = u64::from(a.wrapping_mul(c)) | u64::from(a.wrapping_mul(d).wrapping_add(b)) << 32;
    word.to_le_bytes()
}

/// The ranks' vectors, combined from `first` on to before `end`.
pub fn combined(round: u32, ranks: std::ops::Range<u32>, length: u64) -> Vec<u8> {
    let mut vectors = ranks.map(|rank| bytes(round, rank, 0, length));
    let first = vectors.next().expect("at least one rank");
    vectors.fold(first, |left, mut right| {
        for (left, right) in left.as_chunks::<8>().0.iter().zip(right.as_chunks_mut::<8>().0) {
            *right = composed(*left, *right);
        }
        right
    })
}

/// One call of some kind, whose result is known.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: Kind,
    pub algorithm: Option<Algorithm>,
    /// Of a block or a vector; of reductions, elements of 8 bytes.
    pub length: u64,
    pub root: u32,
    pub in_place: bool,
    /// Makes the data of different calls different.
    pub round: u32,
}

/// Runs a case and compares; what it ended with if not with success.
pub fn try_case(group: &Group<'_>, case: &Case) -> Result<(), GroupError> {
    let length = if is_reduction(case.kind) { case.length * 8 } else { case.length };
    let Case { round, in_place, .. } = *case;
    let (rank, size) = (group.rank(), group.size());
    let is_root = rank == case.root;
    let all = |to: u32| (0..size).flat_map(|from| bytes(round, from, to, length)).collect::<Vec<u8>>();
    let own = bytes(round, rank, 0, length);
    let garbage = |length: usize| vec![0xa5; length];
    let whole = length as usize * size as usize;
    let affine = affine();
    let run = |operation: Operation<'_>| group.run(operation.by(case.algorithm));
    let check = |found: &[u8], wanted: &[u8]| compare(case, rank, found, wanted);
    match case.kind {
        Kind::Barrier => run(Operation::barrier())?,
        Kind::Broadcast => {
            let wanted = bytes(round, case.root, 0, length);
            let mut data = if is_root { wanted.clone() } else { garbage(length as usize) };
            run(Operation::broadcast(case.root, writing(case, &mut data)))?;
            check(&data, &wanted);
        }
        Kind::Scatter => {
            let from: Vec<u8> = (0..size).flat_map(|to| bytes(round, case.root, to, length)).collect();
            let mut into = garbage(length as usize);
            match (is_root, in_place) {
                (true, true) => return run(Operation::scatter_in_place(case.root, reading(case, &from))),
                (true, false) => {
                    run(Operation::scatter(case.root, reading(case, &from), writing(case, &mut into)))?
                }
                (false, _) => run(Operation::scattered(case.root, writing(case, &mut into)))?,
            }
            check(&into, &bytes(round, case.root, rank, length));
        }
        Kind::Gather => {
            if !is_root {
                return run(Operation::gathered(case.root, reading(case, &own)));
            }
            let mut into = garbage(whole);
            if in_place {
                into[rank as usize * length as usize..][..length as usize].copy_from_slice(&own);
                run(Operation::gather_in_place(case.root, writing(case, &mut into)))?;
            } else {
                run(Operation::gather(case.root, reading(case, &own), writing(case, &mut into)))?;
            }
            check(&into, &all(0));
        }
        Kind::Allgather => {
            let mut into = garbage(whole);
            if in_place {
                into[rank as usize * length as usize..][..length as usize].copy_from_slice(&own);
                run(Operation::allgather_in_place(writing(case, &mut into)))?;
            } else {
                run(Operation::allgather(reading(case, &own), writing(case, &mut into)))?;
            }
            check(&into, &all(0));
        }
        Kind::Alltoall => {
            let from: Vec<u8> = (0..size).flat_map(|to| bytes(round, rank, to, length)).collect();
            let mut into = if in_place { from.clone() } else { garbage(whole) };
            if in_place {
                run(Operation::alltoall_in_place(writing(case, &mut into)))?;
            } else {
                run(Operation::alltoall(reading(case, &from), writing(case, &mut into)))?;
            }
            check(&into, &all(rank));
        }
        Kind::Reduce => {
            if !is_root {
                return run(Operation::reduced(case.root, reading(case, &own), &affine));
            }
            let mut into = if in_place { own.clone() } else { garbage(length as usize) };
            if in_place {
                run(Operation::reduce_in_place(case.root, writing(case, &mut into), &affine))?;
            } else {
                run(Operation::reduce(case.root, reading(case, &own), writing(case, &mut into), &affine))?;
            }
            check(&into, &combined(round, 0..size, length));
        }
        Kind::Allreduce | Kind::Scan | Kind::Exscan => {
            let mut into = if in_place { own.clone() } else { garbage(length as usize) };
            let before = into.clone();
            let from = &own;
            run(match (case.kind, in_place) {
                (Kind::Allreduce, true) => Operation::allreduce_in_place(writing(case, &mut into), &affine),
                (Kind::Allreduce, false) => {
                    Operation::allreduce(reading(case, from), writing(case, &mut into), &affine)
                }
                (Kind::Scan, true) => Operation::scan_in_place(writing(case, &mut into), &affine),
                (Kind::Scan, false) => {
                    Operation::scan(reading(case, from), writing(case, &mut into), &affine)
                }
                (_, true) => Operation::exscan_in_place(writing(case, &mut into), &affine),
                (_, false) => Operation::exscan(reading(case, from), writing(case, &mut into), &affine),
            })?;
            let wanted = match case.kind {
                Kind::Allreduce => combined(round, 0..size, length),
                Kind::Scan => combined(round, 0..rank + 1, length),
                _ if rank == 0 => before,
                _ => combined(round, 0..rank, length),
            };
            check(&into, &wanted);
        }
        Kind::ReduceScatter => {
            // In turns blocks of one length, and of different ones, of which the last are
            // the longest.
            let is_listed = (round / 2).is_multiple_of(2);
            let more = |rank| if is_listed { u64::from(rank) } else { 0 };
            let lengths: Vec<u64> = (0..size).map(|rank| (case.length + more(rank)) * 8).collect();
            let total = lengths.iter().sum();
            let at: u64 = lengths[..rank as usize].iter().sum();
            let vector = bytes(round, rank, 0, total);
            let part = at as usize..(at + lengths[rank as usize]) as usize;
            let wanted = &combined(round, 0..size, total)[part.clone()];
            if in_place {
                let mut data = vector;
                run(match is_listed {
                    true => Operation::reduce_scatter_in_place(writing(case, &mut data), &lengths, &affine),
                    false => Operation::reduce_scatter_block_in_place(writing(case, &mut data), &affine),
                })?;
                check(&data[..part.len()], wanted);
            } else {
                let mut into = garbage(part.len());
                run(match is_listed {
                    true => Operation::reduce_scatter(
                        reading(case, &vector),
                        writing(case, &mut into),
                        &lengths,
                        &affine,
                    ),
                    false => Operation::reduce_scatter_block(
                        reading(case, &vector),
                        writing(case, &mut into),
                        &affine,
                    ),
                })?;
                check(&into, wanted);
            }
        }
    }
    Ok(())
}

/// The memory of a call that reads it: in some rounds in segments, cut anywhere.
fn reading<'a>(case: &Case, mut bytes: &'a [u8]) -> Memory<'a> {
    let mut parts = Vec::new();
    for at in cuts(case, bytes.len()) {
        let (part, rest) = bytes.split_at(at);
        parts.push(part);
        bytes = rest;
    }
    parts.push(bytes);
    Memory::segments(&parts)
}

/// The memory of a call that writes it.
fn writing<'a>(case: &Case, mut bytes: &'a mut [u8]) -> Memory<'a> {
    let mut parts = Vec::new();
    for at in cuts(case, bytes.len()) {
        let (part, rest) = bytes.split_at_mut(at);
        parts.push(part);
        bytes = rest;
    }
    parts.push(bytes);
    Memory::segments_mut(parts)
}

/// How long the segments are, but for the last: none, one or two in turns.
fn cuts(case: &Case, length: usize) -> Vec<usize> {
    let mut random = Random(u64::from(case.round) << 32 | length as u64);
    let mut left = length;
    let cut = |_| {
        let at = random.below(left as u64 + 1) as usize;
        left -= at;
        at
    };
    (0..case.round % 3).map(cut).collect()
}

pub const fn is_reduction(kind: Kind) -> bool {
    matches!(kind, Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan)
}

fn compare(case: &Case, rank: u32, found: &[u8], wanted: &[u8]) {
    if let Some(at) = found.iter().zip(wanted).position(|(a, b)| a != b) {
        panic!(
            "{case:?}, rank {rank}: byte {at} of {} is {:#x} instead of {:#x}",
            wanted.len(),
            found[at],
            wanted[at]
        );
    }
    assert_eq!(found.len(), wanted.len(), "{case:?}");
}

/// Blocks of these lengths with gaps between, in an order of their own, and how long
/// the memory is that they lie in.
pub fn scattered_blocks(lengths: &[u64], gap: u64, turn: usize) -> (Vec<Block>, u64) {
    let mut blocks = vec![Block::default(); lengths.len()];
    let mut offset = gap;
    for step in 0..lengths.len() {
        let rank = (step * (lengths.len().max(2) - 1) + turn) % lengths.len();
        blocks[rank] = Block { offset, bytes: lengths[rank] };
        offset += lengths[rank] + gap;
    }
    (blocks, offset)
}
