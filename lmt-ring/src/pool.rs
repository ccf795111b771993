//! This endpoint's pool of rings, and the peers' leases of them.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use lmt_core::error::MemoryError;
use lmt_core::shared_memory::give_back;

use crate::layout::SLOTS;
use crate::layout::{Layout, Way};
use crate::sys::Mapping;

/// The pool of this endpoint.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) layout: Layout,
    shared: Arc<Shared>,
}

/// What outlives the pool while peers hold leases.
#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    free: Mutex<Vec<u32>>,
    layout: Layout,
}

/// A ring of this endpoint's pool that belongs to one peer; free again, and the memory of its
/// cells given back, when it is dropped. The slots stay as they are until
/// the next lease: the peer may still have to read there that a message is whole.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) ring: u32,
    shared: Arc<Shared>,
}

impl Pool {
    pub(crate) fn new(layout: Layout) -> Result<Self, MemoryError> {
        let (mapping, fd) = Mapping::create(layout.pool_bytes())?;
        let free = Mutex::new((0..layout.rings).rev().collect());
        let shared = Arc::new(Shared { fd, free, layout });
        Ok(Self { mapping: Arc::new(mapping), layout, shared })
    }

    /// The pool's descriptor, for a peer.
    pub(crate) fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.shared.fd.try_clone()
    }

    /// A ring that no peer has, with its slots empty; `None` when there is none.
    pub(crate) fn lease(&self) -> Result<Option<Lease>, MemoryError> {
        let Some(ring) = self.shared.lock().pop() else { return Ok(None) };
        let lease = Lease { ring, shared: Arc::clone(&self.shared) };
        let (offset, bytes) = self.layout.slots(ring);
        self.mapping.commit(offset, bytes)?;
        for way in [Way::FromOwner, Way::ToOwner] {
            for slot in 0..SLOTS {
                if let Some(slot) = self.mapping.slot(self.layout.slot_offset(ring, way, slot)) {
                    slot.clear();
                }
            }
        }
        Ok(Some(lease))
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // The list is whole after any panic: it is only pushed to and popped.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let layout = self.shared.layout;
        if let Err(errno) = give_back(&self.shared.fd, layout.cells(self.ring)) {
            // It stays allocated until the pool goes; nothing else changes.
            let _ = errno;
        }
        self.shared.lock().push(self.ring);
    }
}
