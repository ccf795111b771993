//! All that an endpoint keeps but its connector and its inbox: peers, requests,
//! matching, transfers. What is done with it stands in the files that use this one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::matchers::Matchers;
use super::one_sided::OneSided;
use super::peer::{Connection, EagerCounters, Peer};
use super::unexpected_store::UnexpectedPool;
use crate::base::cpu_set::CpuSet;
use crate::base::doorbell::Doorbell;
use crate::base::process::PeerProcess;
use crate::region::{RegionKey, RegionTable};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::outcome::OperationError;
use crate::requests::table::Requests;
use crate::selection::Selection;
use crate::transfer::Transfers;
use crate::vocabulary::config::Config;
use crate::vocabulary::error::MemoryError;
use crate::vocabulary::identity::{Address, EndpointId, PeerKey};

/// All of an endpoint but its inbox and its sockets.
pub(crate) struct Traffic {
    pub id: EndpointId,
    pub config: Config,
    pub peers: Vec<Peer>,
    pub by_id: HashMap<EndpointId, PeerKey>,
    /// Which receive gets which message, in each space.
    pub matchers: Matchers,
    pub requests: Requests,
    /// Memory for what is unexpected.
    pub store: UnexpectedPool,
    pub transfers: Transfers,
    /// Peers for which something waits to be written.
    pub busy: Vec<PeerKey>,
    /// Peers that were not told yet what was drained of theirs.
    pub return_credits_to: Vec<PeerKey>,
    /// Where the connector is to connect to.
    pub to_connect: Vec<Address>,
    /// Numbers that a new peer may have.
    pub free: Vec<PeerKey>,
    /// Numbers of removed peers that a new peer may not have yet.
    pub retired_numbers: Vec<RetiredNumber>,
    /// Short synchronous sends that wait for their peer's connection.
    pub synchronous: HashSet<RequestId>,
    /// Cells taken and connections ended so far: whether something has happened.
    pub events: u64,
    /// How many transfers have ended, whoever found it.
    pub ended: u64,
    /// The cell taken last was a piece of a message whose next piece is about to
    /// come.
    pub in_pieces: bool,
    /// This endpoint's declared memory.
    pub regions: RegionTable,
    /// Gets and puts in flight; the front one is next.
    pub one_sided: VecDeque<OneSided>,
    /// Regions that peers want to map, one for each of them.
    pub wanted: HashMap<PeerKey, RegionKey>,
    /// Whether peers that the embedder has not named are heard.
    pub accepts_unnamed_peers: bool,
    pub inbox_fd: OwnedFd,
    pub doorbell: Doorbell,
    pub cpus: CpuSet,
    /// How often a wait yields while processes outnumber CPUs.
    pub oversubscribed_yields: u32,
    /// Which way messages take.
    pub selection: Selection,
    /// What has gone to and come from all peers in cells.
    pub eager: EagerCounters,
}

/// The number of a removed peer.
#[derive(Debug)]
pub(crate) struct RetiredNumber {
    pub key: PeerKey,
    pub id: EndpointId,
    /// The process that may still write under the number while it lives.
    pub may_write: Option<Arc<PeerProcess>>,
}

impl Traffic {
    /// That of an endpoint which knows nobody yet.
    pub fn new(
        id: EndpointId,
        config: Config,
        transfers: Transfers,
        selection: Selection,
        inbox_fd: OwnedFd,
        doorbell: Doorbell,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            id,
            peers: Vec::new(),
            by_id: HashMap::new(),
            matchers: Matchers::default(),
            requests: Requests::default(),
            store: UnexpectedPool::new(config.unexpected_max_bytes),
            transfers,
            busy: Vec::new(),
            return_credits_to: Vec::new(),
            to_connect: Vec::new(),
            free: Vec::new(),
            retired_numbers: Vec::new(),
            synchronous: HashSet::new(),
            regions: RegionTable::create(id)?,
            one_sided: VecDeque::new(),
            wanted: HashMap::new(),
            accepts_unnamed_peers: false,
            inbox_fd,
            doorbell,
            cpus: selection.here(),
            oversubscribed_yields: 0,
            selection,
            eager: EagerCounters::default(),
            events: 0,
            ended: 0,
            in_pieces: false,
            config,
        })
    }

    /// Whether nothing is in flight that a call of progress could move.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        self.busy.is_empty()
            && self.transfers.is_quiescent()
            && self.one_sided.is_empty()
            && self.wanted.is_empty()
    }

    /// The name by which the embedder knows a peer.
    #[inline]
    pub fn name(&self, key: PeerKey) -> PeerId {
        PeerId::new(key, self.peers.get(key as usize).map_or(0, |peer| peer.generation))
    }

    /// The number of a peer that the embedder names.
    #[inline]
    pub fn key_named(&self, name: PeerId) -> Result<PeerKey, OperationError> {
        match self.peers.get(name.index() as usize) {
            Some(peer) if peer.bound && peer.generation == name.generation() => Ok(name.index()),
            _ => Err(OperationError::UnknownPeer),
        }
    }

    /// Whether a peer may send while its report is still to be read here.
    #[inline]
    pub fn is_awaiting_report(&self, sender: u16) -> bool {
        let peer = self.peers.get(usize::from(sender));
        peer.is_some_and(|peer| matches!(peer.connection, Connection::AwaitingReport(_)))
    }

    /// Tells every peer what was drained of theirs.
    pub fn return_all_credits(&mut self) {
        while let Some(key) = self.return_credits_to.pop() {
            if let Some(link) = self.peers.get_mut(key as usize).and_then(Peer::link) {
                link.in_return_credits_to = false;
                if link.has_credits_to_return() {
                    link.return_credits();
                }
            }
        }
    }
}
