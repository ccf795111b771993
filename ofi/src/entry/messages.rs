//! What plain and tagged messages have in common.

use lmt::{Label, Space, Wanted};

use super::objects::Ep;
use crate::abi::{Errno, FiAddr, flags};
use crate::border::Pieces;
use crate::log;
use crate::refuse::because;
use crate::state::SharedState;
use crate::state::endpoint::{Binding, Endpoint, INJECT_MAX_BYTES, Receiving, Sending, check_injected};
use crate::state::probing::Then;
use crate::state::spaces::TAGGED;

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
pub(super) struct Outgoing {
    pub pieces: Pieces,
    pub to: FiAddr,
    pub label: Label,
    pub context: usize,
    /// Those of the call; without any, those of the endpoint hold.
    pub flags: Option<u64>,
}

impl Outgoing {
    /// Begins the send.
    #[inline(always)] // The path of a short message.
    pub fn begin(self, ep: &Ep) -> Result<(), Errno> {
        let mut state = ep.domain.domain.lock();
        let (endpoint, shared_state) = ep.enabled(&mut state)?;
        let begun = self.begin_at(endpoint, shared_state);
        endpoint.begun(shared_state);
        begun
    }

    #[inline(always)] // As `begin`.
    fn begin_at(self, endpoint: &mut Endpoint, shared_state: &mut SharedState) -> Result<(), Errno> {
        let Self { pieces, to, label, context, flags } = self;
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
            return in_one(&pieces, |bytes| endpoint.inject_and_tell(shared_state, &sending, bytes));
        }
        endpoint.send(shared_state, &sending, pieces.buffer)
    }
}

/// Injects the bytes of all pieces as one.
///
/// # Errors
/// [`Errno::MSGSIZE`]: they are too many; or those of `inject`.
#[inline]
pub(super) fn in_one(pieces: &Pieces, inject: impl FnOnce(&[u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    let total_bytes = pieces.buffer.total_bytes();
    if let Some(bytes) = pieces.buffer.one_slice(0..total_bytes) {
        return inject(bytes);
    }
    check_injected(total_bytes)?;
    let mut gathered = [0; INJECT_MAX_BYTES];
    let gathered = &mut gathered[..total_bytes as usize];
    pieces.buffer.read_at(0, gathered);
    inject(gathered)
}

/// Sends what the caller may change at once.
#[inline(always)] // The path of a short message.
pub(super) fn inject(ep: &Ep, bytes: &[u8], to: FiAddr, label: Label) -> Result<(), Errno> {
    let mut state = ep.domain.domain.lock();
    let (endpoint, shared_state) = ep.enabled(&mut state)?;
    let begun = endpoint.inject(shared_state, to, label, bytes);
    endpoint.begun(shared_state);
    begun
}

/// A receive's place, or what it looks for.
pub(super) struct Incoming {
    pub pieces: Pieces,
    pub from: FiAddr,
    pub wanted: Wanted,
    pub context: usize,
    /// Those of the call; without any, those of the endpoint hold.
    pub flags: Option<u64>,
}

impl Incoming {
    /// Begins the receive, or looks.
    #[inline(always)] // The path of a short message.
    pub fn begin(self, ep: &Ep) -> Result<(), Errno> {
        let mut state = ep.domain.domain.lock();
        let (endpoint, shared_state) = ep.enabled(&mut state)?;
        let begun = self.begin_at(endpoint, shared_state);
        endpoint.begun(shared_state);
        begun
    }

    #[inline(always)] // As `begin`.
    fn begin_at(self, endpoint: &mut Endpoint, shared_state: &mut SharedState) -> Result<(), Errno> {
        let Self { pieces, from, wanted, context, flags } = self;
        // Its owner has the receives.
        if endpoint.owner.is_some() {
            return Err(Errno::NOSYS);
        }
        let flags = flags.unwrap_or(endpoint.settings.receive_flags);
        check(flags)?;
        let reports = reports(endpoint.receive_queue, flags);
        let receiving =
            Receiving { from, wanted, context, flags: flags::RECV | kind_of(wanted.space), reports };
        if flags & (flags::PEEK | flags::CLAIM | flags::DISCARD | flags::MULTI_RECV) == 0 {
            return endpoint.receive(shared_state, receiving, pieces.buffer, pieces.address);
        }
        probe_or_discard(endpoint, shared_state, &receiving, pieces, flags)
    }
}

/// Looks, claims, drops, or receives many.
#[cold]
fn probe_or_discard(
    endpoint: &mut Endpoint,
    shared_state: &mut SharedState,
    receiving: &Receiving,
    pieces: Pieces,
    flags: u64,
) -> Result<(), Errno> {
    let is_tagged = receiving.wanted.space == TAGGED;
    let has = |flag| flags & flag != 0;
    if has(flags::MULTI_RECV) {
        if is_tagged || !pieces.buffer.is_contiguous() {
            let why = format_args!("a multi-receive buffer is one piece, for plain messages");
            return Err(because(log::Subsystem::EpData, Errno::INVAL, why));
        }
        return endpoint.multi_receive(shared_state, receiving, pieces.buffer, pieces.address);
    }
    if !is_tagged {
        return Err(bad_flags("FI_PEEK, FI_CLAIM and FI_DISCARD are for tagged messages"));
    }
    match (has(flags::PEEK), has(flags::CLAIM), has(flags::DISCARD)) {
        (true, true, true) => Err(bad_flags("a message that is found is claimed or dropped, not both")),
        (false, false, _) => Err(bad_flags("FI_DISCARD needs FI_PEEK or FI_CLAIM")),
        (true, true, false) => endpoint.peek(shared_state, receiving, Then::Claim),
        (true, false, true) => endpoint.peek(shared_state, receiving, Then::Discard),
        (true, false, false) => endpoint.peek(shared_state, receiving, Then::Leave),
        (false, true, true) => endpoint.drop_claimed(shared_state, receiving),
        (false, true, false) => endpoint.claim(shared_state, receiving, pieces.buffer, pieces.address),
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
