//! One endpoint: inbox, connections, matching and transfers, driven by
//! whoever calls [`Engine::progress`].
//!
//! This is the layer below the safe interface of the crate `lmt`: buffers are
//! lent by [`Buffer`](crate::buffer::Buffer), whose constructor is the unsafe
//! step, and requests are plain numbers.
//!
//! It names no mechanism, and must not know by which steps one moves a message.
//!
//! - `state` is what an endpoint keeps; `peer`, `link`, `matchers`, `unexpected`,
//!   `one_sided` and others are parts of it, `cells` the form of a message in cells.
//! - `sending`, `outgoing` and `receiving`, `arriving`, `announced`: messages out and in; `to_self`:
//!   those that stay here; `packets`: what the rendezvous protocol has to send.
//! - `progress`, `settle`, `waiting`: what moves them on.
//! - `handshake`, `ending`, `peers`, `regions`, `explain`, `counters`: what else it does.

mod announced;
mod arriving;
mod blocking_receive;
mod cells;
mod counters;
mod ending;
mod explain;
mod greeting;
mod handshake;
mod layer_support;
mod link;
mod matchers;
mod multi_receive;
mod one_sided;
mod outgoing;
mod packets;
mod peer;
mod peer_regions;
mod peers;
mod progress;
mod receiving;
mod regions;
mod sending;
mod settle;
mod state;
mod to_self;
mod unexpected;
mod unexpected_store;
mod waiting;

use std::os::fd::AsFd;
use std::time::Duration;

use crate::base::clock::CoarseInstant;
use crate::base::cpu_set::CpuSet;
use crate::base::doorbell::Doorbell;
use crate::base::errno_advice::advice;
use crate::base::fork_guard::Origin;
use crate::base::yielding;
use crate::connect::Connector;
use crate::mechanism::Mechanisms;
use crate::queue::{Geometry, InboxReceiver};
use crate::requests::creation::{check_config, install_copier};
use crate::selection::{ByOrder, Policy, Selection};
use crate::transfer::Transfers;
use crate::vocabulary::config::Config;
use crate::vocabulary::identity::{Address, EndpointId, PeerKey};
use peer::Connection;
use receiving::Discards;
use state::Traffic;

pub use crate::base::yielding::{YieldOutcome, yield_core};
pub use crate::requests::creation::CreateError;
pub use crate::requests::ids::{PeerId, RequestId};
pub use crate::requests::label::{Label, Source, Space, TagMatch, Wanted};
pub use crate::requests::multi_receive::Placement;
pub use crate::requests::options::{SendMode, SendOptions};
pub use crate::requests::outcome::{
    Completion, OperationError, Outcome, ReportToken, Reported, Started, Status,
};
pub use blocking_receive::PolledReceive;
pub use peer::EagerCounters;
pub use receiving::Message;

/// The endpoint itself. It may be moved between threads, and is used by one at
/// a time.
pub struct Engine {
    origin: Origin,
    address: Address,
    connector: Connector,
    inbox: InboxReceiver,
    traffic: Traffic,
    naps: waiting::SleepCount,
    /// Whether others want the core.
    sharing: yielding::Sharing,
    /// Messages that were taken out of matching and dropped.
    discards: Discards,
    /// Receives of such messages, which nobody waits for.
    detached: Vec<RequestId>,
    /// Calls until the sockets are looked at again.
    calls_until_sockets: u32,
    /// When they were last looked at.
    sockets_polled_at: CoarseInstant,
    /// To be called when the endpoint is closed.
    at_end: Option<counters::AtEnd>,
    /// [`Engine::let_go`] was called: nothing is left to be closed.
    is_let_go: bool,
}

impl Engine {
    /// Creates an endpoint with this identity and these mechanisms.
    ///
    /// # Errors
    /// [`CreateError`]: a configuration that cannot work, or a system that
    /// refuses memory or the socket.
    pub fn new(id: EndpointId, config: Config, mechanisms: Mechanisms) -> Result<Self, CreateError> {
        Self::with_policy(id, config, mechanisms, Box::new(ByOrder::default()))
    }

    /// As [`Engine::new`], with a policy that decides which way messages take.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_policy(
        id: EndpointId,
        config: Config,
        mut mechanisms: Mechanisms,
        policy: Box<dyn Policy>,
    ) -> Result<Self, CreateError> {
        check_config(&config, &mechanisms)?;
        install_copier(&config);
        if let Some(names) = &config.mechanisms {
            mechanisms.restrict(names);
        }
        let geometry = Geometry::new(config.inbox_cells, config.cell_bytes, config.max_peers)?;
        let (mut inbox, inbox_fd) = InboxReceiver::create(geometry)?;
        inbox.allow_fast_boxes(config.fast_boxes as usize);
        let system = |what| move |source| CreateError::System { what, source, advice: advice(what, source) };
        let doorbell = Doorbell::create().map_err(system("eventfd2"))?;
        mechanisms.give_doorbell(&doorbell);
        let mut connector = Connector::new(id, &config)?;
        connector.add_readable(doorbell.as_fd(), Self::DOORBELL).map_err(system("epoll_ctl"))?;
        let address = connector.address().clone();
        let transfers = Transfers::new(mechanisms);
        let selection = Selection::new(policy, CpuSet::of_this_thread());
        let traffic = Traffic::new(id, config, transfers, selection, inbox_fd, doorbell)?;
        let origin = Origin::here();
        Ok(Self {
            origin,
            address,
            connector,
            inbox,
            traffic,
            naps: waiting::SleepCount::default(),
            calls_until_sockets: 0,
            sharing: yielding::Sharing::new(),
            discards: Discards::default(),
            detached: Vec::new(),
            sockets_polled_at: CoarseInstant::now(),
            at_end: None,
            is_let_go: false,
        })
    }

    /// The doorbell's name in the connector's epoll.
    const DOORBELL: u64 = 1;
    /// After so many calls of `progress` the sockets are looked at: some tens
    /// of microseconds of polling, so that a death is noticed soon and a poll
    /// costs no system call.
    const SOCKET_EVERY: u32 = 1024;
    /// The same while a handshake has begun ...
    const SOCKET_EVERY_CONNECTING: u32 = 8;
    /// ... that was begun less than so long ago: the peer may compute for an hour.
    const CONNECTS_SOON: Duration = Duration::from_secs(2);
    /// After so many calls the clock is looked at, for those who call seldom or
    /// whose calls move much each ...
    const CLOCK_EVERY: u32 = 32;
    /// The same for a caller that calls whenever it likes, perhaps seldom.
    const CLOCK_EVERY_CALL: u32 = 4;
    /// ... and after so long the sockets, however few calls there were.
    const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(5);
    /// So many polls in a row may be idle, and not look at the clock.
    const IDLE_POLLS: u32 = 15;
    /// The most cells taken out of the inbox in one call.
    const BATCH: u32 = 32;

    #[inline]
    fn check_fork(&self) -> Result<(), OperationError> {
        if self.origin.is_this_process() { Ok(()) } else { Err(OperationError::Forked) }
    }

    /// Where this endpoint is reached.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Who this endpoint is.
    pub fn id(&self) -> EndpointId {
        self.traffic.id
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.traffic.config
    }

    /// Names a peer. Does no I/O; inserting an address twice gives the same
    /// peer. Messages that this peer sent before are delivered from now on.
    /// A peer that had died is tried again: another process may have come in
    /// its place.
    ///
    /// # Errors
    /// [`OperationError::Forked`], or [`OperationError::TooManyPeers`] when as many
    /// are known as the configuration allows.
    pub fn insert_peer(&mut self, address: &Address) -> Result<PeerId, OperationError> {
        self.check_fork()?;
        let max_peers = self.traffic.config.max_peers;
        let key = self.traffic.key_of(address.id(), &mut self.inbox);
        let key = key.ok_or(OperationError::TooManyPeers { max_peers })?;
        let peer = &mut self.traffic.peers[key as usize];
        peer.address = Some(address.clone());
        if matches!(peer.connection, Connection::Gone(_)) {
            peer.connection = Connection::None;
        }
        if !peer.bound {
            peer.bound = true;
            self.traffic.deliver_parked(key);
            self.traffic.settle();
        }
        Ok(self.traffic.name(key))
    }

    /// From now on messages of peers that connect without having been named match
    /// receives from anybody; else they wait until [`Engine::insert_peer`] names
    /// their sender. For layers in which a message itself tells where an answer is
    /// to go (MPI's dynamic processes). A peer that is heard
    /// and never named keeps its number until [`Engine::remove_peer`].
    pub fn accept_unnamed_peers(&mut self) {
        self.traffic.accepts_unnamed_peers = true;
    }

    /// Forgets a peer, dead or alive. A connection with it ends with a goodbye,
    /// and operations that name the peer end with [`crate::vocabulary::error::PeerError::Removed`];
    /// but while a living peer may be reading or writing memory of this process,
    /// it is not forgotten, for that memory is not free before. Its messages that nobody has received are dropped. `peer` names nobody
    /// any more. Inserting its address again names it anew.
    ///
    /// A peer counts towards `max_peers` until it is removed, also when it is
    /// dead: who meets ever new peers removes those that have gone. The number
    /// of one that may still write into this endpoint's memory is given to
    /// another only when its process has ended.
    ///
    /// # Errors
    /// [`OperationError::UnknownPeer`] when it was removed before,
    /// [`OperationError::PeerBusy`] when transfers with it are in flight, or
    /// [`OperationError::Forked`].
    pub fn remove_peer(&mut self, peer: PeerId) -> Result<(), OperationError> {
        let key = self.removable(peer)?;
        self.forget_peer(key);
        Ok(())
    }

    /// Forgets a living peer that does not answer, as [`Engine::remove_peer`] does, though
    /// `own` operations of the caller's with it are in flight: they end as if it were dead.
    /// While others than those name it, it is not forgotten. One that was only
    /// stopped may go on to write into a buffer that was lent for a receive which it has
    /// matched; so this is for layers whose callers are told so. A message of which both
    /// ends copy parts, and of which the peer has begun one, is waited for still.
    ///
    /// # Errors
    /// [`OperationError::UnknownPeer`] when it was removed before,
    /// [`OperationError::PeerBusy`] when other operations name it, or
    /// [`OperationError::Forked`].
    pub fn abandon_peer(&mut self, peer: PeerId, own: &[RequestId]) -> Result<(), OperationError> {
        self.check_fork()?;
        let key = self.traffic.key_named(peer)?;
        let named = self.traffic.requests.naming(key);
        let operations = named.iter().filter(|request| !own.contains(request)).count();
        if operations > 0 {
            return Err(OperationError::PeerBusy { id: self.traffic.peers[key as usize].id, operations });
        }
        self.forget_peer(key);
        Ok(())
    }

    fn forget_peer(&mut self, key: PeerKey) {
        self.connector.goodbye(self.traffic.peers[key as usize].id);
        self.traffic.drain(&mut self.inbox);
        self.inbox.close_fast_box(key as u16);
        self.traffic.remove(key);
    }

    /// Whether [`Engine::remove_peer`] would forget a peer now.
    ///
    /// # Errors
    /// Those of [`Engine::remove_peer`].
    pub fn may_remove_peer(&self, peer: PeerId) -> Result<(), OperationError> {
        self.removable(peer).map(|_| ())
    }

    fn removable(&self, peer: PeerId) -> Result<PeerKey, OperationError> {
        self.check_fork()?;
        let key = self.traffic.key_named(peer)?;
        let id = self.traffic.peers[key as usize].id;
        let operations = self.traffic.requests.lent(Some(key));
        let alive = self.traffic.process_of(key).is_some_and(|process| process.is_alive());
        if operations > 0 && alive && id != self.traffic.id {
            return Err(OperationError::PeerBusy { id, operations });
        }
        Ok(key)
    }

    /// The name of a peer that was inserted, or has connected without having been.
    pub fn peer_with_id(&self, id: EndpointId) -> Option<PeerId> {
        self.traffic.by_id.get(&id).map(|&key| self.traffic.name(key))
    }

    /// The identity of a peer.
    pub fn peer_id(&self, peer: PeerId) -> Option<EndpointId> {
        let key = self.traffic.key_named(peer).ok()?;
        self.traffic.peers.get(key as usize).map(|p| p.id)
    }

    /// Takes an operation back that nothing has matched yet. Its result tells
    /// whether that succeeded: [`OperationError::Cancelled`], or what it did
    /// instead; wait for it.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn cancel(&mut self, request: RequestId) -> Result<(), OperationError> {
        self.check_fork()?;
        self.traffic.cancel(request);
        Ok(())
    }

    /// The result of an operation if it is finished; makes progress once if not. The result is
    /// taken: asking again answers [`OperationError::UnknownRequest`].
    pub fn test(&mut self, request: RequestId) -> Option<Result<Status, OperationError>> {
        if let Some(result) = self.traffic.requests.take_result(request) {
            return Some(result);
        }
        if let Err(error) = self.progress_all() {
            return Some(Err(error));
        }
        self.traffic.requests.take_result(request)
    }

    /// Has the end of an operation told by [`Engine::next_completion`], by the
    /// name `token`; its number means nothing any more then. Of one that is finished already
    /// the result is returned and nothing is told.
    ///
    /// ```
    /// use lmt_core::{buffer::{Access, Buffer}, config::Config, mechanism::Mechanisms};
    /// use lmt_core::endpoint::{Engine, SendMode, Source, TagMatch};
    /// # let id = lmt_core::identity::EndpointId::from_bytes(lmt_core::random::bytes()?);
    /// let mut engine = Engine::new(id, Config::default(), Mechanisms::new())?;
    /// let receive = engine.receive(Source::Any, TagMatch::exactly(7), Buffer::empty(Access::Write))?;
    /// assert_eq!(engine.report(receive, [42, 0, 0]), None);
    /// let myself = engine.insert_peer(&engine.address().clone())?;
    /// engine.send(myself, 7, Buffer::empty(Access::Read), SendMode::Standard)?;
    /// let completion = engine.next_completion().expect("the receive has ended");
    /// assert_eq!((completion.token[0], completion.result?.tag), (42, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn report(&mut self, request: RequestId, token: ReportToken) -> Option<Reported> {
        self.traffic.requests.report(request, token)
    }

    /// The first operation in flight whose token `wanted` accepts; looks at each.
    pub fn reported_by(&self, wanted: impl Fn(&ReportToken) -> bool) -> Option<RequestId> {
        self.traffic.requests.reported_by(wanted)
    }

    /// The next operation that has ended of those that [`Engine::report`] was
    /// called for, in the order in which they ended. Makes no progress.
    #[inline(always)] // The path of a short message.
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.traffic.requests.next_completion()
    }

    /// Whether [`Engine::next_placement`] or [`Engine::next_completion`] has something to tell.
    #[inline]
    pub fn has_reports(&self) -> bool {
        self.traffic.requests.has_completions()
    }

    /// Whether an operation is finished, without making progress and without
    /// taking its result.
    pub fn is_done(&self, request: RequestId) -> bool {
        self.traffic.requests.is_done(request)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.origin.is_this_process() && !self.is_let_go {
            // Closing fails only in a forked child.
            let _closed = self.close();
        }
    }
}
