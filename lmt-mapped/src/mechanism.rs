//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::keys::{Key, Value};
use lmt_core::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Reach, Role, Step, Unavailable,
};
use lmt_core::shared_buffer::HEAD_BYTES;
use lmt_core::shared_memory::SharedMemory;

use crate::both::Incoming;
use crate::cache::{Cache, Name};
use crate::config::{Config, KEYS};
use crate::cookie::{Described, Offered, WirePart, covers, demote_words, describe, garbage, parse};
use crate::news::News;
use crate::peer::{Claimed, Far, Found, Looker, MappedPeer, MappedTransfer, Pieces};
use crate::sys::{Mapping, Piece};

/// Version of what the two ends tell each other; both must have the same.
const VERSION: u8 = 5;

/// The mechanism, with the peers' arenas that this endpoint has mapped.
#[derive(Debug, Default)]
pub struct Mapped {
    config: Config,
    cache: Cache<Mapping>,
    incoming: Incoming,
    last_peer: u64,
    lookers: Looker,
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

    fn name(&self) -> &'static str {
        "mapped"
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Both, Model::Get, Model::Put]
    }

    fn reach(&self) -> Reach {
        Reach::SharedBuffers
    }

    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.config.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.config.set(key, &value)
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello { bytes: vec![VERSION], descriptors: Vec::new() })
    }

    /// What there is to try is tried with each arena, when a message first needs
    /// it: before there are any, there is nothing to map.
    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<(MappedPeer, Abilities), Unavailable> {
        if hello.bytes != [VERSION] {
            return Err(Unavailable {
                errno: 0,
                sentence: "the peer's shared buffers are of another version of lmt; use the same in both"
                    .to_owned(),
            });
        }
        self.last_peer += 1;
        let peer = MappedPeer::new(self.last_peer, Arc::clone(&facts.process));
        Ok((peer, Abilities { read: true, write: true, cooperate: false }))
    }

    fn prepare(
        &mut self,
        peer: &mut MappedPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(MappedTransfer, Cookie), Fault> {
        let (cookie, offered, claimed) = self.prepare_copy(peer, plan, data)?;
        let transfer = MappedTransfer { claimed, _offered: offered, ..MappedTransfer::new(*plan) };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        transfer.plan.interval = interval;
        transfer.left_bytes = interval.bytes();
        let described = match (transfer.plan.model, transfer.plan.role) {
            (Model::Both, Role::Sender) => {
                let (claimed, described) = self.incoming.start(peer, remote, interval).ok_or_else(garbage)?;
                transfer.claimed = Some(claimed);
                described
            }
            _ => Some(parse(remote).ok_or_else(garbage)?),
        };
        if let Some(described) = described {
            transfer.far = Far::Looking { described, _looker: Looker::clone(&self.lookers) };
            self.look_or_leave(peer, transfer)?;
        }
        Ok(())
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

    fn leave(&mut self, peer: &mut MappedPeer, transfer: &mut MappedTransfer) -> bool {
        self.incoming.leave(peer, transfer)
    }

    fn copied_by_peer(&self, transfer: &MappedTransfer) -> u64 {
        match &transfer.claimed {
            Some(Claimed::In(reception, _)) => reception.copied_by_sender(),
            _ => 0,
        }
    }

    fn finish(&mut self, peer: &mut MappedPeer, mut transfer: MappedTransfer) {
        if let Some(claimed) = transfer.claimed.take() {
            self.incoming.finish(peer, claimed);
        }
        drop(transfer);
        if self.cache.is_beyond(&self.config) {
            self.cache.trim(&self.config);
        }
    }

    fn parcel(&mut self, peer: &mut MappedPeer) -> Option<Hello> {
        peer.parcel()
    }

    fn take_parcel(&mut self, peer: &mut MappedPeer, parcel: Hello) {
        match News::parse(parcel) {
            Some(News::Arena(id, descriptor)) => self.take_arena(peer, id, descriptor),
            Some(News::Want(id)) => peer.answer(id),
            Some(News::Cannot(id)) => peer.note_refusal(id),
            Some(News::Claims(descriptor)) => peer.claims.take(descriptor),
            Some(News::Gone(id)) => {
                self.cache.remove(Name { peer: peer.number, arena: id });
                if peer.wanted.contains(&id) {
                    peer.fail(id, "the peer has given the buffer up".to_owned());
                }
            }
            None => {}
        }
    }

    fn forget_peer(&mut self, peer: MappedPeer) {
        self.cache.forget(peer.number);
    }
}

impl Mapped {
    /// What describes this end's memory, and what is kept and claimed for it.
    fn prepare_copy(
        &mut self,
        peer: &mut MappedPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Cookie, Option<Offered>, Option<Claimed>), Fault> {
        let (cookie, offered, claimed) = match (plan.model, plan.role) {
            // Who copies alone says nothing of its own memory.
            (Model::Get, Role::Receiver) | (Model::Put, Role::Sender) => (Cookie::empty(), None, None),
            (Model::Both, Role::Receiver) => {
                let (cookie, offered, claimed) = self.incoming.prepare(peer, plan.interval, data);
                (cookie, offered, Some(claimed))
            }
            _ => {
                let (cookie, offered) = describe(data, plan.interval, peer.process())?;
                (cookie, Some(offered), None)
            }
        };
        if let Some(offered) = &offered {
            let is_known = peer.introduce(offered.offer.arena().id());
            if let Some(list) = offered.list_arena() {
                peer.introduce(list.id());
            }
            // In the Both model the receiver goes on alone.
            if !is_known && claimed.is_none() {
                return Err(demote_words(
                    "the peer could not map the buffer before; it is tried again later",
                ));
            }
        }
        Ok((cookie, offered, claimed))
    }

    /// Copies on, by `max_bytes` at most: see [`Lmt::step`].
    fn copy_on(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        if matches!(transfer.far, Far::Looking { .. }) {
            self.look_or_leave(peer, transfer)?;
        }
        if transfer.plan.model == Model::Both {
            return self.incoming.step(peer, transfer, data, max_bytes);
        }
        let MappedTransfer { plan: Plan { role, interval, .. }, left_bytes, far, .. } = transfer;
        let Far::Found(found) = far else {
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
                self.cache.insert(name, Arc::new(Mapping::new(memory)), &self.config);
                // A message that its other end copied alone has not waited.
                if Looker::strong_count(&self.lookers) == 1 && self.cache.is_beyond(&self.config) {
                    self.cache.trim(&self.config);
                }
            }
            Err(why) => {
                peer.fail(id, why);
                peer.tell(News::Cannot(id));
            }
        }
    }

    /// The mapping of a peer's arena. If it is not there, it is asked for.
    fn mapping(&mut self, peer: &mut MappedPeer, id: u32) -> Result<Option<Arc<Mapping>>, Fault> {
        if let Some(mapping) = self.cache.find(Name { peer: peer.number, arena: id }) {
            return Ok(Some(mapping));
        }
        if let Some(at) = peer.failed.iter().position(|(failed, _)| *failed == id) {
            let (_, why) = peer.failed.swap_remove(at);
            return Err(demote_words(&why));
        }
        if !peer.wanted.contains(&id) {
            peer.wanted.push(id);
            peer.tell(News::Want(id));
        }
        Ok(None)
    }

    /// As [`Self::look`]; a sender that could help and finds nothing does not.
    fn look_or_leave(&mut self, peer: &mut MappedPeer, transfer: &mut MappedTransfer) -> Result<(), Fault> {
        let outcome = self.look(peer, transfer);
        if outcome.is_err() && matches!(transfer.claimed, Some(Claimed::Out(_))) {
            transfer.far = Far::Unknown;
            return Ok(());
        }
        outcome
    }

    /// Finds the other end's memory, if what it needs is mapped.
    fn look(&mut self, peer: &mut MappedPeer, transfer: &mut MappedTransfer) -> Result<(), Fault> {
        let Far::Looking { described, .. } = &transfer.far else { return Ok(()) };
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
            return Err(demote_words("the peer has ended the transfer"));
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
        transfer.far = Far::Found(found);
        Ok(())
    }
}

pub(crate) fn short_buffer() -> Fault {
    demote_words(
        "the buffer here is shorter than the transfer, or lent for the wrong access; give the one that prepare saw",
    )
}
