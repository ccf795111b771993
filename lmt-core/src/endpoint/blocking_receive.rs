//! A blocking receive while its message is looked for: it is not posted yet, and has no request.
//!
//! It stands behind all receives that are posted. A short message goes straight into its buffer;
//! one that is announced, or comes in several pieces, makes a request of it.

use super::Engine;
use crate::base::yielding::YieldOutcome;
use crate::matching::Matcher;
use crate::memory::buffer::Buffer;
use crate::queue::{InboxReceiver, Next};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::label::{Label, Source, Space, Wanted};
use crate::requests::outcome::{OperationError, Started, Status, truncated};
use crate::requests::table::{Requests, Waiting};
use crate::vocabulary::identity::PeerKey;

/// So many looks before it is posted: some microseconds' worth.
const LOOKS: u32 = 512;

/// So many follow one another at once, where nothing else is to be done: a pause takes longer than
/// a line's way from core to core on some processors.
const HASTY_LOOKS: u32 = 128;

/// A blocking receive that is not posted.
///
/// Once [`PolledReceive::request`] is some, a message is being written into its buffer: who drops it then
/// ends that request first.
// What it has got stands in words of 8 bytes, in another order than in a `Status`: words that are
// stored one by one and loaded two at a time stall (store forwarding).
#[derive(Debug)]
#[repr(C)]
pub struct PolledReceive {
    source: Source,
    wanted: Wanted,
    buffer: Buffer,
    /// Of a message that is on its way.
    request: Option<RequestId>,
    bytes: u64,
    copied_bytes: u64,
    peer: u64,
    /// With [`HAS_IMMEDIATE`] if there is one.
    immediate: u64,
    tag: u64,
}

const HAS_IMMEDIATE: u64 = 1 << 32;

/// What a look into the inbox has found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Nothing,
    /// Something that has gone where it belongs.
    Something,
    /// A message for the receive that is awaited.
    PolledReceive,
}

impl PolledReceive {
    /// A receive of the first message from `source` whose tag matches; of a space other than the
    /// first if `wanted` says so.
    #[inline(always)] // The path of a short message.
    pub fn new(source: Source, wanted: impl Into<Wanted>, buffer: Buffer) -> Self {
        let wanted = wanted.into();
        Self {
            source,
            wanted,
            buffer,
            request: None,
            bytes: 0,
            copied_bytes: 0,
            peer: 0,
            immediate: 0,
            tag: 0,
        }
    }

    /// What it has got, after [`Engine::poll_before_posting`] has said that it has.
    #[inline(always)] // The path of a short message.
    pub fn status(&self) -> Status {
        let immediate = (self.immediate & HAS_IMMEDIATE != 0).then_some(self.immediate as u32);
        Status { peer: PeerId::from_raw(self.peer), tag: self.tag, bytes: self.bytes, immediate }
    }

    /// The request of a message that has begun to come; it uses the buffer.
    pub const fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// The space of its messages.
    pub(super) const fn space(&self) -> Space {
        self.wanted.space
    }

    /// Whether a message is for it.
    #[inline(always)] // The path of a short message.
    pub(super) fn takes(&self, key: PeerKey, label: &Label) -> bool {
        let from_source = match self.source {
            Source::Any => true,
            Source::Peer(peer) => peer.index() == key,
        };
        let Wanted { space, tags } = self.wanted;
        from_source
            && space == label.space
            && (label.tag ^ tags.tag) & !tags.ignore == 0
            && self.request.is_none()
    }

    /// Takes a short message, the next one of the inbox.
    #[inline(always)] // The path of a short message.
    pub(super) fn take(&mut self, peer: PeerId, label: &Label, inbox: &InboxReceiver, next: Next) {
        self.copied_bytes = inbox.copy_to_buffer(next, &mut self.buffer, 0) as u64;
        self.bytes = next.header.bytes as u64;
        self.peer = peer.to_raw();
        self.tag = label.tag;
        self.immediate = label.immediate.map_or(0, |immediate| HAS_IMMEDIATE | u64::from(immediate));
    }

    /// Makes a request of it, for a message that has begun to come.
    pub(super) fn begin(&mut self, requests: &mut Requests) -> RequestId {
        let buffer = self.buffer.take();
        let Wanted { space, tags } = self.wanted;
        let label = Label { tag: tags.tag, space, immediate: None };
        let peer = match self.source {
            Source::Any => None,
            Source::Peer(peer) => Some(peer.index()),
        };
        let id = requests.begin(buffer, peer, label, Waiting::Matched);
        self.request = Some(id);
        id
    }
}

impl Engine {
    /// Looks for the message of a receive a while before it is posted, for a caller that waits
    /// for it at once. Whether it is there, and [`PolledReceive::status`] tells of it; if not,
    /// [`Engine::start_polled_receive`] follows.
    ///
    /// # Errors
    /// As [`Engine::start_receive`], and [`OperationError::Truncated`].
    #[inline(always)] // The path of a short message.
    pub fn poll_before_posting(&mut self, awaited: &mut PolledReceive) -> Result<bool, OperationError> {
        self.check_receive(&awaited.buffer)?;
        let source = self.key_of(awaited.source)?;
        // As a call of progress: what waits for room goes on however soon messages come, and the
        // call counts towards the next look at the sockets, which may take something in.
        self.advance();
        self.after(true, Self::CLOCK_EVERY);
        let looks = self.looks();
        let space = awaited.space();
        // What is here can be received whatever became of its sender.
        if self.traffic.matchers.of(space).unexpected() == 0
            && let Some(key) = source
        {
            self.reach(key)?;
        }
        let mut is_quiescent = self.traffic.is_quiescent();
        let mut look = 0;
        // What a look at the sockets has taken in may be for it, and be the first.
        while look < looks && self.traffic.matchers.of(space).unexpected() == 0 {
            // What a look does not find it does not change.
            let hasty_looks = if is_quiescent { HASTY_LOOKS.min(looks) } else { look };
            let found = loop {
                look += 1;
                match self.poll_for(Some(awaited)) {
                    Found::Nothing if look < hasty_looks => {}
                    found => break found,
                }
            };
            let moved = match found {
                Found::PolledReceive => {
                    self.write_pending_answers();
                    if awaited.copied_bytes == awaited.bytes {
                        return Ok(true);
                    }
                    return Err(truncated(awaited.status(), awaited.copied_bytes));
                }
                Found::Something if awaited.request.is_some() => break,
                Found::Something => true,
                Found::Nothing => false,
            };
            let moved = self.advance() | moved;
            is_quiescent = self.traffic.is_quiescent();
            self.after(moved, Self::CLOCK_EVERY);
            if !moved && look > HASTY_LOOKS {
                std::hint::spin_loop();
            }
        }
        Ok(false)
    }

    /// Begins a receive whose message was not there yet, or goes on with one whose message has
    /// begun to come.
    ///
    /// # Errors
    /// As [`Engine::start_receive`].
    pub fn start_polled_receive(&mut self, awaited: &mut PolledReceive) -> Result<Started, OperationError> {
        if let Some(id) = awaited.request.take() {
            return Ok(Started::Pending(id));
        }
        let buffer = awaited.buffer.take();
        self.start_receive(awaited.source, awaited.wanted, buffer)
    }

    /// How often to look; once where others wait for the core.
    #[inline]
    fn looks(&self) -> u32 {
        if self.sharing.others() == YieldOutcome::Wait { 1 } else { self.spins_and_yields().0.min(LOOKS) }
    }
}
