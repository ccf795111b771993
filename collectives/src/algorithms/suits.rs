//! What is checked of every call, before a program is made of it.

use crate::algorithm::{Algorithm, Kind};
use crate::call::{Block, Blocks, Call, Domain};

use super::Unsuitable;

/// Whether a call makes sense, and the algorithm does its kind.
pub fn check(call: &Call, algorithm: Algorithm) -> Result<(), Unsuitable> {
    if !algorithm.does(call.kind) {
        return Err(Unsuitable::kind(algorithm, call.kind));
    }
    let ranks = ranks(call);
    let rest = || numbers(algorithm).and_then(|()| domains(call, algorithm)).and_then(|()| memory(call));
    ranks.and_then(|()| rest()).map_err(|reason| Unsuitable { algorithm, reason })
}

/// Whether what a rank posts fits into its slot.
pub fn fits_slot(call: &Call, bytes: u64) -> Result<(), Unsuitable> {
    if bytes <= call.slot_bytes {
        return Ok(());
    }
    let reason = format!(
        "{bytes} bytes do not fit into a slot of {} bytes; all other algorithms of {} take any length",
        call.slot_bytes, call.kind
    );
    Err(Unsuitable { algorithm: Algorithm::Slots, reason })
}

fn ranks(call: &Call) -> Result<(), String> {
    let Call { rank, size, root, .. } = *call;
    if rank >= size {
        return Err(format!("there is no rank {rank} among {size}; ranks count from 0"));
    }
    self::root(root, size)
}

/// Whether a root is one of the ranks.
pub(crate) fn root(root: u32, size: u32) -> Result<(), String> {
    if root < size {
        return Ok(());
    }
    Err(format!("rank {root} is to be the root of {size} ranks; ranks count from 0"))
}

/// Whether a list of blocks has one for each rank.
pub(crate) fn one_for_each(side: &str, blocks: usize, ranks: u32) -> Result<(), String> {
    if blocks == ranks as usize {
        return Ok(());
    }
    Err(format!("the {side} has {blocks} blocks and must have one for each of {ranks} ranks"))
}

/// Whether a vector, and each block of one that is divided, consists of whole elements.
pub(crate) fn elements(call: &Call) -> Result<(), String> {
    let element = call.element_bytes.max(1);
    let whole = |bytes: u64| bytes.is_multiple_of(element);
    let parts_whole = match &call.blocks {
        Blocks::Equal(bytes) => call.kind != Kind::ReduceScatter || whole(*bytes),
        Blocks::Listed(list) => list.iter().all(|block| whole(block.bytes)),
    };
    if whole(call.bytes) && parts_whole {
        return Ok(());
    }
    Err(format!("{} bytes, or a part of them, are no whole elements of {element} bytes", call.bytes))
}

fn numbers(algorithm: Algorithm) -> Result<(), String> {
    match algorithm.number() {
        Some(0) => Err("its number is 0, and must be at least 1".to_owned()),
        _ => Ok(()),
    }
}

fn domains(call: &Call, algorithm: Algorithm) -> Result<(), String> {
    if !matches!(algorithm, Algorithm::Hierarchical(_)) {
        return Ok(());
    }
    let domains = &call.domains;
    if domains.len() != call.size as usize {
        return Err(format!(
            "the domains of {} ranks are known, and must be of all {}",
            domains.len(),
            call.size
        ));
    }
    let is_lowest = |(rank, domain): (usize, &Domain)| {
        let of = |first: u32| (first as usize <= rank).then(|| domains[first as usize]);
        of(domain.node).is_some_and(|first| first.node == domain.node)
            && of(domain.cache).is_some_and(|first| first == *domain)
    };
    match domains.iter().enumerate().find(|&domain| !is_lowest(domain)) {
        Some((rank, Domain { node, cache })) => Err(format!(
            "rank {rank}'s domains are named after rank {node} and rank {cache}, and must be after the lowest of the node and of the cache on it"
        )),
        None => Ok(()),
    }
}

/// Whether there can be so many bytes: addresses have at most 57 bits, and what
/// algorithms make of lengths stays far within 64 then.
fn exist(bytes: Option<u64>) -> Result<(), String> {
    match bytes {
        Some(0..=MAX_BYTES) => Ok(()),
        _ => Err("its data would end beyond 2^57 bytes, which is more than any memory".to_owned()),
    }
}

const MAX_BYTES: u64 = 1 << 57;

fn memory(call: &Call) -> Result<(), String> {
    exist(Some(call.bytes))?;
    let is_root = call.rank == call.root;
    let own = |block: Block| match block.bytes == call.bytes {
        true => Ok(()),
        false => Err(format!("its own block has {} bytes, and must have {}", block.bytes, call.bytes)),
    };
    elements(call)?;
    match call.kind {
        Kind::Scatter | Kind::Gather if !is_root => match call.blocks {
            // In the v form it has none.
            Blocks::Listed(_) => Ok(()),
            Blocks::Equal(bytes) => {
                blocks(call, &call.blocks)?;
                own(Block { offset: 0, bytes })
            }
        },
        Kind::Scatter | Kind::Gather | Kind::Allgather => {
            blocks(call, &call.blocks)?;
            own(call.blocks.of(call.rank))
        }
        Kind::ReduceScatter => blocks(call, &call.blocks),
        Kind::Alltoall if call.in_place => blocks(call, &call.blocks),
        Kind::Alltoall => {
            blocks(call, &call.blocks)?;
            blocks(call, &call.input_blocks)
        }
        Kind::Barrier | Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => {
            Ok(())
        }
    }
}

/// One for each rank, each of which can exist.
fn blocks(call: &Call, blocks: &Blocks) -> Result<(), String> {
    match blocks {
        Blocks::Equal(bytes) => exist(bytes.checked_mul(u64::from(call.size))),
        Blocks::Listed(list) => {
            one_for_each("list", list.len(), call.size)?;
            list.iter().try_for_each(|block| exist(block.offset.checked_add(block.bytes)))
        }
    }
}

#[cfg(test)]
#[path = "suits_tests.rs"]
mod tests;
