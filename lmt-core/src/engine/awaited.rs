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
const LOOKS: u32 = 1024;
/// So many follow one another at once, where nothing else is to be done: a pause takes longer than
/// a line's way from core to core on some processors.
const HASTY_LOOKS: u32 = 128;

/// A receive that is not posted.
#[derive(Debug)]
pub(crate) struct Awaited {
    pattern: Pattern,
    space: Space,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing has come for it.
    Open(Buffer),
    /// It has its message.
    Done(Result<Status, OperationError>),
    /// Its message is on its way.
    Request(RequestId),
}

impl Awaited {
    /// Whether a message is for it.
    #[inline]
    pub fn takes(&self, key: PeerKey, label: &Label) -> bool {
        self.space == label.space
            && self.pattern.accepts(key, label.tag)
            && matches!(self.state, State::Open(_))
    }

    /// Takes a short message, which is the delivery's.
    #[inline(always)] // The path of a short message.
    pub fn take(&mut self, delivery: &Delivery<'_>, status: Status) {
        let State::Open(buffer) = &mut self.state else { return };
        let copied = delivery.copy_to_buffer(buffer, 0) as u64;
        let label = Label { tag: status.tag, space: self.space, immediate: status.immediate };
        self.state = State::Done(received(status.peer, &label, status.bytes, copied));
    }

    /// Makes a request of it, for a message that has begun to come.
    pub fn begin(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let State::Open(buffer) = &mut self.state else { return None };
        let buffer = std::mem::replace(buffer, Buffer::empty(Access::Write));
        let label = Label { tag: self.pattern.tag, space: self.space, immediate: None };
        let id = requests.insert(Request::new(buffer, self.pattern.source, label, Waiting::Matched));
        self.state = State::Request(id);
        Some(id)
    }
}

impl Engine {
    /// As [`Engine::start_receive`], for a caller that waits for the receive at once: the message
    /// is looked for a while before the receive is posted.
    ///
    /// # Errors
    /// As [`Engine::start_receive`].
    #[inline]
    pub fn start_blocking_receive(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
        buffer: Buffer,
    ) -> Result<Started, OperationError> {
        let Wanted { space, tags } = wanted.into();
        let pattern = self.receive_pattern(source, tags, &buffer)?;
        let looks = self.looks();
        if looks == 0 || self.traffic.matchers.of(space).unexpected() > 0 {
            return self.receive_or_post(pattern, space, buffer);
        }
        if let Some(key) = pattern.source {
            self.reach(key)?;
        }
        let mut awaited = Awaited { pattern, space, state: State::Open(buffer) };
        // Counts the call towards the next look at the sockets.
        self.after(true, Self::CLOCK_EVERY);
        for look in 1..=looks {
            let mut moved = self.poll_for(Some(&mut awaited));
            if moved && !matches!(awaited.state, State::Open(_)) {
                break;
            }
            if !moved && look < HASTY_LOOKS && looks > HASTY_LOOKS && self.traffic.is_quiet() {
                continue;
            }
            moved |= self.advance();
            self.after(moved, Self::CLOCK_EVERY);
            if !moved && look > HASTY_LOOKS {
                std::hint::spin_loop();
            }
        }
        match awaited.state {
            State::Open(buffer) => self.receive_or_post(pattern, space, buffer),
            State::Done(result) => {
                self.answer_if_owed();
                self.started(result)
            }
            State::Request(id) => Ok(Started::Pending(id)),
        }
    }

    /// How often to look; once where others wait for the core.
    #[inline]
    fn looks(&self) -> u32 {
        if self.sharing.others() == Others::Wait { 1 } else { self.spins_and_yields().0.min(LOOKS) }
    }
}
