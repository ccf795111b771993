//! One endpoint: inbox, connections, matching and transfers, driven by
//! whoever calls [`Engine::progress`].
//!
//! This is the layer below the safe interface of the crate `lmt`: buffers are
//! lent by [`Buffer`], whose constructor is the unsafe step, and requests are
//! plain numbers.

mod awaited;
mod beside;
mod create;
mod doorbell;
mod explaining;
pub(crate) mod greeting;
mod handshake;
mod label;
mod link;
mod many;
mod matchers;
mod outgoing;
mod peer;
mod peers;
pub mod polling;
mod progress;
mod receiving;
mod regions;
pub(crate) mod requests;
mod sending;
mod settling;
mod store;
pub(crate) mod traffic;
mod waiting;

use std::os::fd::AsFd;
use std::time::Duration;

pub use awaited::Awaited;
pub use create::CreateError;
pub(crate) use create::{check_config, install_copier};
pub use label::{Label, Space, Wanted};
pub use many::Placement;
pub use outgoing::{SendMode, SendOptions};
pub use peer::EagerCounters;
use receiving::Discards;
pub use receiving::{Message, Source, TagMatch};
pub use requests::{Completion, OperationError, Outcome, PeerId, Reported, RequestId, Started, Status};

use crate::bell::Bell;
use crate::buffer::{Buffer, lend};
use crate::clock::CoarseInstant;
use crate::config::Config;
use crate::connect::Connector;
use crate::cpu_set::CpuSet;
use crate::fork_guard::Origin;
use crate::identity::{Address, EndpointId};
use crate::inbox::{Geometry, InboxReceiver};
use crate::mechanism::Direction;
use crate::mechanisms::{Counters, Mechanisms, Standing};
use crate::refusal::advice;
use crate::selection::{ByOrder, Explanation, Message as Question, Policy, Selection};
use crate::transfers::Transfers;
use peer::Connection;
use traffic::Traffic;

/// The endpoint itself. It may be moved between threads, and is used by one at
/// a time.
pub struct Engine {
    origin: Origin,
    address: Address,
    connector: Connector,
    inbox: InboxReceiver,
    traffic: Traffic,
    /// Calls of `progress` in a row that found nothing.
    idle: u32,
    naps: waiting::Naps,
    /// Whether others want the core.
    sharing: polling::Sharing,
    /// Messages that were taken out of matching and dropped.
    discards: Discards,
    /// Receives of such messages, which nobody waits for.
    detached: Vec<RequestId>,
    /// Calls until the sockets are looked at again.
    until_sockets: u32,
    /// When they were last looked at.
    looked_at_sockets: CoarseInstant,
    /// To be called when the endpoint is closed.
    at_end: Option<AtEnd>,
    /// [`Engine::let_go`] was called: nothing is left to be closed.
    is_let_go: bool,
}

/// What is called when an endpoint ends, with its [`Engine::totals`].
type AtEnd = Box<dyn FnOnce(EagerCounters, &[(&'static str, Counters)]) + Send>;

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
        inbox.allow_boxes(config.fast_boxes as usize);
        let system = |what| move |source| CreateError::System { what, source, advice: advice(what, source) };
        let doorbell = doorbell::create().map_err(system("eventfd2"))?;
        let doorbell = Bell::new(doorbell);
        mechanisms.give_bell(&doorbell);
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
            idle: 0,
            naps: waiting::Naps::default(),
            until_sockets: 0,
            sharing: polling::Sharing::new(),
            discards: Discards::default(),
            detached: Vec::new(),
            looked_at_sockets: CoarseInstant::now(),
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
    /// The same while a handshake is under way ...
    const SOCKET_EVERY_CONNECTING: u32 = 8;
    /// ... that was begun less than so long ago: the peer may compute for an hour.
    const CONNECTS_SOON: Duration = Duration::from_secs(2);
    /// After so many calls the clock is looked at, for those who call seldom or
    /// whose calls move much each ...
    const CLOCK_EVERY: u32 = 32;
    /// The same for a caller that calls whenever it likes, perhaps seldom.
    const CLOCK_EVERY_CALL: u32 = 4;
    /// ... and after so long the sockets, however few calls there were.
    const SOCKETS_AFTER: Duration = Duration::from_millis(5);
    /// So many calls that found nothing may lie between two messages that come one
    /// after the other.
    const HASTY_CALLS: u32 = 64;
    /// So many looks of a few ns each.
    const HASTY_LOOKS: u32 = 24;
    /// After so many calls that found nothing peers are told what was drained of theirs.
    const PAY_AFTER: u32 = 16;
    /// The most cells taken out of the inbox in one call.
    const BATCH: u32 = 32;

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
            self.traffic.unpark(key);
            self.traffic.settle();
        }
        Ok(self.traffic.name(key))
    }

    /// From now on messages of peers that connect without having been named match
    /// receives from anybody; else they wait until [`Engine::insert_peer`] names
    /// their sender. For layers in which a message itself tells where an answer is
    /// to go (MPI's dynamic processes). A peer that is heard
    /// and never named keeps its number until [`Engine::remove_peer`].
    pub fn hear_strangers(&mut self) {
        self.traffic.hears_strangers = true;
    }

    /// Forgets a peer, dead or alive. A connection with it ends with a goodbye,
    /// and operations that name the peer end with [`crate::error::PeerError::Removed`];
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
    /// [`OperationError::PeerBusy`] when transfers with it are under way, or
    /// [`OperationError::Forked`].
    pub fn remove_peer(&mut self, peer: PeerId) -> Result<(), OperationError> {
        let key = self.removable(peer)?;
        self.forget_peer(key);
        Ok(())
    }

    /// Forgets a living peer that does not answer, as [`Engine::remove_peer`] does, though
    /// `own` operations of the caller's with it are under way: they end as if it were dead.
    /// While others than those name it, it is not forgotten. One that was only
    /// stopped may go on to write into a buffer that was lent for a receive which it has
    /// matched; so this is for layers whose callers are told so. A message of which both
    /// ends copy parts, and of which the peer has begun one, is waited for still.
    ///
    /// # Errors
    /// [`OperationError::UnknownPeer`] when it was removed before,
    /// [`OperationError::PeerBusy`] when other operations name it, or
    /// [`OperationError::Forked`].
    pub fn give_up_peer(&mut self, peer: PeerId, own: &[RequestId]) -> Result<(), OperationError> {
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

    fn forget_peer(&mut self, key: crate::rendezvous::PeerKey) {
        self.connector.goodbye(self.traffic.peers[key as usize].id);
        self.traffic.drain(&mut self.inbox);
        self.inbox.close_box(key as u16);
        self.traffic.remove(key);
    }

    /// Whether [`Engine::remove_peer`] would forget a peer now.
    ///
    /// # Errors
    /// Those of [`Engine::remove_peer`].
    pub fn may_remove_peer(&self, peer: PeerId) -> Result<(), OperationError> {
        self.removable(peer).map(|_| ())
    }

    fn removable(&self, peer: PeerId) -> Result<crate::rendezvous::PeerKey, OperationError> {
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

    /// What is known of each mechanism with a peer; nothing before the first
    /// message has connected it.
    pub fn standings(&self, peer: PeerId) -> Vec<(&'static str, Standing)> {
        let Ok(key) = self.traffic.key_named(peer) else { return Vec::new() };
        let mechanisms = self.traffic.transfers.standings();
        mechanisms.standings(key).map(|(name, s)| (name, s.clone())).collect()
    }

    /// What each mechanism has done with a peer; nothing before the first
    /// message has connected it.
    pub fn counters(&self, peer: PeerId) -> Vec<(&'static str, Counters)> {
        let Ok(key) = self.traffic.key_named(peer) else { return Vec::new() };
        self.traffic.transfers.standings().counters(key).collect()
    }

    /// What has gone to and come from a peer in inbox cells.
    pub fn eager_counters(&self, peer: PeerId) -> EagerCounters {
        let key = self.traffic.key_named(peer).ok();
        let peer = key.and_then(|key| self.traffic.peers.get(key as usize));
        peer.map(|peer| peer.eager).unwrap_or_default()
    }

    /// What this endpoint has sent and received by each way, with all peers:
    /// in inbox cells, and by each mechanism.
    pub fn totals(&self) -> (EagerCounters, Vec<(&'static str, Counters)>) {
        (self.traffic.eager, self.traffic.transfers.standings().totals().collect())
    }

    /// Has `report` called with [`Engine::totals`] once this endpoint has been
    /// closed, by [`Engine::close`] or by being dropped; not in a forked child.
    pub fn at_end(
        &mut self,
        report: impl FnOnce(EagerCounters, &[(&'static str, Counters)]) + Send + 'static,
    ) {
        self.at_end = Some(Box::new(report));
    }

    /// Which way a message to a peer would take now, and why. What others are
    /// reading now counts, unless `message` says that more do.
    ///
    /// # Errors
    /// The peer is unknown.
    pub fn explain(&self, peer: PeerId, message: &Question) -> Result<Explanation, OperationError> {
        let key = self.traffic.key_named(peer)?;
        Ok(self.traffic.explain(key, message))
    }

    /// By which mechanism gets of a peer's declared memory or puts into it would go now,
    /// and why.
    ///
    /// # Errors
    /// The peer is unknown.
    pub fn explain_one_sided(
        &self,
        peer: PeerId,
        direction: Direction,
        bytes: u64,
    ) -> Result<Explanation, OperationError> {
        let key = self.traffic.key_named(peer)?;
        let traffic = &self.traffic;
        let known = traffic.transfers.standings();
        Ok(traffic.selection.explain_one_sided(key, direction, known, &traffic.config, bytes))
    }

    /// The names of the mechanisms of this endpoint.
    pub fn mechanism_names(&self) -> Vec<&'static str> {
        self.traffic.transfers.standings().names()
    }

    /// Begins a send of a message with this tag, or this [`Label`]. It has ended when the
    /// buffer may be used again; see [`SendMode`] and [`SendOptions`]. Of one that is done
    /// already there is no request: `None`.
    ///
    /// # Errors
    /// The peer is unknown or dead, too much waits for it, or this is a forked
    /// child.
    #[inline]
    pub fn start_send(
        &mut self,
        to: PeerId,
        label: impl Into<Label>,
        buffer: Buffer,
        options: impl Into<SendOptions>,
    ) -> Result<Option<RequestId>, OperationError> {
        let mut buffer = buffer;
        self.begin_send(to, &label.into(), &mut buffer, options.into())
    }

    /// Takes the buffer only where it goes on using it: copying it, just after its parts were
    /// stored, stalls (store forwarding).
    #[inline(never)]
    fn begin_send(
        &mut self,
        to: PeerId,
        label: &Label,
        buffer: &mut Buffer,
        options: SendOptions,
    ) -> Result<Option<RequestId>, OperationError> {
        self.check_fork()?;
        let started = self.traffic.send(to, label, buffer, options, &self.inbox)?;
        if !self.traffic.to_connect.is_empty() {
            self.connect_wanted();
        }
        Ok(started)
    }

    #[cold]
    fn connect_wanted(&mut self) {
        for address in self.traffic.to_connect.drain(..) {
            self.connector.connect(&address);
        }
        self.until_sockets = 0;
    }

    /// As [`Engine::start_send`], with a request whether it has ended or not.
    ///
    /// # Errors
    /// As [`Engine::start_send`].
    #[inline]
    pub fn send(
        &mut self,
        to: PeerId,
        label: impl Into<Label>,
        buffer: Buffer,
        options: impl Into<SendOptions>,
    ) -> Result<RequestId, OperationError> {
        let (label, bytes) = (label.into(), buffer.total_bytes());
        let request = self.start_send(to, label, buffer, options)?;
        let done = Status { peer: to, tag: label.tag, bytes, immediate: label.immediate };
        Ok(request.unwrap_or_else(|| self.traffic.requests.of(Started::Done(done))))
    }

    /// Sends bytes at once that may change when this returns: a message that fits a cell, if
    /// there is one, and room at the peer. `None`, and nothing is sent, where that is not so.
    #[inline]
    pub fn inject(&mut self, to: PeerId, label: impl Into<Label>, bytes: &[u8]) -> Option<Status> {
        if !self.origin.is_this_process() {
            return None;
        }
        let label = label.into();
        lend(bytes, |buffer| self.traffic.inject(to, &label, buffer, &self.inbox))
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

    /// The result of an operation if it is finished; makes progress once if
    /// not. The result is taken: asking again answers
    /// [`OperationError::UnknownRequest`].
    pub fn test(&mut self, request: RequestId) -> Option<Result<Status, OperationError>> {
        if let Some(result) = self.traffic.requests.take_result(request) {
            return Some(result);
        }
        if let Err(error) = self.progress_thoroughly() {
            return Some(Err(error));
        }
        self.traffic.requests.take_result(request)
    }

    /// Has the end of an operation told by [`Engine::next_completion`], by the
    /// name `token`; its number means nothing any more then. So whoever has many
    /// operations under way need not ask for each. Of one that is finished already
    /// the result is returned and nothing is told.
    ///
    /// ```
    /// use lmt_core::{buffer::{Access, Buffer}, config::Config, mechanisms::Mechanisms};
    /// use lmt_core::engine::{Engine, SendMode, Source, TagMatch};
    /// # let id = lmt_core::identity::EndpointId::from_bytes(lmt_core::random::bytes()?);
    /// let mut engine = Engine::new(id, Config::default(), Mechanisms::new())?;
    /// let receive = engine.receive(Source::Any, TagMatch::exactly(7), Buffer::empty(Access::Write))?;
    /// assert_eq!(engine.report(receive, 42), None);
    /// let myself = engine.insert_peer(&engine.address().clone())?;
    /// engine.send(myself, 7, Buffer::empty(Access::Read), SendMode::Standard)?;
    /// let completion = engine.next_completion().expect("the receive has ended");
    /// assert_eq!((completion.token, completion.result?.tag), (42, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn report(&mut self, request: RequestId, token: u64) -> Option<Reported> {
        self.traffic.requests.report(request, token)
    }

    /// The next operation that has ended of those that [`Engine::report`] was
    /// called for, in the order in which they ended. Makes no progress.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.traffic.requests.next_completion()
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
