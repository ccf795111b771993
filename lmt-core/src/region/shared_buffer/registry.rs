//! All arenas of this process: what is where, what is free, and what a peer may
//! still be copying.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arena::{Arena, HEAD_BYTES, LEASES};
use super::extents::Extents;
use super::leaked::Leaked;
use super::{ARENA_BYTES, LINE_BYTES, OWN_ARENA_BYTES, PAGE_BYTES, lease};
use crate::base::fork_guard::Origin;
use crate::base::process::PeerProcess;
use crate::vocabulary::error::{MemoryError, MemoryShort};

/// This process's arenas; `None` before the first buffer. No
/// `OnceLock`: a child that was forked while another thread held the lock has
/// its own, and leaves its parent's alone.
static REGISTRY: Leaked<Registry> = Leaked::new();

/// The number of the arena that was made last. A child goes on counting.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

pub(super) struct Registry {
    origin: Origin,
    state: Mutex<State>,
    /// How many arenas were given up.
    given_up: AtomicU32,
}

#[derive(Default)]
struct State {
    /// By the address at which they begin.
    arenas: BTreeMap<usize, Used>,
    /// Leases that ended while their peer was copying.
    lingering: Vec<Lingering>,
}

/// An arena, and what of it is in use.
struct Used {
    arena: Arc<Arena>,
    free: Extents,
    /// By offset.
    blocks: BTreeMap<usize, Block>,
    /// Up to here bytes may not be zero.
    used_end: usize,
    free_leases: Vec<u32>,
    next_generation: u32,
}

struct Block {
    bytes: usize,
    /// Lingering leases of it.
    held: u32,
    /// Whether its buffer is gone.
    dropped: bool,
}

/// A lease whose peer has begun and was not done when it ended.
struct Lingering {
    arena: Arc<Arena>,
    line: u32,
    generation: u32,
    /// The blocks that it is about.
    blocks: Vec<BlockName>,
    process: Arc<PeerProcess>,
}

/// A block, by the address of its arena and its offset there.
pub(super) type BlockName = (usize, usize);

/// Where some memory is.
pub(super) struct Place {
    pub arena: Arc<Arena>,
    /// In the arena.
    pub offset: usize,
    /// The block that it is in.
    pub block: BlockName,
}

/// This process's registry, if it has one.
#[inline]
pub(super) fn existing() -> Option<&'static Registry> {
    REGISTRY.get().filter(|registry| registry.origin.is_this_process())
}

pub(super) fn this_process() -> &'static Registry {
    existing().unwrap_or_else(make)
}

#[cold]
fn make() -> &'static Registry {
    let new = Registry { origin: Origin::here(), state: Mutex::default(), given_up: AtomicU32::new(0) };
    let new: &'static Registry = Box::leak(Box::new(new));
    let mut present = REGISTRY.get();
    loop {
        if let Some(other) = present.filter(|registry| registry.origin.is_this_process()) {
            // Another thread was first; what was made here is a few words.
            return other;
        }
        match REGISTRY.replace(present, new) {
            Ok(()) => return new,
            Err(other) => present = other,
        }
    }
}

impl Registry {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many arenas were given up so far.
    pub fn given_up(&self) -> u32 {
        // Relaxed: a hint to look.
        self.given_up.load(Ordering::Relaxed)
    }

    /// Cuts a block out of an arena that has room, or of a new one. Returns the
    /// arena, the offset and the block's bytes.
    pub fn take(&self, bytes: usize, commit: bool) -> Result<(Arc<Arena>, usize), MemoryError> {
        let too_long = || MemoryShort {
            purpose: super::arena::PURPOSE,
            needed_bytes: bytes as u64,
            available: (isize::MAX as u64).to_string(),
            limit: "the address space".to_owned(),
            key: super::arena::KEY,
        };
        let align = if bytes >= PAGE_BYTES { PAGE_BYTES } else { LINE_BYTES };
        let bytes = bytes.max(1).checked_next_multiple_of(align).filter(|b| *b <= isize::MAX as usize / 2);
        let bytes = bytes.ok_or_else(too_long)?;
        let mut state = self.state();
        self.reap(&mut state);
        // A long one shares its arena with nobody.
        let common = state.arenas.values_mut().filter(|_| bytes <= OWN_ARENA_BYTES);
        let found = common.into_iter().find_map(|used| used.take(bytes, align));
        let (arena, offset, was_used) = match found {
            Some(found) => found,
            None => state.add(bytes, align)?,
        };
        drop(state);
        let committed = if commit { arena.commit(offset, bytes, was_used) } else { Ok(()) };
        if let Err(short) = committed {
            self.give_back(&arena, offset);
            return Err(short);
        }
        Ok((arena, offset))
    }

    /// A buffer is dropped.
    pub fn give_back(&self, arena: &Arena, offset: usize) {
        let mut state = self.state();
        self.reap(&mut state);
        let Some(used) = state.arenas.get_mut(&arena.base_address()) else { return };
        let Some(block) = used.blocks.get_mut(&offset) else { return };
        block.dropped = true;
        self.free_block(&mut state, arena.base_address(), offset);
    }

    /// Frees a block that nobody uses any more, and its arena with the last one.
    fn free_block(&self, state: &mut State, base: usize, offset: usize) {
        let Some(used) = state.arenas.get_mut(&base) else { return };
        let Some(block) = used.blocks.get(&offset).filter(|block| block.dropped && block.held == 0) else {
            return;
        };
        let bytes = block.bytes;
        used.blocks.remove(&offset);
        used.arena.return_pages(offset, bytes);
        used.free.give_back(offset, bytes);
        // One that is empty is kept for what comes next.
        let empty = |used: &Used| used.blocks.is_empty();
        let spare = state.arenas.values().filter(|used| empty(used) && used.has_usual_length()).count();
        let goes = |used: &Used| empty(used) && (!used.has_usual_length() || spare > 1);
        if state.arenas.get(&base).is_some_and(goes) {
            state.arenas.remove(&base);
            // Relaxed: see `given_up`.
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Where this memory is, if it is within one buffer.
    pub fn find(&self, address: usize, bytes: usize) -> Option<Place> {
        self.state().find(address, bytes)
    }

    /// Whether this memory is within one buffer.
    pub fn has(&self, address: usize, bytes: usize) -> bool {
        self.state().place(address, bytes).is_some()
    }

    /// Where this memory is, if it is within one buffer, and a lease in its arena as
    /// [`Self::open_lease`] opens it.
    pub fn find_with_lease(&self, address: usize, bytes: usize) -> Option<(Place, Option<(u32, u32)>)> {
        let mut state = self.state();
        let place = state.find(address, bytes)?;
        let lease = self.open_lease_in(&mut state, &place.arena);
        Some((place, lease))
    }

    /// The arena of this number.
    pub fn arena(&self, id: u32) -> Option<Arc<Arena>> {
        let state = self.state();
        let found = state.arenas.values().find(|used| used.arena.id() == id);
        found.map(|used| Arc::clone(&used.arena))
    }

    /// Opens a lease in an arena: its line and generation. `None` when there are
    /// as many as there can be.
    pub fn open_lease(&self, arena: &Arena) -> Option<(u32, u32)> {
        self.open_lease_in(&mut self.state(), arena)
    }

    fn open_lease_in(&self, state: &mut State, arena: &Arena) -> Option<(u32, u32)> {
        if !state.lingering.is_empty() {
            self.reap(state);
        }
        let used = state.arenas.get_mut(&arena.base_address())?;
        let line = used.free_leases.pop()?;
        used.next_generation = lease::next(used.next_generation);
        let generation = used.next_generation;
        arena.lease(line)?.open(generation);
        Some((line, generation))
    }

    /// Ends a lease about these blocks; they stay until its peer is done.
    pub fn end_lease(
        &self,
        arena: &Arc<Arena>,
        (line, generation): (u32, u32),
        blocks: &[BlockName],
        process: &Arc<PeerProcess>,
    ) {
        let quiet =
            arena.lease(line).is_none_or(|lease| lease.close(generation) == super::lease::LeaseUse::Yes);
        let mut state = self.state();
        let Some(used) = state.arenas.get_mut(&arena.base_address()) else { return };
        if quiet {
            used.free_leases.push(line);
            return;
        }
        for (base, offset) in blocks {
            let used = state.arenas.get_mut(base);
            if let Some(block) = used.and_then(|used| used.blocks.get_mut(offset)) {
                block.held += 1;
            }
        }
        let (arena, process) = (Arc::clone(arena), Arc::clone(process));
        state.lingering.push(Lingering { arena, line, generation, blocks: blocks.to_vec(), process });
    }

    /// Frees what peers were copying when their leases ended, where they are
    /// done or dead.
    fn reap(&self, state: &mut State) {
        let mut at = 0;
        while at < state.lingering.len() {
            if !state.lingering[at].is_over() {
                at += 1;
                continue;
            }
            let Lingering { arena, line, blocks, .. } = state.lingering.swap_remove(at);
            if let Some(used) = state.arenas.get_mut(&arena.base_address()) {
                used.free_leases.push(line);
            }
            for (base, offset) in blocks {
                let used = state.arenas.get_mut(&base);
                if let Some(block) = used.and_then(|used| used.blocks.get_mut(&offset)) {
                    block.held -= 1;
                }
                self.free_block(state, base, offset);
            }
        }
    }
}

impl Lingering {
    fn is_over(&self) -> bool {
        self.arena.lease(self.line).is_none_or(|lease| lease.is_done(self.generation))
            || !self.process.is_alive()
    }
}

impl State {
    /// A new arena, with a block of so many bytes.
    fn add(&mut self, bytes: usize, align: usize) -> Result<(Arc<Arena>, usize, bool), MemoryError> {
        // Relaxed: only that no two are the same counts.
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let own_bytes = (HEAD_BYTES + bytes).next_multiple_of(PAGE_BYTES);
        let arena = if bytes > OWN_ARENA_BYTES {
            Arena::create(id, own_bytes)?
        } else {
            // Where limits are tight, no more than is needed.
            Arena::create(id, ARENA_BYTES).or_else(|_| Arena::create(id, own_bytes))?
        };
        let mut used = Used {
            free: Extents::new(HEAD_BYTES, arena.bytes()),
            blocks: BTreeMap::new(),
            used_end: HEAD_BYTES,
            free_leases: (0..LEASES).rev().collect(),
            next_generation: 0,
            arena: Arc::new(arena),
        };
        let taken = used.take(bytes, align);
        self.arenas.insert(used.arena.base_address(), used);
        // A new one has room for what it was made for.
        let short = || MemoryShort {
            purpose: super::arena::PURPOSE,
            needed_bytes: bytes as u64,
            available: "fewer".to_owned(),
            limit: "the arena".to_owned(),
            key: super::arena::KEY,
        };
        taken.ok_or_else(|| short().into())
    }

    fn place(&self, address: usize, bytes: usize) -> Option<(&Used, usize, usize)> {
        let (base, used) = self.arenas.range(..=address).next_back()?;
        let offset = address - base;
        let (start, block) = used.blocks.range(..=offset).next_back()?;
        let end = offset.checked_add(bytes)?;
        (end <= start + block.bytes).then_some((used, offset, *start))
    }

    fn find(&self, address: usize, bytes: usize) -> Option<Place> {
        let (used, offset, block) = self.place(address, bytes)?;
        Some(Place { arena: Arc::clone(&used.arena), offset, block: (address - offset, block) })
    }
}

impl Used {
    /// Cuts a block out; also whether its bytes may have been used.
    fn take(&mut self, bytes: usize, align: usize) -> Option<(Arc<Arena>, usize, bool)> {
        let offset = self.free.take(bytes, align)?;
        self.blocks.insert(offset, Block { bytes, held: 0, dropped: false });
        let was_used = offset < self.used_end;
        self.used_end = self.used_end.max(offset + bytes);
        Some((Arc::clone(&self.arena), offset, was_used))
    }

    /// Whether it is of the usual length, good for the next buffers.
    fn has_usual_length(&self) -> bool {
        self.arena.bytes() == ARENA_BYTES
    }
}
