//! The forms with blocks of any lengths, anywhere, in segments too.
#![cfg(not(loom))]

mod common;

use lmt_collectives::{Algorithm, Block, Group, GroupError, Kind, Memory, Operation};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

use common::{LIMIT, bytes, endpoint, group, scattered_blocks};

/// What rank `to` has of rank `from` in a round; some have nothing.
fn length(round: u32, from: u32, to: u32) -> u64 {
    [0, 1, 100, 4096, 5000, 70_001][(round + 3 * from + 5 * to) as usize % 6]
}

fn by_list(
    group: &Group<'_>,
    kind: Kind,
    run: impl Fn(u32, Option<Algorithm>) -> Result<(), GroupError>,
) -> u32 {
    let mut done = 0;
    let algorithms = std::iter::once(None).chain(Algorithm::of(kind).map(Some));
    for (round, algorithm) in algorithms.flat_map(|a| [a; 4]).enumerate() {
        match run(round as u32, algorithm) {
            Ok(()) => done += 1,
            // What does not fit into slots only the root of a scatter knows.
            Err(GroupError::Unsuitable(_) | GroupError::Mismatch { .. }) if algorithm.is_some() => {}
            Err(error) => panic!("{kind}v by {algorithm:?} on {} ranks: {error}", group.size()),
        }
    }
    done
}

fn scatterv(group: &Group<'_>, round: u32, algorithm: Option<Algorithm>) -> Result<(), GroupError> {
    let root = round % group.size();
    let mut into = vec![0xa5; length(round, root, group.rank()) as usize];
    if group.rank() == root {
        let lengths: Vec<u64> = (0..group.size()).map(|to| length(round, root, to)).collect();
        let (blocks, total) = scattered_blocks(&lengths, 3, round as usize);
        let mut from = vec![0; total as usize];
        for (to, block) in blocks.iter().enumerate() {
            fill(&mut from, *block, round, root, to as u32);
        }
        group.run(Operation::scatterv(root, &from[..], &blocks, &mut into[..]).by(algorithm))?;
    } else {
        group.run(Operation::scatteredv(root, &mut into[..]).by(algorithm))?;
    }
    assert!(into == bytes(round, root, group.rank(), into.len() as u64), "{algorithm:?} in round {round}");
    Ok(())
}

fn gatherv(group: &Group<'_>, round: u32, algorithm: Option<Algorithm>) -> Result<(), GroupError> {
    let root = round % group.size();
    let from = bytes(round, group.rank(), root, length(round, group.rank(), root));
    if group.rank() != root {
        return group.run(Operation::gatheredv(root, &from[..]).by(algorithm));
    }
    let lengths: Vec<u64> = (0..group.size()).map(|from| length(round, from, root)).collect();
    let (blocks, total) = scattered_blocks(&lengths, 5, round as usize);
    let mut into = vec![0xa5; total as usize];
    group.run(Operation::gatherv(root, &from[..], &mut into[..], &blocks).by(algorithm))?;
    check(&into, &blocks, round, |from| (from, root));
    Ok(())
}

fn allgatherv(group: &Group<'_>, round: u32, algorithm: Option<Algorithm>) -> Result<(), GroupError> {
    let lengths: Vec<u64> = (0..group.size()).map(|from| length(round, from, 0)).collect();
    // Each rank keeps them elsewhere.
    let (blocks, total) = scattered_blocks(&lengths, 2, (round + group.rank()) as usize);
    let mut into = vec![0xa5; total as usize];
    let from = bytes(round, group.rank(), 0, lengths[group.rank() as usize]);
    if round.is_multiple_of(2) {
        fill(&mut into, blocks[group.rank() as usize], round, group.rank(), 0);
        group.run(Operation::allgatherv_in_place(&mut into[..], &blocks).by(algorithm))?;
    } else {
        group.run(Operation::allgatherv(&from[..], &mut into[..], &blocks).by(algorithm))?;
    }
    check(&into, &blocks, round, |from| (from, 0));
    Ok(())
}

fn alltoallv(group: &Group<'_>, round: u32, algorithm: Option<Algorithm>) -> Result<(), GroupError> {
    let own = group.rank();
    let outgoing: Vec<u64> = (0..group.size()).map(|to| length(round, own, to)).collect();
    let incoming: Vec<u64> = (0..group.size()).map(|from| length(round, from, own)).collect();
    let (from_blocks, from_total) = scattered_blocks(&outgoing, 1, (round + own) as usize);
    let (into_blocks, into_total) = scattered_blocks(&incoming, 4, round as usize);
    let mut from = vec![0; from_total as usize];
    for (to, block) in from_blocks.iter().enumerate() {
        fill(&mut from, *block, round, own, to as u32);
    }
    let mut into = vec![0xa5; into_total as usize];
    // In two segments, which the blocks do not respect.
    let (head, tail) = from.split_at(from.len() / 3);
    let (first, second) = into.split_at_mut(into_total as usize / 2);
    let memory = Memory::segments(&[head, tail]);
    let target = Memory::segments_mut([first, second]);
    group.run(Operation::alltoallv(memory, &from_blocks, target, &into_blocks).by(algorithm))?;
    check(&into, &into_blocks, round, |from| (from, own));
    Ok(())
}

fn fill(memory: &mut [u8], block: Block, round: u32, from: u32, to: u32) {
    let part = block.offset as usize..(block.offset + block.bytes) as usize;
    memory[part].copy_from_slice(&bytes(round, from, to, block.bytes));
}

/// Whether each block has what it should, and the gaps what they had.
fn check(memory: &[u8], blocks: &[Block], round: u32, of: impl Fn(u32) -> (u32, u32)) {
    let mut rest = memory.to_vec();
    for (rank, block) in blocks.iter().enumerate() {
        let (from, to) = of(rank as u32);
        let part = block.offset as usize..(block.offset + block.bytes) as usize;
        assert!(memory[part.clone()] == bytes(round, from, to, block.bytes), "the block of rank {rank}");
        rest[part].fill(0xa5);
    }
    assert!(rest.iter().all(|byte| *byte == 0xa5), "something was written beside the blocks");
}

fn everything(name: &str, size: u32) {
    Test::new(name, size).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        assert!(by_list(&group, Kind::Scatter, |round, by| scatterv(&group, round, by)) >= 12);
        assert!(by_list(&group, Kind::Gather, |round, by| gatherv(&group, round, by)) >= 12);
        assert!(by_list(&group, Kind::Allgather, |round, by| allgatherv(&group, round, by)) >= 12);
        assert!(by_list(&group, Kind::Alltoall, |round, by| alltoallv(&group, round, by)) >= 8);
    });
}

#[test]
fn two_ranks() {
    everything(test_name!(), 2);
}

#[test]
fn three_ranks() {
    everything(test_name!(), 3);
}

#[test]
fn five_ranks() {
    everything(test_name!(), 5);
}
