//! One rank's calls of a collective operation: its memory, and what is in it.
#![forbid(unsafe_code)]

use lmt_collectives::{Kind, Operation, Reduction};

use super::plan::{ELEMENT_BYTES, call_bytes};

/// The rank that rooted operations start from or end at.
const ROOT: u32 = 0;
/// What outputs are filled with before a call that is checked.
pub const GARBAGE: u8 = 0xA5;

/// What one rank calls.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The operation.
    pub kind: Kind,
    /// This rank.
    pub rank: u32,
    /// All ranks.
    pub ranks: u32,
    /// How reductions combine.
    pub sum: Reduction,
}

impl Calls {
    /// This rank's part of a call. A root broadcasts its input.
    pub fn operation<'a>(&self, input: &'a mut [u8], output: &'a mut [u8]) -> Operation<'a> {
        let is_root = self.rank == ROOT;
        match self.kind {
            Kind::Barrier => Operation::barrier(),
            Kind::Broadcast => Operation::broadcast(ROOT, if is_root { input } else { output }),
            Kind::Scatter if is_root => Operation::scatter(ROOT, &*input, output),
            Kind::Scatter => Operation::scattered(ROOT, output),
            Kind::Gather if is_root => Operation::gather(ROOT, &*input, output),
            Kind::Gather => Operation::gathered(ROOT, &*input),
            Kind::Allgather => Operation::allgather(&*input, output),
            Kind::Alltoall => Operation::alltoall(&*input, output),
            Kind::Reduce if is_root => Operation::reduce(ROOT, &*input, output, &self.sum),
            Kind::Reduce => Operation::reduced(ROOT, &*input, &self.sum),
            Kind::Allreduce => Operation::allreduce(&*input, output, &self.sum),
            Kind::ReduceScatter => Operation::reduce_scatter_block(&*input, output, &self.sum),
            Kind::Scan => Operation::scan(&*input, output, &self.sum),
            Kind::Exscan => Operation::exscan(&*input, output, &self.sum),
        }
    }

    /// Whether this rank's input takes part.
    pub fn has_input(&self) -> bool {
        self.rank == ROOT || !matches!(self.kind, Kind::Broadcast | Kind::Scatter)
    }

    /// Whether this rank's output does.
    pub fn has_output(&self) -> bool {
        match self.kind {
            Kind::Broadcast => self.rank != ROOT,
            Kind::Gather | Kind::Reduce => self.rank == ROOT,
            _ => true,
        }
    }

    /// Fills the input of a call that is checked.
    pub fn fill(&self, bytes: u64, input: &mut [u8]) {
        let block = bytes.max(1) as usize;
        match self.kind {
            Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan => {
                for (at, element) in input.chunks_exact_mut(ELEMENT_BYTES as usize).enumerate() {
                    element.copy_from_slice(&number(self.rank, at).to_ne_bytes());
                }
            }
            _ => {
                for (at, byte) in input.iter_mut().enumerate() {
                    *byte = pattern(self.rank, (at / block) as u32, at % block);
                }
            }
        }
    }

    /// Where the output of a call that is checked is wrong.
    pub fn wrong(&self, bytes: u64, output: &[u8]) -> Option<usize> {
        let block = bytes.max(1) as usize;
        let same = |from: u32, to: u32, at: usize, byte: u8| byte == pattern(from, to, at);
        let first_wrong = |right: &dyn Fn(usize, u8) -> bool| {
            output.iter().enumerate().position(|(at, &byte)| !right(at, byte))
        };
        match self.kind {
            Kind::Barrier => None,
            Kind::Broadcast => first_wrong(&|at, byte| same(ROOT, 0, at, byte)),
            Kind::Scatter => first_wrong(&|at, byte| same(ROOT, self.rank, at, byte)),
            Kind::Gather | Kind::Allgather => {
                first_wrong(&|at, byte| same((at / block) as u32, 0, at % block, byte))
            }
            Kind::Alltoall => first_wrong(&|at, byte| same((at / block) as u32, self.rank, at % block, byte)),
            Kind::Reduce | Kind::Allreduce => self.wrong_sum(0..self.ranks, 0, output),
            Kind::ReduceScatter => {
                let first = self.rank as usize * (bytes / ELEMENT_BYTES) as usize;
                self.wrong_sum(0..self.ranks, first, output)
            }
            Kind::Scan => self.wrong_sum(0..self.rank + 1, 0, output),
            // Rank 0's stays as it is.
            Kind::Exscan if self.rank == 0 => first_wrong(&|_, byte| byte == GARBAGE),
            Kind::Exscan => self.wrong_sum(0..self.rank, 0, output),
        }
    }

    fn wrong_sum(&self, ranks: std::ops::Range<u32>, first: usize, output: &[u8]) -> Option<usize> {
        output.as_chunks::<{ ELEMENT_BYTES as usize }>().0.iter().enumerate().position(|(at, element)| {
            let wanted: f32 = ranks.clone().map(|rank| number(rank, first + at)).sum();
            f32::from_ne_bytes(*element) != wanted
        })
    }
}

/// Whole numbers so small that their sums over all ranks are exact in any order.
fn number(rank: u32, at: usize) -> f32 {
    (rank % 61 + (at % 4093) as u32) as f32
}

fn pattern(from: u32, to: u32, at: usize) -> u8 {
    let seed = u64::from(from) << 32 ^ u64::from(to) << 16 ^ (at / 8) as u64;
    (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (8 * (at % 8))) as u8
}

/// Bytes of input and output as lengths of memory.
pub fn lengths(kind: Kind, bytes: u64, ranks: u32) -> Option<(usize, usize)> {
    let (input, output) = call_bytes(kind, bytes, ranks);
    Some((usize::try_from(input).ok()?, usize::try_from(output).ok()?))
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
