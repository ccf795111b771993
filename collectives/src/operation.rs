//! [`Operation`]: one rank's part of a collective call, with its memory.
#![forbid(unsafe_code)]

use crate::algorithm::{Algorithm, Kind};
use crate::call::Block;
use crate::lent::Memory;
use crate::reduction::Reduction;

/// One rank's part of a collective call. Each rank of a group runs one of the same kind;
/// [`crate::Group::run`] or [`crate::Scope::start`] take it.
///
/// ```no_run
/// # fn example(group: &lmt_collectives::Group<'_>) -> Result<(), lmt_collectives::GroupError> {
/// use lmt_collectives::{Algorithm, Operation};
/// let mut data = vec![0; 1 << 20];
/// group.run(Operation::broadcast(0, &mut data[..]).by(Algorithm::Knomial(4)))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an operation does nothing until it is run"]
pub struct Operation<'a> {
    pub(crate) kind: Kind,
    pub(crate) root: u32,
    pub(crate) input: Option<Memory<'a>>,
    pub(crate) output: Option<Memory<'a>>,
    /// How the side that has a block of each rank is divided; equally if it is not said.
    pub(crate) blocks: Option<Vec<Block>>,
    /// Of alltoallv: the input.
    pub(crate) input_blocks: Option<Vec<Block>>,
    /// Whether this is one of the forms with lists, on whatever rank.
    pub(crate) is_listed: bool,
    pub(crate) in_place: bool,
    pub(crate) reduction: Option<Reduction>,
    pub(crate) algorithm: Option<Algorithm>,
}

impl<'a> Operation<'a> {
    fn new(kind: Kind, root: u32) -> Self {
        Self {
            kind,
            root,
            input: None,
            output: None,
            blocks: None,
            input_blocks: None,
            is_listed: false,
            in_place: false,
            reduction: None,
            algorithm: None,
        }
    }

    fn reads(mut self, memory: impl Into<Memory<'a>>) -> Self {
        self.input = Some(memory.into());
        self
    }

    fn writes(mut self, memory: impl Into<Memory<'a>>) -> Self {
        self.output = Some(memory.into());
        self
    }

    fn listed(mut self, blocks: impl Into<Vec<Block>>) -> Self {
        self.blocks = Some(blocks.into());
        self.is_listed = true;
        self
    }

    const fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    fn combining(mut self, reduction: &Reduction) -> Self {
        self.reduction = Some(reduction.clone());
        self
    }

    /// By this algorithm, which all ranks must name; else the group chooses.
    pub fn by(mut self, algorithm: impl Into<Option<Algorithm>>) -> Self {
        self.algorithm = algorithm.into();
        self
    }

    /// Nobody gets past it before all have come to it.
    pub fn barrier() -> Self {
        Self::new(Kind::Barrier, 0)
    }

    /// The root's bytes go to all; equally many everywhere.
    pub fn broadcast(root: u32, data: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Broadcast, root).writes(data)
    }

    /// On the root: one block of `from` to each rank, in the order of ranks, its own to
    /// `into`.
    pub fn scatter(root: u32, from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Scatter, root).reads(from).writes(into)
    }

    /// On the root: the same; its own block stays where it is.
    pub fn scatter_in_place(root: u32, from: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Scatter, root).reads(from).in_place()
    }

    /// On the other ranks: this rank's block.
    pub fn scattered(root: u32, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Scatter, root).writes(into)
    }

    /// On the root: blocks of any lengths, anywhere in `from`. All ranks must call a
    /// form with `v`.
    pub fn scatterv(
        root: u32,
        from: impl Into<Memory<'a>>,
        blocks: &[Block],
        into: impl Into<Memory<'a>>,
    ) -> Self {
        Self::scatter(root, from, into).listed(blocks)
    }

    /// On the root: the same; its own block stays where it is.
    pub fn scatterv_in_place(root: u32, from: impl Into<Memory<'a>>, blocks: &[Block]) -> Self {
        Self::scatter_in_place(root, from).listed(blocks)
    }

    /// On the other ranks: this rank's block, as long as `into`.
    pub fn scatteredv(root: u32, into: impl Into<Memory<'a>>) -> Self {
        let mut operation = Self::scattered(root, into);
        operation.is_listed = true;
        operation
    }

    /// On the root: one block of each rank's into `into`, in the order of ranks.
    pub fn gather(root: u32, from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Gather, root).reads(from).writes(into)
    }

    /// On the root: the same; its own block is there already.
    pub fn gather_in_place(root: u32, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Gather, root).writes(into).in_place()
    }

    /// On the other ranks: this rank's block.
    pub fn gathered(root: u32, from: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Gather, root).reads(from)
    }

    /// On the root: blocks of any lengths, anywhere in `into`. All ranks must call a
    /// form with `v`.
    pub fn gatherv(
        root: u32,
        from: impl Into<Memory<'a>>,
        into: impl Into<Memory<'a>>,
        blocks: &[Block],
    ) -> Self {
        Self::gather(root, from, into).listed(blocks)
    }

    /// On the root: the same; its own block is there already.
    pub fn gatherv_in_place(root: u32, into: impl Into<Memory<'a>>, blocks: &[Block]) -> Self {
        Self::gather_in_place(root, into).listed(blocks)
    }

    /// On the other ranks: this rank's block, as long as `from`.
    pub fn gatheredv(root: u32, from: impl Into<Memory<'a>>) -> Self {
        let mut operation = Self::gathered(root, from);
        operation.is_listed = true;
        operation
    }

    /// One block of each rank's to all, in the order of ranks.
    pub fn allgather(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Allgather, 0).reads(from).writes(into)
    }

    /// The same; this rank's block is in `into` already.
    pub fn allgather_in_place(into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Allgather, 0).writes(into).in_place()
    }

    /// Blocks of any lengths, which all ranks know, anywhere in `into`.
    pub fn allgatherv(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>, blocks: &[Block]) -> Self {
        Self::allgather(from, into).listed(blocks)
    }

    /// The same; this rank's block is in `into` already.
    pub fn allgatherv_in_place(into: impl Into<Memory<'a>>, blocks: &[Block]) -> Self {
        Self::allgather_in_place(into).listed(blocks)
    }

    /// One block of each rank's to each rank, all of the same length.
    pub fn alltoall(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Alltoall, 0).reads(from).writes(into)
    }

    /// The same; `data` is what is sent, and becomes what is received.
    pub fn alltoall_in_place(data: impl Into<Memory<'a>>) -> Self {
        Self::new(Kind::Alltoall, 0).writes(data).in_place()
    }

    /// Blocks of any lengths, anywhere: `from_blocks` by the rank that they go to,
    /// `into_blocks` by that from which they come.
    pub fn alltoallv(
        from: impl Into<Memory<'a>>,
        from_blocks: &[Block],
        into: impl Into<Memory<'a>>,
        into_blocks: &[Block],
    ) -> Self {
        let mut operation = Self::alltoall(from, into).listed(into_blocks);
        operation.input_blocks = Some(from_blocks.to_vec());
        operation
    }

    /// The same; each block of `data` is replaced by one of the same length.
    pub fn alltoallv_in_place(data: impl Into<Memory<'a>>, blocks: &[Block]) -> Self {
        let mut operation = Self::alltoall_in_place(data).listed(blocks);
        operation.input_blocks = Some(blocks.to_vec());
        operation
    }

    /// On the root: the ranks' vectors, combined in the order of ranks.
    pub fn reduce(
        root: u32,
        from: impl Into<Memory<'a>>,
        into: impl Into<Memory<'a>>,
        with: &Reduction,
    ) -> Self {
        Self::new(Kind::Reduce, root).reads(from).writes(into).combining(with)
    }

    /// On the root: the same; its own vector is in `into`.
    pub fn reduce_in_place(root: u32, into: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Reduce, root).writes(into).in_place().combining(with)
    }

    /// On the other ranks: this rank's vector.
    pub fn reduced(root: u32, from: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Reduce, root).reads(from).combining(with)
    }

    /// The ranks' vectors, combined, to all.
    pub fn allreduce(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Allreduce, 0).reads(from).writes(into).combining(with)
    }

    /// The same; the vector is replaced.
    pub fn allreduce_in_place(data: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Allreduce, 0).writes(data).in_place().combining(with)
    }

    /// The ranks' vectors, combined, one block of the result to each rank; the blocks
    /// follow one another, all of the same length.
    pub fn reduce_scatter_block(
        from: impl Into<Memory<'a>>,
        into: impl Into<Memory<'a>>,
        with: &Reduction,
    ) -> Self {
        Self::new(Kind::ReduceScatter, 0).reads(from).writes(into).combining(with)
    }

    /// The same; the vector is `data`, whose beginning becomes the result, as with MPI's
    /// `MPI_IN_PLACE`.
    ///
    /// ```no_run
    /// use lmt_collectives::{Element, Group, GroupError, Operation, Operator, Reduction};
    /// # fn doc(group: &Group<'_>) -> Result<(), GroupError> {
    /// let sum = Reduction::new(Operator::Sum, Element::U8).expect("defined");
    /// let mut data = vec![1; 4 * group.size() as usize];
    /// group.run(Operation::reduce_scatter_block_in_place(&mut data[..], &sum))?;
    /// assert_eq!(data[..4], [group.size() as u8; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_scatter_block_in_place(data: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::ReduceScatter, 0).writes(data).in_place().combining(with)
    }

    /// The same with blocks of any lengths, in bytes, which all ranks know.
    pub fn reduce_scatter(
        from: impl Into<Memory<'a>>,
        into: impl Into<Memory<'a>>,
        block_bytes: &[u64],
        with: &Reduction,
    ) -> Self {
        Self::reduce_scatter_block(from, into, with).listed(one_after_the_other(block_bytes))
    }

    /// The same; the vector is `data`, whose beginning becomes the result.
    pub fn reduce_scatter_in_place(
        data: impl Into<Memory<'a>>,
        block_bytes: &[u64],
        with: &Reduction,
    ) -> Self {
        Self::reduce_scatter_block_in_place(data, with).listed(one_after_the_other(block_bytes))
    }

    /// To each rank what it and those before it have, combined.
    pub fn scan(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Scan, 0).reads(from).writes(into).combining(with)
    }

    /// The same; the vector is replaced.
    pub fn scan_in_place(data: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Scan, 0).writes(data).in_place().combining(with)
    }

    /// To each rank what those before it have, combined; rank 0's output stays as it is.
    pub fn exscan(from: impl Into<Memory<'a>>, into: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Exscan, 0).reads(from).writes(into).combining(with)
    }

    /// The same; the vector is replaced, but for rank 0's.
    pub fn exscan_in_place(data: impl Into<Memory<'a>>, with: &Reduction) -> Self {
        Self::new(Kind::Exscan, 0).writes(data).in_place().combining(with)
    }
}

fn one_after_the_other(block_bytes: &[u64]) -> Vec<Block> {
    let mut offset = 0u64;
    let block = |&bytes: &u64| {
        let block = Block { offset, bytes };
        offset = offset.saturating_add(bytes);
        block
    };
    block_bytes.iter().map(block).collect()
}

/// What an operation says of itself, checked, but for the rank and the group's size.
impl Operation<'_> {
    pub(crate) fn input_bytes(&self) -> u64 {
        self.input.as_ref().map_or(0, Memory::bytes)
    }

    pub(crate) fn output_bytes(&self) -> u64 {
        self.output.as_ref().map_or(0, Memory::bytes)
    }
}
