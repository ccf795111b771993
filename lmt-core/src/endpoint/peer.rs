//! One peer: its connection, what waits for it, and how much it may still take.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cells::OVERHEAD_BYTES;
use super::peer_regions::PeerRegions;
use super::unexpected::Unexpected;
use super::unexpected_store::PooledBytes;
use crate::base::cpu_set::CpuSet;
use crate::base::process::PeerProcess;
use crate::connect::Waker;
use crate::matching::UnexpectedHandle;
use crate::mechanism::Tally;
use crate::queue::{Credit, InboxSender};
use crate::rendezvous::{Packet, SendId};
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::requests::outcome::OperationError;
use crate::selection::Hints;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{Address, EndpointId};

/// The error of a peer whose connection has ended.
pub(crate) fn gone(peer: &Peer) -> OperationError {
    match &peer.connection {
        Connection::Gone(error) => error.clone().into(),
        _ => crate::vocabulary::error::PeerError::Dead { id: peer.id }.into(),
    }
}

/// A message in the order in which the application sent it.
#[derive(Debug)]
// Boxing the packet would allocate for every announced message.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Outgoing {
    /// Its bytes travel in cells; so many are sent.
    Eager { request: RequestId, sent_bytes: u64, hints: Hints },
    /// It is announced.
    Rts { packet: Packet, label: Label, send_id: SendId },
}

/// Where a peer stands.
#[derive(Debug)]
pub(crate) enum Connection {
    /// Nothing was tried yet.
    None,
    /// The handshake has begun.
    Pending,
    /// The peer may send already: it has this process's report. What it can do
    /// itself is not known here yet, so nothing is sent to it.
    AwaitingReport(Box<Link>),
    /// Messages flow.
    Up(Box<Link>),
    /// It ended.
    Gone(PeerError),
}

/// A peer's inbox and all that sending into it needs.
#[derive(Debug)]
pub(crate) struct Link {
    pub inbox: InboxSender,
    /// Wakes the peer.
    pub waker: Waker,
    /// The peer's declared memory.
    pub regions: PeerRegions,
    /// Who writes through it.
    pub process: Arc<PeerProcess>,
    pub cpus: CpuSet,
    /// What the peer will have drained and released of this process's messages
    /// when it has dealt with all of them.
    pub sent: Credit,
    /// What of it the peer has said it drained and released.
    pub returned: Credit,
    /// The most cells that may wait in its inbox.
    pub max_cells: u64,
    /// The most bytes that may wait in its unexpected queue.
    pub max_bytes: u64,
    /// What this process drained of the peer's, and released.
    pub drained: Credit,
    /// What of it the peer was told.
    pub credits_returned: Credit,
    /// So many drained cells are worth telling.
    pub return_at_cells: u64,
    /// So many released bytes are worth telling.
    pub return_at_bytes: u64,
    /// Whether this peer stands in the list of those that are owed.
    pub in_return_credits_to: bool,
}

impl Link {
    /// Whether the peer's inbox may hold one more cell of this process's.
    #[inline]
    pub fn has_cell(&self) -> bool {
        self.sent.drained_cells.wrapping_sub(self.returned.drained_cells) < self.max_cells
    }

    /// Whether the peer keeps `charge_bytes` more if nothing matches them. A
    /// single message may always go when nothing else is outstanding.
    #[inline]
    pub fn has_bytes(&self, charge_bytes: u64) -> bool {
        // What the peer kept of its own accord it may give back before it is counted here.
        let bytes = self.sent.released_bytes.wrapping_sub(self.returned.released_bytes);
        let bytes = (bytes as i64).max(0) as u64;
        bytes == 0 || bytes.saturating_add(charge_bytes) <= self.max_bytes
    }

    /// What a message of `total_bytes` in cells of `cell_bytes` is charged at
    /// most.
    #[inline]
    pub fn charge_of(&self, total_bytes: u64, cell_bytes: u64) -> u64 {
        total_bytes + self.inbox.max_pieces(total_bytes, cell_bytes) * OVERHEAD_BYTES
    }

    /// Bytes of one cell, when this process has cells of `own_cell_bytes`; the
    /// peer may have smaller ones. Those of a fast box are all the same.
    #[inline]
    pub fn cell_bytes(&self, own_cell_bytes: u32) -> u64 {
        let most_bytes = self.inbox.most_bytes() as u64;
        if self.inbox.has_fast_box() { most_bytes } else { most_bytes.min(own_cell_bytes.into()) }
    }

    /// Whether enough was drained to be worth telling the peer of: an eighth
    /// of what it may have outstanding, so that it does not stand still.
    #[inline]
    pub fn has_enough_credits_to_return(&self) -> bool {
        let cells = self.drained.drained_cells.wrapping_sub(self.credits_returned.drained_cells);
        let bytes = self.drained.released_bytes.wrapping_sub(self.credits_returned.released_bytes);
        cells >= self.return_at_cells || bytes >= self.return_at_bytes
    }

    /// So much of what it sent is not kept any more.
    #[inline]
    pub fn release(&mut self, charge_bytes: u64) {
        self.drained.released_bytes = self.drained.released_bytes.wrapping_add(charge_bytes);
    }

    /// Tells the peer of what was drained and released, if that is much; else later: whether it is
    /// now to be entered among the peers with credits to return.
    #[inline]
    pub fn return_credits_or_note(&mut self) -> bool {
        if self.has_enough_credits_to_return() {
            self.return_credits();
            return false;
        }
        !std::mem::replace(&mut self.in_return_credits_to, true)
    }

    /// Whether the peer has not been told all.
    pub fn has_credits_to_return(&self) -> bool {
        self.drained != self.credits_returned
    }

    /// Tells the peer what was drained and released: a store into its memory.
    #[inline]
    pub fn return_credits(&mut self) {
        self.inbox.store_credit(self.drained);
        self.credits_returned = self.drained;
    }
}

/// A message of several cells that is arriving.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Without the immediate number until the second piece has come.
    pub label: Label,
    pub total_bytes: u64,
    pub arrived_bytes: u64,
    /// What the sender was charged for what has arrived.
    pub charge_bytes: u64,
    pub target: Target,
}

/// Where an arriving message of several cells goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Into the buffer of a receive.
    Request(RequestId),
    /// It is unexpected; a receive may be found before it is complete. Its
    /// place among the unexpected ones, unless it is parked.
    Heap { data: PooledBytes, request: Option<RequestId>, place: Option<UnexpectedHandle> },
}

/// One peer of an endpoint.
#[derive(Debug)]
pub(crate) struct Peer {
    pub id: EndpointId,
    pub address: Option<Address>,
    /// Whether the embedder has inserted its address. Messages that arrive
    /// earlier are parked.
    pub bound: bool,
    pub connection: Connection,
    /// How often the number was given to another peer before.
    pub generation: u32,
    /// How many connections with it have ended: what is left of an earlier one
    /// must not be accounted to the present one.
    pub ended_connections: u32,
    /// The process that may still write under this peer's number, though the
    /// connection has ended.
    pub may_write: Option<Arc<PeerProcess>>,
    /// What must stay in the application's order.
    pub ordered: VecDeque<Outgoing>,
    /// Packets that go before, since they need no room in the peer's queues.
    pub control: VecDeque<Packet>,
    pub parked: VecDeque<(Label, Unexpected)>,
    pub assembly: Option<Assembly>,
    /// Whether this peer stands in the list of those that are written to.
    pub in_busy: bool,
    /// The longest message that goes to it in cells.
    pub eager_max_bytes: u64,
    /// Whether a mechanism works for what is announced though it is short.
    pub may_announce: bool,
    /// The group of processes for which that holds
    /// ([`crate::selection::Selection::group_version`]).
    pub group_version: u32,
    /// What has gone to it and come from it in cells.
    pub eager: EagerCounters,
}

/// What has gone in inbox cells, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EagerCounters {
    /// What this process sent.
    pub sent: Tally,
    /// What it received.
    pub received: Tally,
}

impl Peer {
    pub fn new(id: EndpointId, eager_max_bytes: u64) -> Self {
        Self {
            id,
            address: None,
            bound: false,
            connection: Connection::None,
            generation: 0,
            ended_connections: 0,
            may_write: None,
            ordered: VecDeque::new(),
            control: VecDeque::new(),
            parked: VecDeque::new(),
            assembly: None,
            in_busy: false,
            eager_max_bytes,
            may_announce: false,
            group_version: 0,
            eager: EagerCounters::default(),
        }
    }

    /// The way back for what the peer sends.
    #[inline]
    pub fn link(&mut self) -> Option<&mut Link> {
        match &mut self.connection {
            Connection::AwaitingReport(link) | Connection::Up(link) => Some(link),
            _ => None,
        }
    }

    /// Whether something waits to be written to this peer.
    pub fn has_output(&self) -> bool {
        !self.ordered.is_empty() || !self.control.is_empty()
    }
}
