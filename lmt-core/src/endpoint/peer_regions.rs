//! What is kept of one peer's regions: its table, and those that are mapped here.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::memory::shared_memory::SharedMemory;
use crate::region::{RegionError, RegionKey, RemoteTable, attach_shared};

/// What is known here of one peer's declared memory.
#[derive(Debug)]
pub(crate) struct PeerRegions {
    pub(super) table: RemoteTable,
    pub(super) mapped: Mapped,
    /// The region whose memory was asked for.
    pub(super) asked: Option<RegionKey>,
}

/// Shared regions that are mapped, or why one is not; the one used last is at
/// the back.
#[derive(Debug, Default)]
pub(super) struct Mapped(VecDeque<(RegionKey, Result<Arc<SharedMemory>, String>)>);

impl PeerRegions {
    /// Mappings kept for each peer.
    const MAX_MAPPED: usize = 32;

    pub fn new(table: RemoteTable) -> Self {
        Self { table, mapped: Mapped::default(), asked: None }
    }

    /// The owner's answer: the key that was asked for, with the descriptor if
    /// there is such a region. Returns whether it was expected.
    pub fn take_answer(&mut self, bytes: &[u8], descriptors: Vec<OwnedFd>) -> bool {
        let Ok(bytes) = bytes.try_into() else { return false };
        let key = RegionKey::from_bytes(bytes);
        if self.asked != Some(key) {
            return false;
        }
        self.asked = None;
        let memory = match descriptors.into_iter().next() {
            Some(fd) => attach_shared(fd, &key).map(Arc::new).map_err(|e| e.to_string()),
            None => Err("no descriptor of it came: its owner has not allocated it, or this process may have no more open files (RLIMIT_NOFILE, ulimit -n)".into()),
        };
        let (table, Mapped(mapped)) = (&self.table, &mut self.mapped);
        // One that is used up may still be in use here.
        mapped.retain(|(old, _)| !matches!(table.look_up(old), Err(RegionError::NotRegistered)));
        if mapped.len() >= Self::MAX_MAPPED {
            mapped.pop_front();
        }
        mapped.push_back((key, memory));
        true
    }

    /// A shared region that is mapped here.
    pub fn mapped(&mut self, key: &RegionKey) -> Option<Arc<SharedMemory>> {
        self.mapped.find(key)?.ok()
    }
}

impl Mapped {
    /// The mapping of a region, if it is there.
    pub(super) fn find(&mut self, key: &RegionKey) -> Option<Result<Arc<SharedMemory>, RegionError>> {
        let at = self.0.iter().position(|(mapped, _)| mapped == key)?;
        match self.0.remove(at)? {
            // To be asked for again by the next operation.
            (_, Err(reason)) => Some(Err(RegionError::Unreachable(reason))),
            (key, Ok(memory)) => {
                self.0.push_back((key, Ok(Arc::clone(&memory))));
                Some(Ok(memory))
            }
        }
    }
}
