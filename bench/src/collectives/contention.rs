//! One rank's accesses to other ranks' memory.
#![allow(unsafe_code)] // Memory is lent to peers that write.

use std::time::Instant;

use lmt::{Endpoint, OperationError, Protection, RegionKey};
use lmt_collectives::{Group, Operation};

use super::access::{Access, Reach};
use super::plan::{Plan, Turns};
use super::words::{Answer, Ask, Outcome};
use crate::error::BenchError;
use crate::job::stride_bytes;
use crate::memory::Pages;

/// Reads from and writes to the others' memory.
pub(super) struct Accessor<'a> {
    plan: &'a Plan,
    endpoint: &'a Endpoint,
    rank: u32,
    /// Each rank's memory.
    keys: Vec<RegionKey>,
    /// Those that take part, by their number, and their group on those ranks.
    groups: Vec<(u32, Option<Group<'a>>)>,
    own: Pages,
}

fn failed(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Failure(error.to_string())
}

/// Declares this rank's memory to all, and lets `work` have what gets at theirs.
pub(super) fn with_accessor(
    plan: &Plan,
    access: Access,
    endpoint: &Endpoint,
    group: &Group<'_>,
    work: impl FnOnce(&mut Accessor<'_>) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let bytes = usize::try_from(plan.buffer_bytes())
        .map_err(|_| BenchError::Failure("the buffers do not fit into memory".into()))?;
    // Never freed: a rank may be in the middle of a write when the command ends.
    let memory: &'static mut Pages = Box::leak(Box::new(Pages::filled(bytes, 1)?));
    endpoint.scope(|scope| {
        // SAFETY: the memory is valid until the process ends, and nothing refers to it
        // but this region: a write that ends after the scope meets nobody.
        let region = unsafe { scope.register_memory(memory, Protection::READ_WRITE) };
        let key = region.map_err(|error| failed(&error))?.key();
        let keys = exchange(group, &key)?;
        let mut groups = Vec::new();
        for reach in access.cases(plan.ranks - 1) {
            if groups.iter().all(|(number, _)| *number != reach.at_once) {
                groups.push((reach.at_once, part(group, reach.at_once)?));
            }
        }
        let own = Pages::filled(bytes, 2)?;
        work(&mut Accessor { plan, endpoint, rank: group.rank(), keys, groups, own })
    })
}

fn exchange(group: &Group<'_>, own: &RegionKey) -> Result<Vec<RegionKey>, BenchError> {
    let mut all = vec![0; RegionKey::BYTES * group.size() as usize];
    let own = own.to_bytes();
    group.run(Operation::allgather(&own[..], &mut all[..])).map_err(|error| failed(&error))?;
    Ok(all.as_chunks::<{ RegionKey::BYTES }>().0.iter().map(|key| RegionKey::from_bytes(*key)).collect())
}

/// The group of the first so many ranks behind rank 0, on those.
fn part<'e>(group: &Group<'e>, number: u32) -> Result<Option<Group<'e>>, BenchError> {
    let takes_part = (1..=number).contains(&group.rank());
    group.split(takes_part.then_some(0), 0).map_err(|error| failed(&error))
}

impl Accessor<'_> {
    pub fn answer(&mut self, ask: Ask) -> Outcome {
        match ask {
            Ask::Turn { contender, bytes, iterations, warm_up } => {
                let seconds = self.turn(contender, bytes, iterations, warm_up)?;
                Ok(Answer::Timed { seconds })
            }
            Ask::Verify { .. } | Ask::Explain { .. } => {
                Err(BenchError::Failure("accesses are neither checked nor chosen".into()))
            }
        }
    }

    /// All who take part begin together; whoever does not sleeps.
    fn turn(
        &mut self,
        contender: usize,
        bytes: u64,
        iterations: u64,
        warm_up: u64,
    ) -> Result<f64, BenchError> {
        let Some(Turns::Reach(reach)) = self.plan.contenders.get(contender) else {
            return Err(BenchError::Failure("this turn is nobody's".into()));
        };
        let group = self.groups.iter().find(|(number, _)| *number == reach.at_once);
        let Some((_, Some(group))) = group else { return Ok(0.0) };
        let key = &self.keys[reach.owner(self.rank) as usize];
        let offset = u64::from(reach.block(self.rank)) * stride_bytes(bytes);
        // It fits into the buffers, which are of this length.
        let own = &mut self.own[..bytes as usize];
        let mut times = |number: u64| {
            (0..number)
                .try_for_each(|_| once(self.endpoint, *reach, key, offset, own))
                .map_err(|e| failed(&e))
        };
        times(warm_up)?;
        group.run(Operation::barrier()).map_err(|error| failed(&error))?;
        let start = Instant::now();
        times(iterations)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

fn once(
    endpoint: &Endpoint,
    reach: Reach,
    key: &RegionKey,
    offset: u64,
    own: &mut [u8],
) -> Result<(), OperationError> {
    let done = if reach.writes { endpoint.put(key, offset, own) } else { endpoint.get(key, offset, own) };
    done.map(drop)
}
