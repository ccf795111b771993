//! Memory of a client: the segments of a region, or the local ones of a copy.
//!
//! The driver pins pages. Here there is only the client's address space, and
//! what is mapped there may be replaced. So the supervisor is told before memory
//! goes, and takes a copy of the pages that a region still holds; from then on
//! the copy is the page. The owner no longer shares it, which after munmap is
//! just so for the driver's pages.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::Segment;
use crate::maps::{self, PAGE_BYTES};
use crate::sys;

type Page = Arc<Mutex<[u8; PAGE_BYTES as usize]>>;

/// Segments in one process's memory.
#[derive(Debug)]
pub struct Memory {
    pub process: i32,
    segments: Vec<Segment>,
    /// Where each segment begins in the whole.
    starts: Vec<u64>,
    bytes: u64,
    /// Pages, by address, that the process no longer has.
    kept: Mutex<BTreeMap<u64, Page>>,
    /// Copies that are in flight are to fail.
    ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub fn new(process: i32, segments: Vec<Segment>) -> Self {
        let mut bytes = 0_u64;
        let mut starts = Vec::with_capacity(segments.len());
        for segment in &segments {
            starts.push(bytes);
            bytes = bytes.saturating_add(segment.bytes);
        }
        Self { process, segments, starts, bytes, kept: Mutex::default(), ended: AtomicBool::new(false) }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Has the copies that are in flight fail, for a driver that is wrong so.
    pub fn end_copies(&self) {
        // Relaxed: a word by itself, with nothing written before it to be seen.
        self.ended.store(true, Ordering::Relaxed);
    }

    pub fn copies_ended(&self) -> bool {
        // Relaxed: as above.
        self.ended.load(Ordering::Relaxed)
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Reads from `offset` on until `into` is full or memory is not there;
    /// returns how many bytes were read.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        self.each_piece(offset, into.len(), |done, address, bytes, page| {
            let into = &mut into[done..done + bytes];
            match page {
                Some(page) => {
                    let at = (address % PAGE_BYTES) as usize;
                    into.copy_from_slice(&lock(&page)[at..at + bytes]);
                    bytes
                }
                None => sys::read_memory(self.process, address, into),
            }
        })
    }

    /// Writes from `offset` on; returns how many bytes were written.
    pub fn write(&self, offset: u64, from: &[u8]) -> usize {
        self.each_piece(offset, from.len(), |done, address, bytes, page| {
            let from = &from[done..done + bytes];
            match page {
                Some(page) => {
                    let at = (address % PAGE_BYTES) as usize;
                    lock(&page)[at..at + bytes].copy_from_slice(from);
                    bytes
                }
                None => sys::write_memory(self.process, address, from),
            }
        })
    }

    /// Calls `act` with each contiguous piece, which lies in one page if that
    /// page is kept here, until it does less than it was asked for.
    fn each_piece(
        &self,
        offset: u64,
        bytes: usize,
        mut act: impl FnMut(usize, u64, usize, Option<Page>) -> usize,
    ) -> usize {
        let mut done = 0;
        let mut index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        while done < bytes {
            let at = offset + done as u64;
            let Some(segment) = self.segments.get(index) else {
                break;
            };
            let within = at - self.starts[index];
            if within >= segment.bytes {
                index += 1;
                continue;
            }
            let address = segment.address.wrapping_add(within);
            let (most, page) = self.uniform(address, segment.bytes - within);
            let piece = (bytes - done).min(usize::try_from(most).unwrap_or(usize::MAX));
            let moved = act(done, address, piece, page);
            done += moved;
            if moved < piece {
                break;
            }
        }
        done
    }

    /// How much from `address` on is of one kind: a page that is kept, or the
    /// process's memory up to the next such page.
    fn uniform(&self, address: u64, most: u64) -> (u64, Option<Page>) {
        let kept = lock(&self.kept);
        let page = address - address % PAGE_BYTES;
        if let Some(found) = kept.get(&page) {
            return (most.min(page + PAGE_BYTES - address), Some(Arc::clone(found)));
        }
        match kept.range(page..).next() {
            Some((next, _)) => (most.min(next - address), None),
            None => (most, None),
        }
    }

    /// Whether any of it lies in `bytes` bytes from `address` on.
    pub fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        self.segments
            .iter()
            .any(|it| it.bytes > 0 && it.address < end && address < it.address.saturating_add(it.bytes))
    }

    /// Keeps the pages that lie in this range, before the process loses them.
    /// `saved` has the pages that others have kept in the same moment: who
    /// pinned one page goes on sharing it.
    pub fn keep(&self, address: u64, bytes: u64, saved: &mut HashMap<u64, Page>) {
        let end = address.saturating_add(bytes);
        let mut kept = lock(&self.kept);
        for segment in &self.segments {
            let start = segment.address.max(address - address % PAGE_BYTES);
            let stop = segment.address.saturating_add(segment.bytes).min(end);
            if start >= stop {
                continue;
            }
            for page in maps::pages(Segment { address: start, bytes: stop - start }) {
                let shared = saved.entry(page).or_insert_with(|| read_page(self.process, page));
                kept.entry(page).or_insert_with(|| Arc::clone(shared));
            }
        }
    }

    /// Has these pages be the zero page from now on.
    pub fn keep_zeros(&self, pages: impl IntoIterator<Item = u64>) {
        let zeros = |page| (page, Arc::new(Mutex::new([0; PAGE_BYTES as usize])));
        lock(&self.kept).extend(pages.into_iter().map(zeros));
    }
}

fn read_page(process: i32, page: u64) -> Page {
    let mut bytes = [0; PAGE_BYTES as usize];
    sys::read_memory(process, page, &mut bytes);
    Arc::new(Mutex::new(bytes))
}

/// Which side of a copy has no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Source,
    Target,
}

/// A place in a client's memory.
#[derive(Clone, Debug)]
pub struct Place {
    pub memory: Arc<Memory>,
    pub offset: u64,
}

impl Place {
    pub fn left(&self) -> u64 {
        self.memory.bytes().saturating_sub(self.offset)
    }

    /// The place `bytes` further on.
    fn advanced(&self, bytes: u64) -> Self {
        Self { memory: Arc::clone(&self.memory), offset: self.offset + bytes }
    }

    /// The same addresses, whatever stands there when it is used.
    pub fn unpinned(&self) -> Self {
        let Memory { process, segments, .. } = &*self.memory;
        Self { memory: Arc::new(Memory::new(*process, segments.clone())), offset: self.offset }
    }

    /// How many bytes follow the `done`th in the same segment, and how many in
    /// the same page of it; 0 behind the end.
    pub fn pieces_at(&self, done: u64) -> (u64, u64) {
        let at = self.offset + done;
        let Memory { segments, starts, .. } = &*self.memory;
        let holds = |(segment, start): (&Segment, &u64)| {
            let left = (start + segment.bytes).saturating_sub(at);
            (at >= *start && left > 0).then_some((segment.address + (at - start), left))
        };
        let Some((address, left)) = segments.iter().zip(starts).find_map(holds) else { return (0, 0) };
        (left, left.min(PAGE_BYTES - address % PAGE_BYTES))
    }
}

/// A part of a copy: from which byte on, and how many.
pub type Part = (u64, u64);

/// A copy, in parts.
#[derive(Debug)]
pub struct Copy {
    /// What was left over by others, and is made first. No fault of it is told.
    pub before: Vec<Copy>,
    pub from: Place,
    pub to: Place,
    pub parts: Vec<Part>,
}

impl Copy {
    /// Makes it, part by part; what comes before a fault arrives.
    pub fn make(&self) -> Result<(), Fault> {
        for left_over in &self.before {
            let _nobody_waits = left_over.make();
        }
        let mut parts = self.parts.iter();
        parts.try_for_each(|(at, bytes)| copy(&self.from.advanced(*at), &self.to.advanced(*at), *bytes))
    }
}

/// Copies `bytes` bytes, in order; those before a fault arrive.
fn copy(from: &Place, to: &Place, bytes: u64) -> Result<(), Fault> {
    let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX).min(512 << 10)];
    let mut done = 0;
    while done < bytes {
        let chunk = buffer.len().min(usize::try_from(bytes - done).unwrap_or(usize::MAX));
        let read = from.memory.read(from.offset + done, &mut buffer[..chunk]);
        let written = to.memory.write(to.offset + done, &buffer[..read]);
        if written < read {
            return Err(Fault::Target);
        }
        if read < chunk {
            return Err(Fault::Source);
        }
        done += chunk as u64;
    }
    Ok(())
}
