//! An operation's memory against the group: what makes it a [`Call`], or is wrong
//! with it. What can be asked of any call is in `algorithms/suits`.
#![forbid(unsafe_code)]

use std::rc::Rc;

use crate::algorithm::Kind;
use crate::algorithms::suits;
use crate::call::{Block, Blocks, Call, Domain};
use crate::operation::Operation;

/// What all calls of a group have in common.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    pub rank: u32,
    pub size: u32,
    pub domains: Rc<[Domain]>,
    pub slot_bytes: u64,
}

/// What is wrong with a call's arguments, in a sentence.
type Wrong = String;

/// The call that an operation is, in a group.
///
/// # Errors
/// One sentence.
pub(crate) fn call_of(operation: &Operation<'_>, team: &Team) -> Result<Call, Wrong> {
    suits::root(operation.root, team.size)?;
    check_sides(operation, team)?;
    let (bytes, blocks, input_blocks) = lengths(operation, team)?;
    let element_bytes = operation.reduction.as_ref().map_or(1, |r| r.element_bytes());
    let call = Call {
        kind: operation.kind,
        rank: team.rank,
        size: team.size,
        root: operation.root,
        bytes,
        blocks,
        input_blocks,
        in_place: operation.in_place,
        element_bytes,
        domains: Rc::clone(&team.domains),
        slot_bytes: team.slot_bytes,
    };
    suits::elements(&call)?;
    Ok(call)
}

/// Whether the memory that was given is that of this rank's side.
fn check_sides(operation: &Operation<'_>, team: &Team) -> Result<(), Wrong> {
    let is_root = operation.root == team.rank;
    let (root, other) = match operation.kind {
        Kind::Scatter => ("scatter", "scattered"),
        Kind::Gather => ("gather", "gathered"),
        Kind::Reduce => ("reduce", "reduced"),
        _ => ("", ""),
    };
    let takes_root_form = match operation.kind {
        Kind::Scatter => operation.input.is_some(),
        Kind::Gather | Kind::Reduce => operation.output.is_some(),
        _ => is_root,
    };
    if takes_root_form != is_root {
        let (form, who) = if is_root { (root, "is") } else { (other, "is not") };
        return Err(format!("rank {} {who} the root and must call `{form}` or one of its forms", team.rank));
    }
    if operation.output.as_ref().is_some_and(|output| !output.is_for_writing()) {
        return Err("what a call writes must be passed for writing".into());
    }
    Ok(())
}

/// The `bytes`, `blocks` and `input_blocks` of a call.
fn lengths(operation: &Operation<'_>, team: &Team) -> Result<(u64, Blocks, Blocks), Wrong> {
    let (input, output) = (operation.input_bytes(), operation.output_bytes());
    let is_root = operation.root == team.rank;
    let none = Blocks::Equal(0);
    let one_side = |bytes, blocks| Ok((bytes, blocks, Blocks::Equal(0)));
    match operation.kind {
        Kind::Barrier => Ok((0, none.clone(), none)),
        Kind::Broadcast => Ok((output, none.clone(), none)),
        Kind::Scatter if is_root => {
            let blocks = divided(operation, team, input, "input")?;
            let own = blocks.of(team.rank).bytes;
            same("the output", output, own, operation.in_place)?;
            one_side(own, blocks)
        }
        Kind::Scatter => one_side(output, elsewhere(operation, output)),
        Kind::Gather if is_root => {
            let blocks = divided(operation, team, output, "output")?;
            let own = blocks.of(team.rank).bytes;
            same("the input", input, own, operation.in_place)?;
            one_side(own, blocks)
        }
        Kind::Gather => one_side(input, elsewhere(operation, input)),
        Kind::Allgather => {
            let blocks = divided(operation, team, output, "output")?;
            let own = blocks.of(team.rank).bytes;
            same("the input", input, own, operation.in_place)?;
            one_side(own, blocks)
        }
        Kind::Alltoall => alltoall(operation, team),
        Kind::Reduce if !is_root => Ok((input, none.clone(), none)),
        Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => {
            same("the input", input, output, operation.in_place)?;
            Ok((output, none.clone(), none))
        }
        Kind::ReduceScatter => {
            let vector = if operation.in_place { output } else { input };
            let blocks = divided(operation, team, vector, "vector")?;
            if !operation.in_place {
                same("the output", output, blocks.of(team.rank).bytes, false)?;
            }
            one_side(vector, blocks)
        }
    }
}

/// The blocks as a rank knows them that is not the root: those of the forms with lists
/// are the root's own business.
fn elsewhere(operation: &Operation<'_>, bytes: u64) -> Blocks {
    if operation.is_listed { Blocks::Listed(Vec::new()) } else { Blocks::Equal(bytes) }
}

fn alltoall(operation: &Operation<'_>, team: &Team) -> Result<(u64, Blocks, Blocks), Wrong> {
    let blocks = divided(operation, team, operation.output_bytes(), "output")?;
    let input_blocks = match (&operation.input_blocks, operation.in_place) {
        (Some(list), true) => Blocks::Listed(checked(list, team, operation.output_bytes(), "input")?),
        (Some(list), false) => Blocks::Listed(checked(list, team, operation.input_bytes(), "input")?),
        (None, _) => {
            same("the input", operation.input_bytes(), operation.output_bytes(), operation.in_place)?;
            blocks.clone()
        }
    };
    if input_blocks.of(team.rank).bytes != blocks.of(team.rank).bytes {
        return Err("what a rank sends itself must be as long as what it receives from itself".into());
    }
    Ok((0, blocks, input_blocks))
}

fn same(what: &str, bytes: u64, wanted: u64, in_place: bool) -> Result<(), Wrong> {
    if in_place || bytes == wanted {
        return Ok(());
    }
    Err(format!("{what} has {bytes} bytes and must have {wanted}"))
}

/// The blocks of the side that has one of each rank.
fn divided(operation: &Operation<'_>, team: &Team, bytes: u64, side: &str) -> Result<Blocks, Wrong> {
    if let Some(list) = &operation.blocks {
        return Ok(Blocks::Listed(checked(list, team, bytes, side)?));
    }
    let size = u64::from(team.size);
    if !bytes.is_multiple_of(size) {
        return Err(format!(
            "the {side} has {bytes} bytes, which {size} ranks cannot share equally; give blocks"
        ));
    }
    Ok(Blocks::Equal(bytes / size))
}

fn checked(list: &[Block], team: &Team, bytes: u64, side: &str) -> Result<Vec<Block>, Wrong> {
    suits::one_for_each(side, list.len(), team.size)?;
    for (rank, block) in list.iter().enumerate() {
        if block.offset.checked_add(block.bytes).is_none_or(|end| end > bytes) {
            let Block { offset, bytes: length } = block;
            return Err(format!(
                "rank {rank}'s block of {length} bytes from {offset} reaches past the {side} of {bytes} bytes"
            ));
        }
    }
    Ok(list.to_vec())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
