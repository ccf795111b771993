//! What plain and tagged messages have in common.

use lmt::{Label, Space, Wanted};

use super::endpoint::Ep;
use crate::abi::{Errno, FiAddr, flags};
use crate::border::Pieces;
use crate::log;
use crate::refuse::because;
use crate::state::Surroundings;
use crate::state::endpoint::{
    Binding, Endpoint, INJECT_MAX_BYTES, Receiving, Sending, TAGGED, check_injected,
};
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
            check(flags)?;
            if flags & ONLY_OF_RECEIVES != 0 {
                return Err(bad_flags("a send neither looks for messages nor goes to many"));
            }
            let sending = Sending {
                to,
                label,
                context: Some(context),
                flags: flags::SEND | kind_of(label.space),
                reports: reports(endpoint.send_queue, flags),
                synchronous: flags & SYNCHRONOUS != 0,
            };
            if flags & flags::INJECT != 0 {
                return in_one(&pieces, |bytes| endpoint.inject_and_tell(around, &sending, bytes));
            }
            endpoint.send(around, &sending, pieces.buffer)
        })
    }
}

/// Injects the bytes of all pieces as one.
///
/// # Errors
/// [`Errno::MSGSIZE`]: they are too many; or those of `inject`.
#[inline]
pub(super) fn in_one(
    pieces: &Pieces<'_>,
    inject: impl FnOnce(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if let Some(bytes) = pieces.one {
        return inject(bytes);
    }
    let total_bytes = pieces.buffer.total_bytes();
    check_injected(total_bytes)?;
    let mut gathered = [0; INJECT_MAX_BYTES];
    let gathered = &mut gathered[..total_bytes as usize];
    pieces.buffer.read_at(0, gathered);
    inject(gathered)
}

/// Sends what the caller may change at once.
#[inline]
pub(super) fn inject(ep: &Ep, bytes: &[u8], to: FiAddr, label: Label) -> Result<(), Errno> {
    ep.begin(|endpoint, around| endpoint.inject(around, to, label, bytes))
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
            check(flags)?;
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
        let lent = pieces.lent.filter(|_| !is_tagged).ok_or_else(|| {
            let why = format_args!("a multi-receive buffer is one piece, for plain messages");
            because(log::Subsystem::EpData, Errno::INVAL, why)
        })?;
        return endpoint.receive_many(around, receiving, lent);
    }
    if !is_tagged {
        return Err(bad_flags("FI_PEEK, FI_CLAIM and FI_DISCARD are for tagged messages"));
    }
    match (has(flags::PEEK), has(flags::CLAIM), has(flags::DISCARD)) {
        (true, true, true) => Err(bad_flags("a message that is found is claimed or dropped, not both")),
        (false, false, _) => Err(bad_flags("FI_DISCARD needs FI_PEEK or FI_CLAIM")),
        (true, true, false) => endpoint.peek(around, receiving, Then::Claim),
        (true, false, true) => endpoint.peek(around, receiving, Then::Discard),
        (true, false, false) => endpoint.peek(around, receiving, Then::Leave),
        (false, true, true) => endpoint.drop_claimed(around, receiving),
        (false, true, false) => endpoint.claim(around, receiving, pieces.buffer, pieces.address),
    }
}

/// What no send does.
const ONLY_OF_RECEIVES: u64 = flags::PEEK | flags::CLAIM | flags::DISCARD | flags::MULTICAST;
/// What no operation does.
const REFUSED: u64 = flags::FENCE | flags::TRIGGER;

#[cold]
fn bad_flags(why: &str) -> Errno {
    because(log::Subsystem::EpData, Errno::BADFLAGS, format_args!("{why}"))
}

/// Refuses flags of which no operation does what they ask for.
#[inline]
pub(super) fn check(flags: u64) -> Result<(), Errno> {
    if flags & REFUSED == 0 { Ok(()) } else { Err(bad_flags("FI_FENCE and FI_TRIGGER are not offered")) }
}
