//! A list as the copying thread works through it.

use std::sync::Arc;

use lmt_cma::vm::{self, CopyError, Local, RemoteSegment};
use lmt_copy::Distance;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::cursor::Cursor;
use lmt_core::process::PeerProcess;
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};

use crate::chunks::{Chunks, PAGE_BYTES};
use crate::engine::CopyFailure;
use crate::few::Few;
use crate::places::{Copy, CopyList, Mapped, Place};
use crate::queue::Work;
use crate::sys;

/// While the target's pages are new to this process, they are mapped and filled
/// in turns of so many bytes: then the kernel's zeroes are still in the cache
/// when they are overwritten. (Measured: 1 MiB of new pages takes 177 us so and
/// 280 us with a fault for each; 4 MiB in one turn 924 us and 1266 us. Pages
/// that are there cost a tenth more so, hence only new ones.)
const POPULATE_BYTES: u64 = 256 << 10;

/// Copies of one kind that follow each other in the list.
#[derive(Debug)]
enum Run {
    /// Between this process and the peer, by the kernel.
    Peer(PeerRun),
    /// Within this process.
    Here { from: Mapped, to: Mapped, left_bytes: u64, distance: Distance },
}

#[derive(Debug)]
struct PeerRun {
    is_read: bool,
    local: Buffer,
    local_at: Cursor,
    remote: Few<RemoteSegment>,
    remote_at: Cursor,
    left_bytes: u64,
}

/// A list in flight.
#[derive(Debug)]
pub(super) struct Task {
    peer: Option<Arc<PeerProcess>>,
    runs: Few<Run>,
    /// Runs that are done.
    done_runs: usize,
    chunks: Chunks,
    /// Whether the last chunk met pages that were not mapped.
    meets_new_pages: bool,
}

impl Task {
    /// The list, which the engine's reach must hold, ready to be copied.
    pub fn new(list: &CopyList) -> Self {
        let copies = list.copies();
        let same_kind = |a: &Copy, b: &Copy| kind(a) != Kind::Here && kind(a) == kind(b);
        let runs = copies.chunk_by(same_kind).filter_map(Run::of).collect();
        Self {
            peer: list.peer().cloned(),
            runs,
            done_runs: 0,
            chunks: Chunks::of(list.total_bytes()),
            meets_new_pages: false,
        }
    }

    /// Copies up to `max_bytes`; returns how many, and why not more.
    fn copy(&mut self, max_bytes: u64) -> (u64, Result<(), CopyFailure>) {
        let mut done = 0;
        while done < max_bytes {
            let Some(run) = self.runs.as_mut_slice().get_mut(self.done_runs) else { break };
            let (bytes, result) = run.copy(self.peer.as_deref(), max_bytes - done, self.meets_new_pages);
            done += bytes;
            if run.left_bytes() == 0 {
                self.done_runs += 1;
            }
            if result.is_err() {
                return (done, result);
            }
        }
        (done, Ok(()))
    }
}

impl Work for Task {
    fn chunk(&mut self) -> (u64, Option<Result<(), CopyFailure>>) {
        let Some(chunk) = self.chunks.next() else { return (0, Some(Ok(()))) };
        let faults = faults_so_far();
        let (bytes, result) = self.copy(chunk.bytes());
        let new_pages = faults_so_far().saturating_sub(faults);
        self.meets_new_pages = new_pages * 2 >= chunk.bytes() / PAGE_BYTES && new_pages > 0;
        match result {
            Err(failure) => (bytes, Some(Err(failure))),
            Ok(()) => (bytes, self.chunks.is_empty().then_some(Ok(()))),
        }
    }
}

/// Page faults of this thread that needed no disk.
fn faults_so_far() -> u64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.minor_page_faults().cast_unsigned())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Here,
}

fn kind(copy: &Copy) -> Kind {
    match (copy.from(), copy.to()) {
        (Place::Peer(_), _) => Kind::Read,
        (_, Place::Peer(_)) => Kind::Write,
        _ => Kind::Here,
    }
}

impl Run {
    /// Copies of one kind; one of those within this process.
    fn of(copies: &[Copy]) -> Option<Self> {
        let first = copies.first()?;
        if let (Place::Mapped(from), Place::Mapped(to)) = (first.from(), first.to()) {
            let is_away = first.bytes() >= sys::AWAY_MIN_BYTES;
            let distance = if is_away { Distance::Away } else { Distance::Near };
            return Some(Self::Here { from, to, left_bytes: first.bytes(), distance });
        }
        let is_read = kind(first) == Kind::Read;
        let (mut here, mut there) = (Few::None, Few::None);
        for copy in copies {
            let (mapped, address) = match (copy.from(), copy.to()) {
                (Place::Peer(address), Place::Mapped(mapped))
                | (Place::Mapped(mapped), Place::Peer(address)) => (mapped, address),
                _ => return None,
            };
            here.push(mapped.shortened(copy.bytes()));
            add(&mut there, RemoteSegment { address, bytes: copy.bytes() });
        }
        let access = if is_read { Access::Write } else { Access::Read };
        Some(Self::Peer(PeerRun {
            is_read,
            local: sys::as_buffer(&here, access),
            local_at: Cursor::default(),
            remote: there,
            remote_at: Cursor::default(),
            left_bytes: copies.iter().map(Copy::bytes).sum(),
        }))
    }

    const fn left_bytes(&self) -> u64 {
        match self {
            Self::Peer(run) => run.left_bytes,
            Self::Here { left_bytes, .. } => *left_bytes,
        }
    }

    fn copy(
        &mut self,
        peer: Option<&PeerProcess>,
        max_bytes: u64,
        new_pages: bool,
    ) -> (u64, Result<(), CopyFailure>) {
        match self {
            Self::Peer(run) => match peer {
                Some(peer) => run.copy(peer, max_bytes, new_pages),
                None => (0, Err(CopyFailure::Refused { errno: libc::ESRCH })),
            },
            Self::Here { from, to, left_bytes, distance } => {
                let bytes = sys::copy_mapped(*from, *to, max_bytes.min(*left_bytes), *distance);
                let (Some(next_from), Some(next_to), 1..) = (from.advanced(bytes), to.advanced(bytes), bytes)
                else {
                    return (0, Err(CopyFailure::Refused { errno: libc::EFAULT }));
                };
                (*from, *to, *left_bytes) = (next_from, next_to, *left_bytes - bytes);
                (bytes, Ok(()))
            }
        }
    }
}

impl PeerRun {
    fn copy(
        &mut self,
        peer: &PeerProcess,
        max_bytes: u64,
        new_pages: bool,
    ) -> (u64, Result<(), CopyFailure>) {
        let mut max_bytes = max_bytes.min(self.left_bytes);
        if new_pages && self.is_read {
            max_bytes = max_bytes.min(POPULATE_BYTES);
            self.populate(max_bytes);
        }
        let local = if self.is_read { Local::Into(&mut self.local) } else { Local::OutOf(&self.local) };
        let copied = vm::copy(peer, local, &mut self.local_at, &self.remote, &mut self.remote_at, max_bytes);
        self.left_bytes -= copied.bytes;
        let result = match copied.error {
            Some(error) => Err(failure_of(error, peer)),
            // The lists are as long as each other, so there was something.
            None if copied.bytes == 0 => Err(CopyFailure::Refused { errno: libc::EFAULT }),
            None => Ok(()),
        };
        (copied.bytes, result)
    }

    /// Has the next bytes' pages mapped here.
    fn populate(&self, bytes: u64) {
        let (mut at, mut left_bytes) = (self.local_at, bytes);
        let segments = self.local.segments();
        while let Some(piece) = at.take(segments, left_bytes) {
            left_bytes -= piece.bytes;
            let address = segments[piece.index].address + piece.offset as usize;
            sys::populate(Segment { address, bytes: piece.bytes as usize });
        }
    }
}

/// Adds a segment, or lengthens the last one if it goes on there.
fn add(list: &mut Few<RemoteSegment>, segment: RemoteSegment) {
    match list.as_mut_slice().last_mut() {
        Some(last) if last.address.checked_add(last.bytes) == Some(segment.address) => {
            last.bytes += segment.bytes;
        }
        _ => list.push(segment),
    }
}

fn failure_of(error: CopyError, peer: &PeerProcess) -> CopyFailure {
    match error {
        CopyError::Refused(Errno::ESRCH) if !peer.is_alive() => CopyFailure::PeerDead,
        CopyError::Refused(errno) => CopyFailure::Refused { errno: errno as i32 },
        _ => CopyFailure::PeerDead,
    }
}
