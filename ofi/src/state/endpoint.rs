//! An endpoint: an engine, what is bound to it, and the operations in flight.

use std::collections::HashMap;
use std::time::Duration;

use lmt::buffer::Buffer;
use lmt::{
    EndpointId, Engine, Label, Message, PeerId, ReportToken, RequestId, SendMode, Source, Wanted,
    YieldOutcome,
};

use super::SharedState;
use super::completion::CompletionTarget;
use super::counter::Counted;
use super::multi_buffer::{MultiBuffer, MultiEnd};
use super::multi_order::MultiOrder;
use super::ops::{Kind, Op, Ops, Plain};
use super::owner::Owner;
use super::peers::Peers;
use super::service::Service;
use super::unanswered::Unanswered;
use super::vector::AddressVector;
use crate::abi::{ADDR_UNSPEC, Errno, FiAddr};
use crate::lend::Owned;
use crate::{log, refuse};

/// The longest message that may be injected, in bytes.
pub const INJECT_MAX_BYTES: usize = 4096;

/// A completion queue of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The queue's number.
    pub queue: usize,
    /// Whether only operations that ask for it are told.
    pub selective: bool,
}

/// What was asked for when the endpoint was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Whether it sends, or begins operations on peers' memory.
    pub sends: bool,
    /// Whether it receives messages.
    pub receives: bool,
    /// Whether receives heed the source that they are given.
    pub directed: bool,
    /// The flags of sends that have none of their own.
    pub send_flags: u64,
    /// The same of receives.
    pub receive_flags: u64,
    /// A multi-receive buffer is given back when less than this is left of it.
    pub multi_min_bytes: usize,
}

/// One endpoint.
pub struct Endpoint {
    // First, so that it has ended before what its operations use is dropped.
    pub(super) engine: Engine,
    pub(super) ops: Ops,
    /// The multi-receive buffers, by their receives.
    pub(super) multi: HashMap<RequestId, MultiBuffer>,
    /// The ends of messages in them.
    pub(super) multi_ends: MultiOrder<MultiEnd>,
    /// Messages that were found and kept, by the context that names them.
    pub(super) claimed: HashMap<usize, Message>,
    pub(super) peers: Peers,
    pub(super) unanswered: Unanswered,
    /// What peers are asked to do, and ask for.
    pub(super) service: Service,
    /// Who matches its receives, if that is somebody else.
    pub owner: Option<Owner>,
    /// Where the ends of sends are told.
    pub send_queue: Option<Binding>,
    /// Where the ends of receives are told.
    pub receive_queue: Option<Binding>,
    /// What counts its operations.
    pub counted: Counted,
    /// Its address vector.
    pub vector: Option<usize>,
    /// What was asked for.
    pub settings: Settings,
    is_enabled: bool,
    /// Since somebody sleeps until it has something: for how long at most.
    pub(super) asleep: Option<Duration>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("id", &self.engine.id()).finish_non_exhaustive()
    }
}

/// A send.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// To whom.
    pub to: FiAddr,
    /// Its tag, space and number.
    pub label: Label,
    /// What its completion hands back; none if its end is told to nobody.
    pub context: Option<usize>,
    /// What its completion says that it was.
    pub flags: u64,
    /// Whether its good end is told.
    pub reports: bool,
    /// Whether it ends only when the message is received.
    pub synchronous: bool,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    /// From whom, or from anybody.
    pub from: FiAddr,
    /// Which messages.
    pub wanted: Wanted,
    /// What its completion hands back.
    pub context: usize,
    /// What its completion says that it was.
    pub flags: u64,
    /// Whether its good end is told.
    pub reports: bool,
}

impl Sending {
    const fn mode(&self) -> SendMode {
        if self.synchronous { SendMode::Synchronous } else { SendMode::Standard }
    }
}

impl Endpoint {
    /// An endpoint over this engine.
    pub fn new(mut engine: Engine, settings: Settings) -> Self {
        engine.accept_unnamed_peers();
        Self {
            engine,
            ops: Ops::default(),
            multi: HashMap::new(),
            multi_ends: MultiOrder::default(),
            claimed: HashMap::new(),
            peers: Peers::default(),
            unanswered: Unanswered::default(),
            service: Service::default(),
            owner: None,
            send_queue: None,
            receive_queue: None,
            counted: Counted::default(),
            vector: None,
            settings,
            is_enabled: false,
            asleep: None,
        }
    }

    /// The engine.
    pub const fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Whether operations may be begun.
    pub const fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Lets operations be begun.
    ///
    /// # Errors
    /// It has no address vector, or neither queue nor counter for what it sends or
    /// what it receives, or an owner for its receives and none for their queue.
    pub fn enable(&mut self, shared_state: &mut SharedState) -> Result<(), Errno> {
        use crate::abi::flags::{READ, RECV, SEND, WRITE};
        const SENT: u64 = SEND | READ | WRITE;
        if self.vector.is_none() {
            return Err(Errno::NOAV);
        }
        let tells = |queue: Option<Binding>, kind| queue.is_some() || self.counted.any_of(kind);
        let Settings { sends, receives, .. } = self.settings;
        let told = [(sends, self.send_queue, SENT), (receives, self.receive_queue, RECV)];
        if told.into_iter().any(|(does, queue, kinds)| does && !tells(queue, kinds)) {
            return Err(Errno::NOCQ);
        }
        if self.owner.is_some() {
            // Where receives are matched their ends are told, too.
            let queue = self.receive_queue.and_then(|binding| shared_state.queues.get(binding.queue));
            queue.filter(|queue| queue.is_owned).ok_or(Errno::NOCQ)?;
        }
        if !self.is_enabled {
            self.listen(shared_state)?;
            // Its peers' first messages are not to wait for it.
            self.engine.expect_peers();
        }
        self.is_enabled = true;
        Ok(())
    }

    /// Moves messages, and tells of what has ended.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn progress(&mut self, shared_state: &mut SharedState) {
        if self.asleep.is_none() {
            self.move_and_tell(shared_state);
        } else {
            self.progress_for_sleepers(shared_state);
        }
    }

    #[inline(always)] // As `progress`.
    fn move_and_tell(&mut self, shared_state: &mut SharedState) {
        if let Err(error) = self.engine.progress() {
            not_moved(&error);
        }
        self.drain(shared_state);
        if self.service.needs_polling() {
            self.serve(shared_state);
        }
    }

    /// The same while somebody sleeps until it has something.
    #[cold]
    fn progress_for_sleepers(&mut self, shared_state: &mut SharedState) {
        self.wake_sleepers();
        self.move_and_tell(shared_state);
        self.recheck_sleepers(shared_state);
    }

    /// See [`Engine::idle_polls`]; none while there is something else to do.
    pub fn idle_polls(&self) -> u32 {
        let polls = self.engine.idle_polls();
        let has_work = self.engine.has_reports() || self.service.needs_polling();
        if polls > 0 && self.asleep.is_none() && !has_work { polls } else { 0 }
    }

    /// See [`Engine::is_idle`].
    #[inline(always)] // Empty polls are most of a wait.
    pub fn is_idle(&mut self) -> bool {
        self.engine.is_idle()
    }

    /// See [`Engine::count_idle`].
    pub fn count_idle(&mut self, polls: u32) {
        self.engine.count_idle(polls);
    }

    /// Whether its caller is to let others run; see [`Engine::should_yield`].
    #[inline]
    pub fn should_yield(&self) -> bool {
        self.engine.should_yield()
    }

    /// See [`Engine::yields_each_poll`].
    pub fn yields_each_poll(&self) -> bool {
        self.engine.yields_each_poll()
    }

    /// What others did when its caller let them run.
    pub fn note_yield(&mut self, others: YieldOutcome) {
        self.engine.note_yield(others);
    }

    /// An operation was begun, of which nobody knew who sleeps.
    #[inline]
    pub fn begun(&mut self, shared_state: &mut SharedState) {
        if self.asleep.is_some() {
            self.recheck_sleepers(shared_state);
        }
    }

    /// Its address vector.
    pub(super) fn vector_of<'a>(&self, shared_state: &'a SharedState) -> Option<&'a AddressVector> {
        self.vector.and_then(|vector| shared_state.vectors.get(vector))
    }

    /// The number of a peer from which something came.
    #[inline]
    pub(super) fn number_of(&mut self, shared_state: &SharedState, peer: PeerId) -> FiAddr {
        match self.peers.known_number(peer) {
            Some(number) => number,
            None => {
                let vector = self.vector_of(shared_state);
                self.peers.number_of(&self.engine, vector, peer)
            }
        }
    }

    /// The engine's name for a peer.
    #[inline]
    pub(super) fn peer(&mut self, shared_state: &SharedState, number: FiAddr) -> Result<PeerId, Errno> {
        match self.peers.known(number) {
            Some(peer) => Ok(peer),
            None => {
                let vector = self.vector_of(shared_state);
                self.peers.named(&mut self.engine, vector, number)
            }
        }
    }

    /// From whom a receive takes messages.
    #[inline]
    pub(super) fn source(&mut self, shared_state: &SharedState, from: FiAddr) -> Result<Source, Errno> {
        if from == ADDR_UNSPEC || !self.settings.directed {
            return Ok(Source::Any);
        }
        self.peer(shared_state, from).map(Source::Peer)
    }

    /// Begins a send of what is in `buffer`.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too much is in flight; or it cannot be done at all.
    #[inline]
    pub fn send(
        &mut self,
        shared_state: &mut SharedState,
        sending: &Sending,
        buffer: Buffer,
    ) -> Result<(), Errno> {
        let to = self.peer(shared_state, sending.to)?;
        let &Sending { label, flags, reports, .. } = sending;
        let context = sending.context.unwrap_or_default();
        let started = self.engine.start_send(to, label, buffer, sending.mode()).map_err(|e| refused(&e))?;
        match started {
            None => self.told(shared_state, CompletionTarget::Send, context, flags, reports),
            Some(request) => {
                self.report(shared_state, request, Plain { context, flags, reports, buffer: 0 });
            }
        }
        Ok(())
    }

    pub(super) fn begin_send(
        &mut self,
        to: PeerId,
        label: Label,
        buffer: Buffer,
        mode: SendMode,
    ) -> Result<RequestId, Errno> {
        self.engine.send(to, label, buffer, mode).map_err(|error| refused(&error))
    }

    /// Sends bytes that the caller may change at once, and tells nobody.
    ///
    /// # Errors
    /// [`Errno::MSGSIZE`]: they are more than [`INJECT_MAX_BYTES`]; else as
    /// [`Endpoint::send`].
    #[inline(always)] // The path of a short message.
    pub fn inject(
        &mut self,
        shared_state: &mut SharedState,
        to: FiAddr,
        label: Label,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let sending = Sending { to, label, context: None, flags: 0, reports: false, synchronous: false };
        self.inject_and_tell(shared_state, &sending, bytes)
    }

    /// The same, with an end that is told if the send says so, and fails if it has a
    /// context that can be told.
    ///
    /// # Errors
    /// As [`Endpoint::inject`].
    #[inline(always)] // The path of a short message.
    pub fn inject_and_tell(
        &mut self,
        shared_state: &mut SharedState,
        sending: &Sending,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        check_injected(bytes.len() as u64)?;
        let to = self.peer(shared_state, sending.to)?;
        let &Sending { label, flags, reports, .. } = sending;
        if !sending.synchronous && self.engine.inject(to, label, bytes) {
            let context = sending.context.unwrap_or_default();
            self.told(shared_state, CompletionTarget::Send, context, flags, reports);
            return Ok(());
        }
        self.inject_later(shared_state, *sending, to, bytes)
    }

    /// Keeps the bytes, and sends them when there is room.
    #[cold]
    fn inject_later(
        &mut self,
        shared_state: &mut SharedState,
        sending: Sending,
        to: PeerId,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let Sending { label, flags, reports, .. } = sending;
        let (context, has_context) = (sending.context.unwrap_or_default(), sending.context.is_some());
        if !reports {
            self.reach_first(shared_state, to)?;
        }
        let (owned, buffer) = Owned::for_an_operation(bytes)?;
        let request = self.begin_send(to, label, buffer, sending.mode())?;
        let kind = Kind::Injected { owned, has_context };
        self.enter(shared_state, Op { context, flags, reports, request, kind });
        Ok(())
    }

    /// Begins a receive.
    ///
    /// # Errors
    /// The source is unknown or dead.
    #[inline(always)] // The path of a short message.
    pub fn receive(
        &mut self,
        shared_state: &mut SharedState,
        receiving: Receiving,
        buffer: Buffer,
        address: usize,
    ) -> Result<(), Errno> {
        let source = self.source(shared_state, receiving.from)?;
        let Receiving { wanted, context, flags, reports, .. } = receiving;
        let plain = Plain { context, flags, reports, buffer: address };
        let started = self.engine.start_reported_receive(source, wanted, buffer, plain.token());
        if let Some(result) = started.map_err(|error| not_begun(&error))? {
            self.ended_plain(shared_state, plain, result);
        }
        Ok(())
    }

    pub(super) fn begin_receive(
        &mut self,
        source: Source,
        wanted: Wanted,
        buffer: Buffer,
    ) -> Result<RequestId, Errno> {
        self.engine.receive(source, wanted, buffer).map_err(|error| not_begun(&error))
    }

    /// Takes an operation back if nothing has matched it; its end is told either
    /// way.
    ///
    /// # Errors
    /// [`Errno::NOENT`]: no operation in flight was begun with this context.
    pub fn cancel(&mut self, shared_state: &mut SharedState, context: usize) -> Result<(), Errno> {
        let is_it = |token: &ReportToken| Plain::of_token(*token).is_some_and(|one| one.context == context);
        let request = self.engine.reported_by(is_it).or_else(|| self.ops.with_context(context));
        let request = request.ok_or(Errno::NOENT)?;
        self.engine.cancel(request).map_err(|error| refuse::errno_of(&error))?;
        self.drain(shared_state);
        self.begun(shared_state);
        Ok(())
    }

    /// Whether these peers may be forgotten, as far as they are known.
    ///
    /// # Errors
    /// [`Errno::BUSY`]: transfers with one of them are in flight.
    pub fn may_forget(&self, ids: &[EndpointId]) -> Result<(), Errno> {
        let mut known = ids.iter().filter_map(|id| self.engine.peer_with_id(*id));
        known.try_for_each(|peer| self.engine.may_remove_peer(peer).map_err(not_removed))
    }

    /// The address vector loses a number, and nobody else needs these peers.
    pub fn forget_peer(&mut self, shared_state: &mut SharedState, number: FiAddr, ids: &[EndpointId]) {
        self.peers.forget(number);
        for id in ids {
            if let Some(peer) = self.engine.peer_with_id(*id) {
                self.service.forget_peer(peer);
                self.unanswered.forget(peer);
                // Said; the peer's number in the engine stays in use.
                let _removed = self.engine.remove_peer(peer).map_err(not_removed);
            }
        }
        self.drain(shared_state);
        // What waited to ask such a peer ends here.
        self.resume_stalled(shared_state);
        self.begun(shared_state);
    }
}

/// Whether so many bytes may be injected.
///
/// # Errors
/// [`Errno::MSGSIZE`]: they are more than [`INJECT_MAX_BYTES`].
#[inline]
pub fn check_injected(bytes: u64) -> Result<(), Errno> {
    if bytes <= INJECT_MAX_BYTES as u64 {
        return Ok(());
    }
    let why = format_args!("{bytes} bytes are injected; at most {INJECT_MAX_BYTES} can be");
    Err(refuse::because(log::Subsystem::EpData, Errno::MSGSIZE, why))
}

#[cold]
fn not_moved(error: &lmt::OperationError) {
    log::warn(log::Subsystem::EpData, format_args!("{error}"));
}

/// What a send is refused with.
#[cold]
fn refused(error: &lmt::OperationError) -> Errno {
    let errno = refuse::errno_of(error);
    if errno != Errno::AGAIN {
        log::warn(log::Subsystem::EpData, format_args!("a send was refused: {error}"));
    }
    errno
}

/// What a receive is refused with.
#[cold]
fn not_begun(error: &lmt::OperationError) -> Errno {
    log::warn(log::Subsystem::EpData, format_args!("a receive was refused: {error}"));
    refuse::errno_of(error)
}

fn not_removed(error: lmt::OperationError) -> Errno {
    let why = format_args!("an address is not removed: {error}");
    refuse::because(log::Subsystem::Av, refuse::errno_of(&error), why)
}
