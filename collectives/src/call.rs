//! One collective call as one rank sees it, without its memory: what algorithms
//! make programs from.
#![forbid(unsafe_code)]

use std::rc::Rc;

use crate::algorithm::Kind;

/// A stretch of a rank's input or output that belongs to one rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Block {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// How a rank's input or output is divided among the ranks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blocks {
    /// One block after the other, all of this many bytes, in the order of ranks.
    Equal(u64),
    /// One for each rank, anywhere.
    Listed(Vec<Block>),
}

impl Blocks {
    /// The block of a rank.
    ///
    /// # Panics
    /// A list that has no such rank; [`Call`]s are checked before.
    pub fn of(&self, rank: u32) -> Block {
        match self {
            Self::Equal(bytes) => Block { offset: u64::from(rank) * bytes, bytes: *bytes },
            Self::Listed(list) => list[rank as usize],
        }
    }
}

/// Where a rank is, as far as it matters what it shares with others: the lowest rank of
/// those on its NUMA node, and of those that use its cache on that node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Domain {
    /// The lowest rank of its node.
    pub node: u32,
    /// The lowest rank of its cache, which is of the same node.
    pub cache: u32,
}

impl Domain {
    /// That of all ranks where nothing tells them apart.
    pub const ALL: Self = Self { node: 0, cache: 0 };
}

/// A collective call as one rank sees it.
///
/// What the places hold, by kind (`n` is the number of ranks; in place means that
/// this rank gives no input where it would, as MPI's `MPI_IN_PLACE` does):
///
/// | kind | input | output | in place |
/// | --- | --- | --- | --- |
/// | broadcast | | `bytes` on all ranks: the root's are sent | |
/// | scatter | root: `blocks` | `bytes`, this rank's | root: no output, its block stays |
/// | gather | `bytes`, this rank's | root: `blocks` | root: no input, its block is in the output |
/// | allgather | `bytes`, this rank's | `blocks` | input is this rank's block of the output |
/// | alltoall | `input_blocks` | `blocks` | input is the output, replaced |
/// | reduce | `bytes` | root: `bytes` | root: input is the output |
/// | allreduce, scan, exscan | `bytes` | `bytes` | input is the output |
/// | reduce_scatter | `blocks`, one after the other: all of the vector | this rank's block | input is the output, whose beginning becomes the result |
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    /// Which operation.
    pub kind: Kind,
    /// This rank.
    pub rank: u32,
    /// How many there are, at least 1.
    pub size: u32,
    /// The root of those that have one.
    pub root: u32,
    /// See the table.
    pub bytes: u64,
    /// See the table: equal ones with the plain forms, listed ones with the v forms.
    pub blocks: Blocks,
    /// Of alltoall: the input's.
    pub input_blocks: Blocks,
    /// See the table.
    pub in_place: bool,
    /// Of reductions: the length of an element; parts are whole elements. Else 1.
    pub element_bytes: u64,
    /// The ranks by NUMA nodes and caches that they share.
    pub domains: Rc<[Domain]>,
    /// How much fits into a rank's slot.
    pub slot_bytes: u64,
}

impl Call {
    /// The length that all ranks know in the plain forms: that of a block where there are
    /// blocks for each rank, else `bytes`.
    pub(crate) const fn block_bytes(&self) -> u64 {
        match (self.kind, &self.blocks) {
            (Kind::Alltoall, Blocks::Equal(bytes)) => *bytes,
            _ => self.bytes,
        }
    }
}

/// The length by which the model predicts, and of which rules speak.
pub(crate) fn bytes_of(call: &Call) -> u64 {
    match (call.kind, &call.blocks) {
        (Kind::Alltoall | Kind::ReduceScatter, Blocks::Equal(bytes)) => *bytes,
        (Kind::ReduceScatter, Blocks::Listed(_)) => call.bytes / u64::from(call.size),
        _ => call.bytes,
    }
}
