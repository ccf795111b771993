//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::mapping_cache::MappingCache;
use lmt_core::mechanism::{
    Abilities, BothEnds, Cookie, CopiedPart, Description, Fault, Hello, Interval, Lmt, Model, OobMessages,
    PeerFacts, Plan, Probed, Reach, Role, Settings, Step, Unavailable,
};
use lmt_core::shared_buffer::HEAD_BYTES;
use lmt_core::shared_memory::SharedMemory;

use crate::config::Config;
use crate::cookie::{
    Described, Offered, WirePart, covers, demotion_fault, describe, describe_short, garbage, parse,
    parse_short, short_buffer,
};
use crate::news::MappingMessage;
use crate::peer::{Found, MappedPeer, MappedTransfer, PendingMapping, Pieces, RemoteMemory};
use crate::sys::{Mapping, Piece};

/// Version of what the two ends tell each other; both must have the same.
const VERSION: u8 = 6;

/// Names an arena of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    /// Which peer; no number is given twice.
    peer: u64,
    /// The arena's number there.
    arena: u32,
}

/// The mechanism, with the peers' arenas that this endpoint has mapped.
#[derive(Debug, Default)]
pub struct Mapped {
    config: Config,
    cache: MappingCache<Name, Mapping>,
    last_peer: u64,
    pending_mappings: PendingMapping,
}

impl Mapped {
    /// A new instance; it takes nothing before it is used.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new instance with another bound.
    pub fn with_config(config: Config) -> Self {
        Self { config, ..Self::default() }
    }
}

impl Lmt for Mapped {
    type Peer = MappedPeer;
    type Transfer = MappedTransfer;

    fn description(&self) -> Description {
        let models = &[Model::Both, Model::Get, Model::Put];
        Description { reach: Reach::SharedBuffers, ..Description::new("mapped", models) }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello { bytes: vec![VERSION], descriptors: Vec::new() })
    }

    /// What there is to try is tried with each arena, when a message first needs
    /// it: before there are any, there is nothing to map.
    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<MappedPeer>, Unavailable> {
        if hello.bytes != [VERSION] {
            return Err(Unavailable {
                errno: 0,
                sentence: "the peer's shared buffers are of another version of lmt; use the same in both"
                    .to_owned(),
            });
        }
        self.last_peer += 1;
        let peer = MappedPeer::new(self.last_peer, Arc::clone(&facts.process));
        Ok(Probed::new(peer, Abilities { read: true, write: true, cooperate: false }))
    }

    fn prepare(
        &mut self,
        peer: &mut MappedPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(MappedTransfer, Cookie), Fault> {
        let (cookie, offered) = prepare_copy(peer, plan, data)?;
        let transfer = MappedTransfer { _offered: offered, ..MappedTransfer::new(*plan) };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        // A sender in the Both model has found it by then.
        if matches!(transfer.far, RemoteMemory::Found(_)) {
            return Ok(());
        }
        transfer.plan.interval = interval;
        transfer.left_bytes = interval.bytes();
        let described = match (transfer.plan.model, transfer.plan.role) {
            (Model::Both, Role::Sender) => parse_short(remote),
            _ => parse(remote),
        };
        transfer.far = RemoteMemory::AwaitingMapping {
            described: described.ok_or_else(garbage)?,
            _looker: PendingMapping::clone(&self.pending_mappings),
        };
        self.look(peer, transfer)
    }

    fn step(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        self.copy_on(peer, transfer, data, max_bytes)
    }

    fn finish(&mut self, _peer: &mut MappedPeer, transfer: MappedTransfer) {
        drop(transfer);
        if self.cache.is_beyond(self.config.bound()) {
            self.cache.trim(self.config.bound());
        }
    }

    fn forget_peer(&mut self, peer: MappedPeer) {
        self.cache.remove_all(|name| name.peer == peer.number);
    }

    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<MappedPeer, MappedTransfer>> {
        Some(self)
    }

    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<MappedPeer>> {
        Some(self)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.config)
    }
}

/// The receiver reads from the front and the sender writes from the back, where both buffers
/// are mapped.
impl BothEnds<MappedPeer, MappedTransfer> for Mapped {
    /// Without the mapping the other end may still copy all of it.
    fn is_ready(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        ahead: Option<(&Cookie, Interval)>,
    ) -> Result<bool, Fault> {
        match (&transfer.far, ahead) {
            (RemoteMemory::Unknown, Some((remote, interval))) => {
                self.start(peer, transfer, remote, interval)?;
            }
            _ => self.look(peer, transfer)?,
        }
        Ok(matches!(transfer.far, RemoteMemory::Found(_)))
    }

    fn copy_part(
        &mut self,
        _peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        part: Interval,
    ) -> CopiedPart {
        let RemoteMemory::Found(Found { mapping, pieces, start, .. }) = &transfer.far else {
            return CopiedPart { bytes: 0, fault: None };
        };
        let pieces = pieces.as_slice();
        let mut local_at = Cursor::at(data.segments(), part.start);
        let mut remote_at = Cursor::at(pieces, part.start - start);
        let role = transfer.plan.role;
        let bytes = mapping.copy(role, data, &mut local_at, pieces, &mut remote_at, part.bytes());
        CopiedPart { bytes, fault: (bytes < part.bytes()).then(short_buffer) }
    }
}

/// What describes this end's memory, and what is kept for it.
fn prepare_copy(
    peer: &mut MappedPeer,
    plan: &Plan,
    data: &Buffer,
) -> Result<(Cookie, Option<Offered>), Fault> {
    let (cookie, offered) = match (plan.model, plan.role) {
        // Who copies alone says nothing of its own memory.
        (Model::Get, Role::Receiver) | (Model::Put, Role::Sender) => (Cookie::empty(), None),
        (Model::Both, Role::Receiver) => describe_short(data, plan.interval, &peer.process),
        _ => {
            let (cookie, offered) = describe(data, plan.interval, &peer.process)?;
            (cookie, Some(offered))
        }
    };
    if let Some(offered) = &offered {
        let is_known = peer.introduce(offered.offer.arena().id());
        if let Some(list) = offered.list_arena() {
            peer.introduce(list.id());
        }
        // In the Both model the receiver goes on alone.
        if !is_known && (plan.model, plan.role) != (Model::Both, Role::Receiver) {
            return Err(demotion_fault("the peer could not map the buffer before; it is tried again later"));
        }
    }
    Ok((cookie, offered))
}

impl OobMessages<MappedPeer> for Mapped {
    fn oob_message(&mut self, peer: &mut MappedPeer) -> Option<Hello> {
        peer.oob_message()
    }

    fn take_oob_message(&mut self, peer: &mut MappedPeer, oob_message: Hello) {
        match MappingMessage::parse(oob_message) {
            Some(MappingMessage::Arena(id, descriptor)) => self.take_arena(peer, id, descriptor),
            Some(MappingMessage::Want(id)) => peer.answer(id),
            Some(MappingMessage::Cannot(id)) => peer.note_unmappable(id),
            Some(MappingMessage::Gone(id)) => {
                self.cache.remove(&Name { peer: peer.number, arena: id });
                if peer.wanted.contains(&id) {
                    peer.fail(id, "the peer has given the buffer up".to_owned());
                }
            }
            None => {}
        }
    }
}

impl Mapped {
    /// Copies on, by `max_bytes` at most: see [`Lmt::step`].
    fn copy_on(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        if matches!(transfer.far, RemoteMemory::AwaitingMapping { .. }) {
            self.look(peer, transfer)?;
        }
        let MappedTransfer { plan: Plan { role, interval, .. }, left_bytes, far, .. } = transfer;
        let RemoteMemory::Found(found) = far else {
            return Ok(Step { bytes: 0, done: false });
        };
        if *left_bytes == interval.bytes() {
            found.local_at = Cursor::at(data.segments(), interval.start);
        }
        let max_bytes = max_bytes.min(*left_bytes);
        let Found { mapping, pieces, local_at, remote_at, .. } = found;
        let bytes = mapping.copy(*role, data, local_at, pieces.as_slice(), remote_at, max_bytes);
        if bytes < max_bytes {
            return Err(short_buffer());
        }
        *left_bytes -= bytes;
        Ok(Step { bytes, done: *left_bytes == 0 })
    }

    /// Maps an arena that a peer has handed over.
    fn take_arena(&mut self, peer: &mut MappedPeer, id: u32, descriptor: Option<std::os::fd::OwnedFd>) {
        let mapped = match descriptor {
            Some(descriptor) => {
                SharedMemory::attach(descriptor, HEAD_BYTES, usize::MAX).map_err(|error| error.to_string())
            }
            None => Err(
                "no descriptor of the peer's buffer came: one of the two may have no more open files (RLIMIT_NOFILE, ulimit -n)"
                    .to_owned(),
            ),
        };
        match mapped {
            Ok(memory) => {
                peer.wanted.retain(|wanted| *wanted != id);
                peer.failed.retain(|(failed, _)| *failed != id);
                let name = Name { peer: peer.number, arena: id };
                self.cache.insert(name, Arc::new(Mapping::new(memory)), self.config.bound());
                // A message that its other end copied alone has not waited.
                if PendingMapping::strong_count(&self.pending_mappings) == 1
                    && self.cache.is_beyond(self.config.bound())
                {
                    self.cache.trim(self.config.bound());
                }
            }
            Err(why) => {
                peer.fail(id, why);
                peer.tell(MappingMessage::Cannot(id));
            }
        }
    }

    /// The mapping of a peer's arena. If it is not there, it is asked for.
    fn mapping(&mut self, peer: &mut MappedPeer, id: u32) -> Result<Option<Arc<Mapping>>, Fault> {
        if let Some(mapping) = self.cache.find(&Name { peer: peer.number, arena: id }) {
            return Ok(Some(mapping));
        }
        if let Some(at) = peer.failed.iter().position(|(failed, _)| *failed == id) {
            let (_, why) = peer.failed.swap_remove(at);
            return Err(demotion_fault(&why));
        }
        if !peer.wanted.contains(&id) {
            peer.wanted.push(id);
            peer.tell(MappingMessage::Want(id));
        }
        Ok(None)
    }

    /// Finds the other end's memory, if what it needs is mapped.
    fn look(&mut self, peer: &mut MappedPeer, transfer: &mut MappedTransfer) -> Result<(), Fault> {
        let RemoteMemory::AwaitingMapping { described, .. } = &transfer.far else { return Ok(()) };
        let Described { head, inline, .. } = *described;
        let Some(mapping) = self.mapping(peer, head.arena)? else { return Ok(()) };
        let lists = match head.list_arena {
            0 => None,
            id => match self.mapping(peer, id)? {
                None => return Ok(()),
                found => found,
            },
        };
        let Plan { model, role, interval, .. } = transfer.plan;
        // From here on the other end's memory stays as it is until this is done.
        // A sender that helps does so by claims, which the receiver closes.
        let lease = (model != Model::Both || role == Role::Receiver).then_some((head.line, head.generation));
        if let Some((line, generation)) = lease
            && !mapping.lease(line).is_some_and(|lease| lease.take(generation))
        {
            return Err(demotion_fault("the peer has ended the transfer"));
        }
        let nothing = Pieces::Many(Vec::new());
        let (start, local_at, remote_at) = (head.start, Cursor::default(), Cursor::default());
        let mut found = Found { mapping, lease, pieces: nothing, start, local_at, remote_at };
        let fetched;
        let parts: &[WirePart] = match lists {
            None => inline.get(..head.count as usize).ok_or_else(garbage)?,
            Some(lists) => {
                fetched = lists.read_list(inline[0]).ok_or_else(garbage)?;
                &fetched
            }
        };
        if !covers(start, parts, interval, found.mapping.bytes()) {
            return Err(garbage());
        }
        let piece = |[offset, bytes]: &WirePart| Piece { offset: *offset, bytes: *bytes };
        found.pieces = match parts {
            [one] => Pieces::One([piece(one)]),
            many => Pieces::Many(many.iter().map(piece).collect()),
        };
        found.remote_at = Cursor::at(found.pieces.as_slice(), interval.start - start);
        transfer.far = RemoteMemory::Found(found);
        Ok(())
    }
}
