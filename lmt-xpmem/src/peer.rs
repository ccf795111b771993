//! A peer, and a transfer with it.

use std::sync::Arc;

use lmt_cma::remote::RemoteList;
use lmt_cma::segments::KeptList;
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Fault, Plan};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::driver::{Driver, Permit};
use crate::refusal::demote;

/// A peer whose memory this process may attach, or which may attach this process's.
#[derive(Debug)]
pub struct XpmemPeer<D: Driver> {
    /// Names it in the cache of attachments.
    pub(crate) number: u64,
    pub(crate) process: Arc<PeerProcess>,
    pub(crate) permit: Option<Arc<Permit<D>>>,
}

impl<D: Driver> XpmemPeer<D> {
    /// What an error means for a transfer with it. A process that ends has no memory
    /// some time before it is dead for all.
    pub(crate) fn fault_of(&self, errno: Errno) -> Fault {
        let passes = matches!(errno, Errno::EFAULT | Errno::ENOMEM | Errno::EINTR | Errno::EAGAIN);
        if self.process.has_ended() { Fault::PeerDead } else { demote(errno, !passes) }
    }
}

/// A transfer in flight.
#[derive(Debug)]
pub struct XpmemTransfer {
    pub(crate) plan: Plan,
    /// A long list of our own, which the peer fetches by its address.
    pub(crate) _kept: Option<KeptList>,
    pub(crate) remote: RemoteList,
    pub(crate) remote_at: Cursor,
    pub(crate) local_at: Cursor,
    pub(crate) left_bytes: u64,
}
