//! A blocking receive while its message is looked for: it is not posted yet, and has no request.
//!
//! It stands behind all receives that are posted. A short message goes straight into its buffer;
//! one that is announced, or comes in several pieces, makes a request of it.

use super::Engine;
use super::label::{Label, Space, Wanted};
use super::polling::Others;
use super::receiving::Source;
use super::requests::{OperationError, Request, RequestId, Requests, Started, Status, Waiting};
use super::traffic::received;
use crate::buffer::{Access, Buffer};
use crate::inbox::Delivery;
use crate::matching::{Matcher, Pattern};
use crate::rendezvous::PeerKey;

/// So many looks before it is posted: some microseconds' worth.
const LOOKS: u32 = 512;
/// So many follow one another at once, where nothing else is to be done: a pause takes longer than
/// a line's way from core to core on some processors.
const HASTY_LOOKS: u32 = 128;

/// A receive that is not posted.
#[derive(Debug)]
pub(crate) struct Awaited {
    pattern: Pattern,
    space: Space,
    buffer: Buffer,
    /// Of a message that is on its way.
    request: Option<RequestId>,
    got: Got,
}

/// The message that a receive has got. Not a [`Status`]: that would be written in parts here and
/// read as a whole, for which a processor waits.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    tag: u64,
    copied_bytes: u64,
    bytes: u64,
    immediate: Option<u32>,
    sender: PeerKey,
}

/// What a look into the inbox has found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Nothing,
    /// Something that has gone where it belongs.
    Something,
    /// A message for the receive that is awaited.
    Awaited,
}

impl Awaited {
    /// The space of its messages.
    pub const fn space(&self) -> Space {
        self.space
    }

    /// Whether a message is for it.
    #[inline(always)] // The path of a short message.
    pub fn takes(&self, key: PeerKey, label: &Label) -> bool {
        self.space == label.space && self.pattern.accepts(key, label.tag) && self.request.is_none()
    }

    /// Takes a short message, which is the delivery's.
    #[inline(always)] // The path of a short message.
    pub fn take(&mut self, sender: PeerKey, label: &Label, delivery: &Delivery<'_>) -> Found {
        let copied_bytes = delivery.copy_to_buffer(&mut self.buffer, 0) as u64;
        let bytes = delivery.bytes() as u64;
        self.got = Got { sender, tag: label.tag, bytes, immediate: label.immediate, copied_bytes };
        Found::Awaited
    }

    /// Makes a request of it, for a message that has begun to come.
    pub fn begin(&mut self, requests: &mut Requests) -> RequestId {
        let buffer = std::mem::replace(&mut self.buffer, Buffer::empty(Access::Write));
        let label = Label { tag: self.pattern.tag, space: self.space, immediate: None };
        let id = requests.insert(Request::new(buffer, self.pattern.source, label, Waiting::Matched));
        self.request = Some(id);
        id
    }
}

impl Engine {
    /// As [`Engine::start_receive`], for a caller that waits for the receive at once: the message
    /// is looked for a while before the receive is posted.
    ///
    /// # Errors
    /// As [`Engine::start_receive`].
    #[inline(always)] // The path of a short message: its status stays in registers.
    pub fn start_blocking_receive(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
        buffer: Buffer,
    ) -> Result<Started, OperationError> {
        let Wanted { space, tags } = wanted.into();
        let pattern = self.receive_pattern(source, tags, &buffer)?;
        // As a call of progress: what waits for room goes on however soon messages come, and the
        // call counts towards the next look at the sockets, which may take something in.
        self.advance();
        self.after(true, Self::CLOCK_EVERY);
        let looks = self.looks();
        // What is here can be received whatever became of its sender.
        if self.traffic.matchers.of(space).unexpected() == 0
            && let Some(key) = pattern.source
        {
            self.reach(key)?;
        }
        let mut awaited = Awaited { pattern, space, buffer, request: None, got: Got::default() };
        for look in 1..=looks {
            // What a look at the sockets has taken in may be for it, and be the first.
            if self.traffic.matchers.of(space).unexpected() > 0 {
                break;
            }
            let moved = match self.poll_for(Some(&mut awaited)) {
                Found::Awaited => {
                    self.answer_if_owed();
                    let Got { sender, tag, bytes, immediate, copied_bytes } = awaited.got;
                    let peer = self.traffic.name(sender);
                    if copied_bytes == bytes {
                        return Ok(Started::Done(Status { peer, tag, bytes, immediate }));
                    }
                    let label = Label { tag, space, immediate };
                    return self.started(received(peer, &label, bytes, copied_bytes));
                }
                Found::Something => match awaited.request {
                    Some(id) => return Ok(Started::Pending(id)),
                    None => true,
                },
                Found::Nothing if look < HASTY_LOOKS.min(looks) && self.traffic.is_quiet() => continue,
                Found::Nothing => false,
            };
            let moved = self.advance() | moved;
            self.after(moved, Self::CLOCK_EVERY);
            if !moved && look > HASTY_LOOKS {
                std::hint::spin_loop();
            }
        }
        self.receive_or_post(pattern, space, awaited.buffer)
    }

    /// How often to look; once where others wait for the core.
    #[inline]
    fn looks(&self) -> u32 {
        if self.sharing.others() == Others::Wait { 1 } else { self.spins_and_yields().0.min(LOOKS) }
    }
}
