//! What plain and tagged messages have in common.

use lmt::buffer::Buffer;
use lmt::{Label, Space, TagMatch, Wanted};

use super::endpoint::Ep;
use crate::abi::{Errno, FiAddr, flags};
use crate::border::Pieces;
use crate::state::Surroundings;
use crate::state::endpoint::{Binding, Endpoint, INJECT_MAX_BYTES, PLAIN, Receiving, Sending, TAGGED};
use crate::state::probing::Then;

/// Flags by which a send's completion waits for the receiver.
const SYNCHRONOUS: u64 = flags::DELIVERY_COMPLETE | flags::MATCH_COMPLETE;

/// Whether a good end is told.
#[inline]
pub(super) fn reports(binding: Option<Binding>, flags: u64) -> bool {
    binding.is_some_and(|binding| !binding.selective || flags & flags::COMPLETION != 0)
}

pub(super) const fn kind_of(space: Space) -> u64 {
    if space.index() == TAGGED.index() { flags::TAGGED } else { flags::MSG }
}

/// A message to be sent.
pub(super) struct Outgoing<'a> {
    pub pieces: Pieces<'a>,
    pub to: FiAddr,
    pub label: Label,
    pub context: usize,
    /// Those of the call; without any, those of the endpoint hold.
    pub flags: Option<u64>,
}

impl Outgoing<'_> {
    /// Begins the send.
    #[inline]
    pub fn begin(self, ep: &Ep) -> Result<(), Errno> {
        let Self { pieces, to, label, context, flags } = self;
        ep.begin(|endpoint, around| {
            let flags = flags.unwrap_or(endpoint.settings.send_flags);
            let sending = Sending {
                to,
                label,
                context,
                flags: flags::SEND | kind_of(label.space),
                reports: reports(endpoint.send_queue, flags),
                synchronous: flags & SYNCHRONOUS != 0,
            };
            if flags & flags::INJECT != 0 && !sending.synchronous {
                let mut gathered = [0; INJECT_MAX_BYTES];
                let bytes = pieces.one.map_or_else(|| gather(&pieces.buffer, &mut gathered), Ok)?;
                return endpoint.inject_and_tell(around, &sending, bytes);
            }
            endpoint.send(around, &sending, pieces.one, pieces.buffer)
        })
    }
}

/// The bytes of several pieces as one.
fn gather<'a>(buffer: &Buffer, into: &'a mut [u8; INJECT_MAX_BYTES]) -> Result<&'a [u8], Errno> {
    let bytes = usize::try_from(buffer.total_bytes()).map_err(|_| Errno::MSGSIZE)?;
    let into = into.get_mut(..bytes).ok_or(Errno::MSGSIZE)?;
    buffer.read_at(0, into);
    Ok(into)
}

/// Sends what the caller may change at once.
#[inline]
pub(super) fn inject(ep: &Ep, bytes: &[u8], to: FiAddr, label: Label) -> Result<(), Errno> {
    ep.begin(|endpoint, around| endpoint.inject(around, to, label, bytes))
}

/// A message's label with a number that goes along; of the number's bits those
/// count that `cq_data_size` promises.
#[inline]
pub(super) const fn with_data(tag: u64, space: Space, data: u64) -> Label {
    Label { tag, space, immediate: Some(data as u32) }
}

/// A receive's place, or what it looks for.
pub(super) struct Incoming<'a> {
    pub pieces: Pieces<'a>,
    pub from: FiAddr,
    pub wanted: Wanted,
    pub context: usize,
    /// Those of the call; without any, those of the endpoint hold.
    pub flags: Option<u64>,
}

impl Incoming<'_> {
    /// Begins the receive, or looks.
    #[inline]
    pub fn begin(self, ep: &Ep) -> Result<(), Errno> {
        let Self { pieces, from, wanted, context, flags } = self;
        ep.begin(|endpoint, around| {
            // Its owner has the receives.
            if endpoint.owner.is_some() {
                return Err(Errno::NOSYS);
            }
            let flags = flags.unwrap_or(endpoint.settings.receive_flags);
            let receiving = Receiving {
                from,
                wanted,
                context,
                flags: flags::RECV | kind_of(wanted.space),
                reports: reports(endpoint.receive_queue, flags),
            };
            if flags & (flags::PEEK | flags::CLAIM | flags::DISCARD | flags::MULTI_RECV) == 0 {
                return endpoint.receive(around, &receiving, pieces.buffer, pieces.address);
            }
            specially(endpoint, around, &receiving, pieces, flags)
        })
    }
}

/// Looks, claims, drops, or receives many.
#[cold]
fn specially(
    endpoint: &mut Endpoint,
    around: &mut Surroundings,
    receiving: &Receiving,
    pieces: Pieces<'_>,
    flags: u64,
) -> Result<(), Errno> {
    let is_tagged = receiving.wanted.space == TAGGED;
    let has = |flag| flags & flag != 0;
    if has(flags::MULTI_RECV) {
        let lent = pieces.lent.filter(|_| !is_tagged).ok_or(Errno::INVAL)?;
        return endpoint.receive_many(around, receiving, lent);
    }
    if !is_tagged {
        return Err(Errno::BADFLAGS);
    }
    match (has(flags::PEEK), has(flags::CLAIM), has(flags::DISCARD)) {
        (true, true, true) | (false, false, _) => Err(Errno::BADFLAGS),
        (true, true, false) => endpoint.peek(around, receiving, Then::Claim),
        (true, false, true) => endpoint.peek(around, receiving, Then::Discard),
        (true, false, false) => endpoint.peek(around, receiving, Then::Leave),
        (false, true, true) => endpoint.drop_claimed(around, receiving),
        (false, true, false) => endpoint.claim(around, receiving, pieces.buffer, pieces.address),
    }
}

/// Plain messages have no tag.
pub(super) const ANY_PLAIN: Wanted = Wanted { space: PLAIN, tags: TagMatch::any() };

/// What a tagged receive takes.
#[inline]
pub(super) const fn tagged(tag: u64, ignore: u64) -> Wanted {
    Wanted { space: TAGGED, tags: TagMatch { tag, ignore } }
}
