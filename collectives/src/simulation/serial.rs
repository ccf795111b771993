//! What a collective operation gives, worked out by one who sees all memory.

use crate::algorithm::Kind;
use crate::call::{Block, Blocks};

use super::case::Scene;

/// `left op right` of elements of 8 bytes: maps x -> ax + b of 32-bit numbers, a
/// odd, one after the other. Associative, and not commutative.
pub fn combine(left: &[u8], right: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut result = Vec::with_capacity(left.len());
    for (left, right) in left.chunks_exact(8).zip(right.chunks_exact(8)) {
        let slope = (number(left) | 1).wrapping_mul(number(right) | 1);
        let shift = (number(left) | 1).wrapping_mul(number(&right[4..])).wrapping_add(number(&left[4..]));
        result.extend_from_slice(&slope.to_ne_bytes());
        result.extend_from_slice(&shift.to_ne_bytes());
    }
    result
}

/// How all outputs look at the end: as before where nothing is to be written.
/// Of an output in place of which only the beginning is the result, that alone.
pub fn expected(scene: &Scene) -> Vec<Vec<u8>> {
    (0..scene.calls.len()).map(|rank| expected_of(scene, rank)).collect()
}

fn expected_of(scene: &Scene, rank: usize) -> Vec<u8> {
    let call = &scene.calls[rank];
    let root = call.root as usize;
    let ranks = 0..scene.calls.len();
    let mut output = scene.memory[rank].output.clone();
    let place = |output: &mut [u8], at: Block, bytes: &[u8]| range(output, at).copy_from_slice(bytes);
    match call.kind {
        Kind::Barrier => {}
        Kind::Broadcast => output.copy_from_slice(&scene.memory[root].output),
        Kind::Scatter if call.in_place => {}
        Kind::Scatter => {
            output.copy_from_slice(part(&scene.memory[root].input, scene.calls[root].blocks.of(rank as u32)))
        }
        Kind::Gather if rank != root => {}
        Kind::Gather | Kind::Allgather => {
            for from in ranks {
                place(&mut output, call.blocks.of(from as u32), own(scene, from));
            }
        }
        Kind::Alltoall => {
            for from in ranks {
                place(&mut output, call.blocks.of(from as u32), sent(scene, from, rank));
            }
        }
        Kind::Reduce if rank != root => {}
        Kind::Reduce | Kind::Allreduce => output = combined(scene, scene.calls.len()),
        Kind::Scan => output = combined(scene, rank + 1),
        Kind::Exscan if rank == 0 => {}
        Kind::Exscan => output = combined(scene, rank),
        Kind::ReduceScatter => {
            let all = combined(scene, scene.calls.len());
            output = part(&all, call.blocks.of(rank as u32)).to_vec();
        }
    }
    output
}

fn range(bytes: &mut [u8], block: Block) -> &mut [u8] {
    &mut bytes[block.offset as usize..(block.offset + block.bytes) as usize]
}

fn part(bytes: &[u8], block: Block) -> &[u8] {
    &bytes[block.offset as usize..(block.offset + block.bytes) as usize]
}

/// A rank's block in gather and allgather.
fn own(scene: &Scene, rank: usize) -> &[u8] {
    let (call, memory) = (&scene.calls[rank], &scene.memory[rank]);
    if call.in_place { part(&memory.output, call.blocks.of(call.rank)) } else { &memory.input }
}

/// What one rank has for another in alltoall.
fn sent(scene: &Scene, from: usize, to: usize) -> &[u8] {
    let (call, memory) = (&scene.calls[from], &scene.memory[from]);
    let find = |bytes, blocks: &Blocks| part(bytes, blocks.of(to as u32));
    if call.in_place { find(&memory.output, &call.blocks) } else { find(&memory.input, &call.input_blocks) }
}

/// The vectors of the first `count` ranks, combined.
fn combined(scene: &Scene, count: usize) -> Vec<u8> {
    let vector = |rank: usize| {
        let memory = &scene.memory[rank];
        if scene.calls[rank].in_place { memory.output.clone() } else { memory.input.clone() }
    };
    (1..count).map(vector).fold(vector(0), |left, right| combine(&left, &right))
}
