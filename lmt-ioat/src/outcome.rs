//! What an engine's thread writes for those who wait for a list: how far it is,
//! and, as the last thing, how it ended (the status that the last copy of a
//! list writes; nemesis-lmt, section 3.4). Looking costs two loads.

use crate::engine::{CopyFailure, Progress, State};
use crate::sync::{AtomicU64, Ordering};

/// Written by the one who copies, read by the one who waits.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Bytes copied for good; moved forward by the copying thread alone.
    bytes: AtomicU64,
    /// How the list ended: 0 while it runs, then one of the numbers below,
    /// with an errno in the upper half. Written once.
    end: AtomicU64,
}

const RUNNING: u64 = 0;
const DONE: u64 = 1;
const REFUSED: u64 = 2;
const PEER_DEAD: u64 = 3;
const CANCELLED: u64 = 4;
const ENGINE_GONE: u64 = 5;

impl Outcome {
    pub fn new() -> Self {
        Self { bytes: AtomicU64::new(0), end: AtomicU64::new(RUNNING) }
    }

    /// So many bytes more are where they were to go.
    pub fn add(&self, bytes: u64) {
        // Release pairs with the Acquire of `look`: who sees the number sees
        // the bytes. Nobody else writes, so adding needs no more.
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// The list has ended: nothing that it names is touched any more. Says
    /// whether it had not before.
    pub fn end(&self, failure: Option<CopyFailure>) -> bool {
        let word = match failure {
            None => DONE,
            Some(CopyFailure::Refused { errno }) => REFUSED | u64::from(errno.cast_unsigned()) << 32,
            Some(CopyFailure::PeerDead) => PEER_DEAD,
            Some(CopyFailure::Cancelled) => CANCELLED,
            Some(CopyFailure::EngineGone) => ENGINE_GONE,
        };
        // Release pairs with the Acquire of `look`: who sees the end sees all
        // that was copied, and what it does with the memory comes after. On
        // failure nothing is read through the word, so Relaxed is enough.
        self.end.compare_exchange(RUNNING, word, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// How far the list is.
    pub fn look(&self) -> Progress {
        // The end first: the bytes that are read after it are then all of them.
        // Both Acquire pair with the Release above.
        let end = self.end.load(Ordering::Acquire);
        let bytes = self.bytes.load(Ordering::Acquire);
        let state = match end as u32 as u64 {
            RUNNING => State::Running,
            DONE => State::Done,
            REFUSED => State::Failed(CopyFailure::Refused { errno: ((end >> 32) as u32).cast_signed() }),
            PEER_DEAD => State::Failed(CopyFailure::PeerDead),
            CANCELLED => State::Failed(CopyFailure::Cancelled),
            _ => State::Failed(CopyFailure::EngineGone),
        };
        Progress { bytes, state }
    }

    /// Whether the list has ended.
    pub fn has_ended(&self) -> bool {
        // Acquire: as in `look`.
        self.end.load(Ordering::Acquire) != RUNNING
    }
}
