//! What bytes the actions of a rank may touch, and what of it is a race.

use crate::algorithm::Kind;
use crate::call::Block;
use crate::program::{Action, Place, Remote, Span};

use super::super::race::Access;
use super::{Failure, Rank, World};

/// What bytes actions may touch.
impl World {
    /// Checks and notes all that an action touches.
    pub(super) fn touch(&mut self, number: usize, step: u32, action: &Action) -> Result<(), Failure> {
        use Action as A;
        match *action {
            A::Publish(_) | A::Await { .. } => Ok(()),
            A::Get { rank, from, into } => {
                self.touch_remote(number, step, rank, from, into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Put { rank, from, into } => {
                self.touch_local(number, step, from, false)?;
                self.touch_remote(number, step, rank, into, from.bytes, true)
            }
            A::Send { from, .. } => self.touch_local(number, step, from, false),
            A::Receive { into, .. } => self.touch_local(number, step, into, true),
            A::Copy { from, into } => {
                same_length(from, into)?;
                self.touch_local(number, step, from, false)?;
                self.touch_local(number, step, into, true)
            }
            A::CombineBefore { from, into } | A::CombineAfter { from, into } => {
                same_length(from, into)?;
                let element = self.ranks[number].call.element_bytes;
                if from.bytes % element != 0 {
                    return Err(format!("{} bytes are no whole elements of {element}", from.bytes));
                }
                self.touch_local(number, step, from, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Post { from, at } => {
                self.touch_slot(number, step, number, at..at + from.bytes, true)?;
                self.touch_local(number, step, from, false)
            }
            A::Hand { from, cell } => {
                self.touch_cell(number, step, cell, from.bytes, true)?;
                self.touch_local(number, step, from, false)
            }
            A::Accept { cell, into } => {
                self.touch_cell(number, step, cell, into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Take { rank, at, into } => {
                self.touch_slot(number, step, rank as usize, at..at + into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
        }
    }

    fn touch_local(&mut self, number: usize, step: u32, span: Span, writes: bool) -> Result<(), Failure> {
        self.note(number, step, number, (span.place, span.offset, span.bytes), writes)
    }

    fn touch_remote(
        &mut self,
        number: usize,
        step: u32,
        peer: u32,
        remote: Remote,
        bytes: u64,
        writes: bool,
    ) -> Result<(), Failure> {
        let rank = &self.ranks[peer as usize];
        let (place, offset) = self.resolve(peer, remote, bytes)?;
        let exposed = rank.program.exposed;
        let (Remote::At(asked, _) | Remote::Listed { place: asked, .. }) = remote;
        let shown = match asked {
            Place::Input => exposed.input,
            Place::Output => exposed.output,
            Place::Work => exposed.work,
        };
        if !shown {
            return Err(format!("rank {peer} does not expose its {asked:?}"));
        }
        if rank.ended {
            return Err(format!("rank {peer} has ended, and its {place:?} is no longer there"));
        }
        self.note(number, step, peer as usize, (place, offset, bytes), writes)
    }

    /// Where in a peer's memory.
    pub(super) fn resolve(&self, peer: u32, remote: Remote, bytes: u64) -> Result<(Place, u64), Failure> {
        let call = &self.ranks[peer as usize].call;
        let (place, of) = match remote {
            // Only reduce's root knows that it is in place: see `Place::Input`.
            Remote::At(Place::Input, offset) if call.kind == Kind::Reduce && call.in_place => {
                return Ok((Place::Output, offset));
            }
            Remote::At(place, offset) => return Ok((place, offset)),
            Remote::Listed { place, of } => (place, of),
        };
        let block = table(&self.ranks[peer as usize], place, of)
            .ok_or_else(|| format!("rank {peer} shows no table of its {place:?} with rank {of} in it"))?;
        if block.bytes != bytes {
            return Err(format!(
                "rank {peer}'s table says that rank {of}'s block has {} bytes and not {bytes}",
                block.bytes
            ));
        }
        Ok((place, block.offset))
    }

    /// Checks the bounds, and that nobody else may be at the same bytes.
    fn note(
        &mut self,
        number: usize,
        step: u32,
        owner: usize,
        (place, offset, bytes): (Place, u64, u64),
        writes: bool,
    ) -> Result<(), Failure> {
        let has = self.ranks[owner].memory[place as usize].len() as u64;
        if offset + bytes > has {
            return Err(format!(
                "{bytes} bytes at {offset} are outside of rank {owner}'s {place:?} of {has} bytes"
            ));
        }
        if writes && place == Place::Input {
            return Err(format!("rank {owner}'s input is written"));
        }
        let clock = self.ranks[number].clock.clone();
        let access = Access { rank: number as u32, step, range: offset..offset + bytes, writes };
        self.ranks[owner].logs[place as usize].add(access, &clock).map_err(|other| {
            let verb = |writes| if writes { "writes" } else { "reads" };
            format!(
                "it {} {bytes} bytes at {offset} of rank {owner}'s {place:?}, and cannot know that rank {}'s step {}, which {} {:?}, has ended",
                verb(writes), other.rank, other.step, verb(other.writes), other.range
            )
        })
    }
}

fn same_length(from: Span, into: Span) -> Result<(), Failure> {
    if from.bytes != into.bytes {
        return Err(format!("{} bytes go into {}", from.bytes, into.bytes));
    }
    Ok(())
}

/// An entry of a table that a rank shows.
fn table(rank: &Rank, place: Place, of: u32) -> Option<Block> {
    let (call, tables) = (&rank.call, rank.program.tables);
    let blocks = match (place, call.kind) {
        (Place::Input, Kind::Scatter | Kind::ReduceScatter) if tables.input => &call.blocks,
        (Place::Input, Kind::Alltoall) if tables.input => &call.input_blocks,
        (Place::Output, Kind::Gather | Kind::Allgather | Kind::Alltoall) if tables.output => &call.blocks,
        _ => return None,
    };
    (of < call.size).then(|| blocks.of(of))
}
