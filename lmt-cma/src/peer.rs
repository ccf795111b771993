//! A peer, and a transfer with it.

use std::sync::Arc;

use lmt_core::cursor::Cursor;
use lmt_core::mechanism::Plan;
use lmt_core::process::PeerProcess;

use crate::remote::RemoteList;
use crate::segments::KeptList;

/// A peer whose memory the kernel lets this process reach, or which may reach
/// this process's.
#[derive(Debug)]
pub struct CmaPeer {
    process: Arc<PeerProcess>,
    /// Whether its nonce was read: its pid names it here, and no stranger.
    pub(crate) reachable: bool,
}

impl CmaPeer {
    pub(crate) fn new(process: Arc<PeerProcess>, reachable: bool) -> Self {
        Self { process, reachable }
    }

    /// The peer's process, for [`crate::vm`]'s copies.
    pub fn process(&self) -> &PeerProcess {
        &self.process
    }
}

/// A transfer in flight.
#[derive(Debug)]
pub struct CmaTransfer {
    pub(crate) plan: Plan,
    /// A long list of our own, which the peer fetches by its address.
    pub(crate) _kept: Option<KeptList>,
    pub(crate) remote: RemoteList,
    pub(crate) local_at: Cursor,
    pub(crate) remote_at: Cursor,
    pub(crate) left_bytes: u64,
}

impl CmaTransfer {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            _kept: None,
            remote: RemoteList::default(),
            local_at: Cursor::default(),
            remote_at: Cursor::default(),
            left_bytes: 0,
        }
    }
}
