//! Those whose regions can be reached, by their tables.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Hello;
use lmt_core::process::PeerProcess;
use lmt_core::shared_memory::SharedMemory;

use super::slot::Slot;
use super::sys::{self, HEAD_BYTES, REGIONS, TABLE_BYTES};
use crate::error::KnemError;

/// What an introduction begins with: the interface's name and version.
const MAGIC: [u8; 8] = *b"knem-io2";
const OWNER_BYTES: usize = 16;

/// Somebody's introduction.
pub(super) fn introduction(owner: EndpointId) -> Vec<u8> {
    [&MAGIC[..], &owner.to_bytes()].concat()
}

/// Another's table.
#[derive(Debug)]
pub(super) struct PeerTable {
    pub owner: EndpointId,
    pub process: Arc<PeerProcess>,
    table: SharedMemory,
    /// The bytes of the table, from its beginning, that have memory for sure.
    committed_bytes: Cell<usize>,
}

const TABLE: &str = "a peer's table of KNEM regions";
const KEY: &str = "the number of peers";

impl PeerTable {
    /// Reads an introduction, which is untrusted.
    pub fn new(process: Arc<PeerProcess>, introduction: Hello) -> Result<Self, KnemError> {
        let refused = |why: &str| KnemError::Introduction(why.to_owned());
        let owner: [u8; OWNER_BYTES] = introduction
            .bytes
            .strip_prefix(&MAGIC)
            .and_then(|owner| owner.try_into().ok())
            .ok_or_else(|| refused("its bytes are not what this version writes"))?;
        let mut descriptors = introduction.descriptors.into_iter();
        let (Some(table), None) = (descriptors.next(), descriptors.next()) else {
            return Err(refused("it needs one descriptor; the process may be short of them"));
        };
        let table = SharedMemory::attach(table, TABLE_BYTES, TABLE_BYTES)?;
        // Were the first page not there, to read it could be SIGBUS.
        table.commit_range(TABLE, KEY, 0, HEAD_BYTES)?;
        let owner = EndpointId::from_bytes(owner);
        Ok(Self { owner, process, table, committed_bytes: Cell::new(HEAD_BYTES) })
    }

    /// Whether its process is this one. A pid names one process as long as that
    /// lives; of two that this pid namespace does not show nothing is known.
    pub fn is_process(&self, process: &Arc<PeerProcess>) -> bool {
        Arc::ptr_eq(&self.process, process)
            || self.process.pid().is_some_and(|pid| process.pid() == Some(pid))
    }

    /// A line of the table.
    pub fn line(&self, index: u32) -> Option<&Slot> {
        // Acquire pairs with the owner's Release: the line's memory is there.
        let lines = sys::lines(&self.table)?.load(Ordering::Acquire);
        if u64::from(index) >= lines.min(REGIONS.into()) {
            return None;
        }
        // Who says so may lie: once for each line it is seen to here.
        let end = sys::line_offset(index + 1);
        let there = self.committed_bytes.get();
        if end > there {
            self.table.commit_range(TABLE, KEY, there, end - there).ok()?;
            self.committed_bytes.set(end);
        }
        sys::slot(&self.table, index)
    }
}
