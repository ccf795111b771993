//! This endpoint's own pool: which lanes are free, which hold memory, and who
//! has which mailbox.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use lmt_core::error::MemoryError;

use crate::geometry::{Config, Geometry, MAILBOXES, PAGE_BYTES, SLOTS};
use crate::lane::{Producer, Tag, Words, announce, withdraw};
use crate::sys::Mapping;

/// The pool that this endpoint sends through.
#[derive(Debug)]
pub(crate) struct Pool {
    fd: OwnedFd,
    pub(crate) mapping: Mapping,
    pub(crate) geometry: Geometry,
    kept_lanes: usize,
    /// Free lanes with memory; the last used is used first, while it is warm.
    warm: Vec<u32>,
    /// Free lanes without memory.
    cold: Vec<u32>,
    /// Pages before the buffers that have memory.
    committed_pages: Vec<bool>,
    mailboxes: Arc<Mutex<Mailboxes>>,
    last_tag: Tag,
}

/// Mailboxes given back, and how many were ever given out.
#[derive(Debug, Default)]
struct Mailboxes {
    free: Vec<u32>,
    used: u32,
}

/// A mailbox, one peer's while this lives.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) index: u32,
    home: Arc<Mutex<Mailboxes>>,
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.index);
    }
}

/// A lane in use, and the slot in which the peer finds it.
#[derive(Debug)]
pub(crate) struct TakenLane {
    pub(crate) lane: u32,
    pub(crate) slot: u32,
    pub(crate) producer: Producer,
}

impl Pool {
    pub(crate) fn new(config: &Config, geometry: Geometry) -> Result<Self, MemoryError> {
        let (mapping, fd) = Mapping::create(geometry.pool_bytes())?;
        let head_pages = geometry.lane_range(0).start / PAGE_BYTES;
        Ok(Self {
            fd,
            mapping,
            geometry,
            kept_lanes: config.kept_transfers as usize,
            warm: Vec::new(),
            cold: (0..geometry.lanes).rev().collect(),
            committed_pages: vec![false; head_pages as usize],
            mailboxes: Arc::default(),
            last_tag: Tag::FIRST,
        })
    }

    /// The pool's descriptor, for a peer.
    pub(crate) fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    pub(crate) fn next_tag(&mut self) -> Tag {
        self.last_tag = self.last_tag.next();
        self.last_tag
    }

    /// A mailbox for a new peer; `None` when all are taken.
    pub(crate) fn lease_mailbox(&self) -> Option<Mailbox> {
        let mut boxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let index = boxes.free.pop().or_else(|| {
            let fresh = (boxes.used < MAILBOXES).then_some(boxes.used)?;
            boxes.used += 1;
            Some(fresh)
        })?;
        Some(Mailbox { index, home: Arc::clone(&self.mailboxes) })
    }

    /// Makes sure that a mailbox has memory.
    pub(crate) fn commit_mailbox(&mut self, mailbox: &Mailbox) -> Result<(), MemoryError> {
        let start = Geometry::slot_offset(mailbox.index, 0);
        self.commit_head(start..start + u64::from(SLOTS) * 8)
    }

    /// Takes memory for the pages of `range`, once.
    fn commit_head(&mut self, range: Range<u64>) -> Result<(), MemoryError> {
        for page in range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES) {
            let Some(committed) = self.committed_pages.get_mut(page as usize) else { break };
            if !*committed {
                self.mapping.commit(page * PAGE_BYTES..(page + 1) * PAGE_BYTES)?;
                *committed = true;
            }
        }
        Ok(())
    }

    /// Takes a lane for the transfer `tag` and says so in the mailbox; `None`
    /// when no lane is free.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn take(
        &mut self,
        mailbox: &Mailbox,
        slot: u32,
        tag: Tag,
    ) -> Result<Option<TakenLane>, MemoryError> {
        if self.warm.is_empty() {
            self.warm_one()?;
        }
        let place = self.mapping.word(Geometry::slot_offset(mailbox.index, slot));
        let (Some(place), Some(&lane)) = (place, self.warm.last()) else {
            return Ok(None);
        };
        let Some(words) = words(&self.mapping, lane) else {
            return Ok(None);
        };
        self.warm.pop();
        let producer = Producer::open(words, tag, self.geometry.buffers);
        announce(place, tag, lane);
        Ok(Some(TakenLane { lane, slot, producer }))
    }

    /// Takes memory for a free lane without, if there is one.
    fn warm_one(&mut self) -> Result<(), MemoryError> {
        let Some(&lane) = self.cold.last() else {
            return Ok(());
        };
        let (first, last) = Geometry::words_offsets(lane);
        self.commit_head(first..last + 8)?;
        let range = self.geometry.lane_range(lane);
        if let Err(short) = self.mapping.commit(range.clone()) {
            // What it found of the memory is not kept from others.
            let _ = lmt_core::shared_memory::give_back(&self.fd, range);
            return Err(short);
        }
        self.cold.pop();
        self.warm.push(lane);
        Ok(())
    }

    /// Takes a lane back, whatever the receiver is doing with it.
    pub(crate) fn put_back(&mut self, mailbox: &Mailbox, taken: TakenLane) {
        let place = self.mapping.word(Geometry::slot_offset(mailbox.index, taken.slot));
        let (Some(place), Some(words)) = (place, words(&self.mapping, taken.lane)) else {
            // A forked child has no say in its parent's pool.
            return;
        };
        withdraw(place);
        Producer::close(words);
        // After `close` nothing that a receiver reads here counts, so the
        // memory may go.
        let surplus = self.warm.len() >= self.kept_lanes;
        if surplus
            && lmt_core::shared_memory::give_back(&self.fd, self.geometry.lane_range(taken.lane)).is_ok()
        {
            self.cold.push(taken.lane);
        } else {
            self.warm.push(taken.lane);
        }
    }

    /// Free lanes: with memory, without.
    #[cfg(test)]
    pub(crate) fn free_lanes(&self) -> (usize, usize) {
        (self.warm.len(), self.cold.len())
    }

    /// Memory that the pool takes now, in bytes.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> u64 {
        nix::sys::stat::fstat(&self.fd).map_or(0, |stat| stat.st_blocks as u64 * 512)
    }
}

/// The words of a lane, in one's own pool or a peer's.
pub(crate) fn words(mapping: &Mapping, lane: u32) -> Option<Words<'_>> {
    let (produced, consumed) = Geometry::words_offsets(lane);
    Some(Words { produced: mapping.word(produced)?, consumed: mapping.word(consumed)? })
}
