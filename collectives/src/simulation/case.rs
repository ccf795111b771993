//! Collective calls to try: a [`Case`] says what is to be done, a [`Scene`] is
//! what each rank calls with and the memory it does so with.

use crate::algorithm::Kind;
use crate::call::{Block, Blocks, Call, Domain};

use super::random::Random;

/// How long the blocks are.
#[derive(Clone, Debug)]
pub enum Lengths {
    /// All this long: the plain forms.
    Equal(u64),
    /// The v forms: one for each rank; of alltoall `size` of rank 0's to all, then
    /// those of rank 1's.
    Listed(Vec<u64>),
}

impl Lengths {
    fn of(&self, index: u32) -> u64 {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Listed(list) => list[index as usize],
        }
    }
}

/// A collective call of all ranks.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    pub size: u32,
    pub root: u32,
    pub lengths: Lengths,
    /// Of the root where there is one, else of all.
    pub in_place: bool,
    /// Of reductions, a multiple of 8.
    pub element_bytes: u64,
    pub domains: Vec<Domain>,
    pub slot_bytes: u64,
}

impl Case {
    /// The plain form with root 0, not in place, in one domain.
    pub fn new(kind: Kind, size: u32, bytes: u64) -> Self {
        Self {
            kind,
            size,
            root: 0,
            lengths: Lengths::Equal(bytes),
            in_place: false,
            element_bytes: if kind.combines() { 8 } else { 1 },
            domains: vec![Domain::ALL; size as usize],
            slot_bytes: 4096,
        }
    }

    /// Whether there are blocks, so that there is a v form.
    pub fn has_blocks(kind: Kind) -> bool {
        use Kind as K;
        matches!(kind, K::Scatter | K::Gather | K::Allgather | K::Alltoall | K::ReduceScatter)
    }

    fn is_in_place(&self, rank: u32) -> bool {
        self.in_place
            && match self.kind {
                Kind::Barrier | Kind::Broadcast => false,
                Kind::Scatter | Kind::Gather | Kind::Reduce => rank == self.root,
                _ => true,
            }
    }

    /// The lengths of what a rank sends (in alltoall), or of all ranks' blocks.
    fn sent(&self, rank: u32) -> Vec<u64> {
        let first = if self.kind == Kind::Alltoall { rank * self.size } else { 0 };
        (first..first + self.size).map(|index| self.lengths.of(index)).collect()
    }

    /// In alltoall: the lengths of what a rank receives.
    fn received(&self, rank: u32) -> Vec<u64> {
        (0..self.size).map(|from| self.lengths.of(from * self.size + rank)).collect()
    }

    /// Blocks of these lengths, and how much memory they lie in: those of the v
    /// forms in any order, with gaps.
    fn blocks(&self, lengths: &[u64], random: &mut Random) -> (Blocks, u64) {
        if let Lengths::Equal(bytes) = self.lengths {
            return (Blocks::Equal(bytes), bytes * u64::from(self.size));
        }
        let scattered = self.kind != Kind::ReduceScatter;
        let order = if scattered { random.order(lengths.len()) } else { (0..lengths.len()).collect() };
        let mut list = vec![Block::default(); lengths.len()];
        let mut end = 0;
        for at in order {
            end += if scattered { random.below(4) } else { 0 };
            list[at] = Block { offset: end, bytes: lengths[at] };
            end += lengths[at];
        }
        (Blocks::Listed(list), end)
    }

    /// What a rank that has no blocks of its own passes: the form is known to all.
    fn no_blocks(&self) -> Blocks {
        match self.lengths {
            Lengths::Equal(bytes) => Blocks::Equal(bytes),
            Lengths::Listed(_) => Blocks::Listed(Vec::new()),
        }
    }

    /// What each rank calls with, its input and its output, all bytes random.
    pub fn scene(&self, random: &mut Random) -> Scene {
        let ranks = (0..self.size).map(|rank| {
            let (call, input, output) = self.call(rank, random);
            (call, Memory { input: random.bytes(input), output: random.bytes(output) })
        });
        let (calls, memory) = ranks.unzip();
        Scene { calls, memory }
    }

    /// What a rank calls with, and how long its input and its output are.
    pub fn call(&self, rank: u32, random: &mut Random) -> (Call, u64, u64) {
        let in_place = self.is_in_place(rank);
        let mut call = Call {
            kind: self.kind,
            rank,
            size: self.size,
            root: self.root,
            bytes: if self.kind == Kind::Alltoall { 0 } else { self.sent(rank)[rank as usize] },
            blocks: if Self::has_blocks(self.kind) { self.no_blocks() } else { Blocks::Equal(0) },
            input_blocks: Blocks::Equal(0),
            in_place,
            element_bytes: self.element_bytes,
            domains: self.domains.as_slice().into(),
            slot_bytes: self.slot_bytes,
        };
        let is_root = rank == self.root;
        let mut blocks = |call: &mut Call, lengths: Vec<u64>| {
            let (blocks, end) = self.blocks(&lengths, random);
            call.blocks = blocks;
            end
        };
        let (input, output) = match self.kind {
            Kind::Barrier => (0, 0),
            Kind::Broadcast => (0, call.bytes),
            Kind::Scatter if is_root => (blocks(&mut call, self.sent(rank)), call.bytes),
            Kind::Scatter => (0, call.bytes),
            Kind::Gather if is_root => (call.bytes, blocks(&mut call, self.sent(rank))),
            Kind::Gather => (call.bytes, 0),
            Kind::Allgather => (call.bytes, blocks(&mut call, self.sent(rank))),
            Kind::ReduceScatter => {
                let all = blocks(&mut call, self.sent(rank));
                (all, if in_place { all } else { call.bytes })
            }
            Kind::Alltoall => {
                let output = blocks(&mut call, self.received(rank));
                let (input_blocks, input) = self.blocks(&self.sent(rank), random);
                call.input_blocks = if in_place { Blocks::Listed(Vec::new()) } else { input_blocks };
                (input, output)
            }
            Kind::Reduce => (call.bytes, if is_root { call.bytes } else { 0 }),
            Kind::Allreduce | Kind::Scan | Kind::Exscan => (call.bytes, call.bytes),
        };
        match (in_place, self.kind) {
            (true, Kind::Scatter) => (call, input, 0),
            (true, _) => (call, 0, output),
            (false, _) => (call, input, output),
        }
    }
}

/// One rank's memory. What a rank does not give has no bytes: the input of who is
/// in place (in scatter its output), of all in a broadcast, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

/// What all ranks call with.
#[derive(Clone, Debug)]
pub struct Scene {
    pub calls: Vec<Call>,
    pub memory: Vec<Memory>,
}
