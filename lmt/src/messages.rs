//! Sending and receiving, getting and putting, of one message that is waited for: the way
//! in. Borrowed slices become buffers of the engine here, and this is the proof that they
//! outlive their use; for scopes too.
#![allow(unsafe_code)] // Buffer::new is the unsafe step.

use std::io::{IoSlice, IoSliceMut};

use lmt_core::buffer::{self, Buffer, Segment};
use lmt_core::endpoint::{
    Message, OperationError, PeerId, PolledReceive, RequestId, SendMode, SendOptions, Source, Started,
    Status, TagMatch,
};
use lmt_core::region::{RegionKey, RegionOptions};

use crate::access::{Access, Token};
use crate::endpoint::Endpoint;

impl Endpoint {
    /// Sends and waits until `data` may be used again.
    ///
    /// # Errors
    /// The peer is unknown, dead or unreachable.
    #[inline]
    pub fn send(&self, to: PeerId, tag: u64, data: &[u8]) -> Result<Status, OperationError> {
        send(self, to, tag, &[IoSlice::new(data)], SendMode::Standard)
    }

    /// Sends and waits until a receive has matched the message.
    ///
    /// # Errors
    /// The peer is unknown, dead or unreachable.
    pub fn send_synchronous(&self, to: PeerId, tag: u64, data: &[u8]) -> Result<Status, OperationError> {
        send(self, to, tag, &[IoSlice::new(data)], SendMode::Synchronous)
    }

    /// Sends and waits until `data` may be used again, with more said: when the
    /// send is finished, and hints that help to choose the way.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_with(
        &self,
        to: PeerId,
        tag: u64,
        data: &[u8],
        options: impl Into<SendOptions>,
    ) -> Result<Status, OperationError> {
        send(self, to, tag, &[IoSlice::new(data)], options)
    }

    /// Sends the segments as one message.
    ///
    /// # Errors
    /// The peer is unknown, dead or unreachable.
    pub fn send_segments(
        &self,
        to: PeerId,
        tag: u64,
        segments: &[IoSlice<'_>],
    ) -> Result<Status, OperationError> {
        send(self, to, tag, segments, SendMode::Standard)
    }

    /// Receives the first message from `source` whose tag matches.
    ///
    /// # Errors
    /// [`OperationError::Truncated`] when the message is longer than `into`
    /// (which holds its beginning then); or the peer named is unknown, dead or
    /// unreachable.
    #[inline]
    pub fn receive(&self, source: Source, tags: TagMatch, into: &mut [u8]) -> Result<Status, OperationError> {
        receive(self, source, tags, &mut [IoSliceMut::new(into)])
    }

    /// Receives a message into several segments, one after the other.
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_segments(
        &self,
        source: Source,
        tags: TagMatch,
        segments: &mut [IoSliceMut<'_>],
    ) -> Result<Status, OperationError> {
        receive(self, source, tags, segments)
    }

    /// Receives a message that was taken by [`Endpoint::matched_probe`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_matched(&self, message: Message, into: &mut [u8]) -> Result<Status, OperationError> {
        receive_matched(self, message, &mut [IoSliceMut::new(into)])
    }

    /// Fills `into` from a region, from `offset` on, without the owner's help,
    /// and waits for it. The owner's address must have been inserted.
    ///
    /// # Errors
    /// The owner is unknown, dead or unreachable, or [`OperationError::Region`]:
    /// the region is destroyed, too short, protected or out of reach.
    pub fn get(&self, key: &RegionKey, offset: u64, into: &mut [u8]) -> Result<Status, OperationError> {
        get(self, key, offset, into)
    }

    /// Copies `from` into a region, from `offset` on, without the owner's help,
    /// and waits for it.
    ///
    /// # Errors
    /// As [`Endpoint::get`].
    pub fn put(&self, key: &RegionKey, offset: u64, from: &[u8]) -> Result<Status, OperationError> {
        put(self, key, offset, from)
    }
}

/// Lends slices for reading. The caller sees to it that the operation ends
/// before the borrow does.
#[inline]
fn lend(segments: &[IoSlice<'_>]) -> Result<Buffer, OperationError> {
    if let [one] = segments {
        // SAFETY: see `run` and `Scope`: the slice stays borrowed until the
        // operation is complete or the engine has given the buffer up.
        return Ok(unsafe { Buffer::of_one(Segment::of(one), buffer::Access::Read) });
    }
    let impossible = |e: buffer::BufferError| OperationError::System(e.to_string());
    let list: Vec<Segment> = segments.iter().map(|s| Segment::of(s)).collect();
    // SAFETY: as above, for each of the slices.
    unsafe { Buffer::new(&list, buffer::Access::Read) }.map_err(impossible)
}

/// Lends slices for writing; as [`lend`].
#[inline]
fn lend_mut(segments: &mut [IoSliceMut<'_>]) -> Result<Buffer, OperationError> {
    if let [one] = segments {
        // SAFETY: see `run` and `Scope`: the slice stays mutably borrowed
        // until the operation is complete or the buffer was given up.
        return Ok(unsafe { Buffer::of_one(Segment::of_mut(one), buffer::Access::Write) });
    }
    let impossible = |e: buffer::BufferError| OperationError::System(e.to_string());
    let list: Vec<Segment> = segments.iter_mut().map(|s| Segment::of_mut(s)).collect();
    // SAFETY: as above, for each of the slices.
    unsafe { Buffer::new(&list, buffer::Access::Write) }.map_err(impossible)
}

/// Sees to it that unwinding does not release a buffer in use.
struct Guard<'a, A: Access> {
    access: &'a A,
    request: RequestId,
}

impl<A: Access> Drop for Guard<'_, A> {
    fn drop(&mut self) {
        drain(self.access, std::iter::once(self.request));
    }
}

/// Waits for one operation; on the way out by a panic it is cancelled and
/// drained, so that the borrow ends after its use.
#[inline]
fn run<A: Access>(access: &A, request: RequestId) -> Result<Status, OperationError> {
    let guard = Guard { access, request };
    // A result is there only when the buffer is no longer in use; or in a
    // forked child, where nothing is in flight.
    let result = access.wait(Token::new(), request);
    std::mem::forget(guard);
    result
}

/// Cancels what is unmatched and waits for what is matched.
pub(crate) fn drain<A: Access>(access: &A, requests: impl Iterator<Item = RequestId> + Clone) {
    for request in requests.clone() {
        if access.with(Token::new(), |engine| engine.cancel(request)).is_err() {
            return; // A forked child: nothing is in flight here.
        }
    }
    for request in requests {
        // Its result does not matter any more, only that it is there.
        let _ended = access.wait(Token::new(), request);
    }
}

/// Waits for an operation that goes on.
#[inline]
fn finish<A: Access>(access: &A, started: Started) -> Result<Status, OperationError> {
    match started {
        Started::Done(status) => Ok(status),
        Started::Pending(request) => run(access, request),
    }
}

#[inline]
pub(crate) fn send<A: Access>(
    access: &A,
    to: PeerId,
    tag: u64,
    segments: &[IoSlice<'_>],
    options: impl Into<SendOptions>,
) -> Result<Status, OperationError> {
    finish(access, begin_send(access, to, tag, segments, options)?)
}

/// Sees to it that unwinding does not release a buffer into which a message has begun to come.
struct PollGuard<'a, A: Access> {
    access: &'a A,
    awaited: PolledReceive,
}

impl<A: Access> Drop for PollGuard<'_, A> {
    #[inline]
    fn drop(&mut self) {
        if let Some(request) = self.awaited.request() {
            drain(self.access, std::iter::once(request));
        }
    }
}

#[inline]
pub(crate) fn receive<A: Access>(
    access: &A,
    source: Source,
    tags: TagMatch,
    segments: &mut [IoSliceMut<'_>],
) -> Result<Status, OperationError> {
    let mut looking = PollGuard { access, awaited: PolledReceive::new(source, tags, lend_mut(segments)?) };
    if access.poll_before_posting(Token::new(), &mut looking.awaited)? {
        return Ok(looking.awaited.status());
    }
    finish(access, access.with(Token::new(), |engine| engine.start_polled_receive(&mut looking.awaited))?)
}

pub(crate) fn receive_matched<A: Access>(
    access: &A,
    message: Message,
    segments: &mut [IoSliceMut<'_>],
) -> Result<Status, OperationError> {
    run(access, begin_receive_matched(access, message, segments)?)
}

/// Begins a send whose slices the caller keeps borrowed until it is drained.
#[inline(always)] // The path of a short message.
pub(crate) fn begin_send<A: Access>(
    access: &A,
    to: PeerId,
    tag: u64,
    segments: &[IoSlice<'_>],
    options: impl Into<SendOptions>,
) -> Result<Started, OperationError> {
    let buffer = lend(segments)?;
    let bytes = buffer.total_bytes();
    match access.with(Token::new(), |engine| engine.start_send(to, tag, buffer, options))? {
        None => Ok(Started::Done(Status { peer: to, tag, bytes, immediate: None })),
        Some(request) => Ok(Started::Pending(request)),
    }
}

/// Begins a receive whose slices the caller keeps borrowed until it is drained.
#[inline]
pub(crate) fn begin_receive<A: Access>(
    access: &A,
    source: Source,
    tags: TagMatch,
    segments: &mut [IoSliceMut<'_>],
) -> Result<Started, OperationError> {
    let buffer = lend_mut(segments)?;
    access.with(Token::new(), |engine| engine.start_receive(source, tags, buffer))
}

/// As [`begin_receive`], for a message that was taken by a matched probe.
pub(crate) fn begin_receive_matched<A: Access>(
    access: &A,
    message: Message,
    segments: &mut [IoSliceMut<'_>],
) -> Result<RequestId, OperationError> {
    let buffer = lend_mut(segments)?;
    access.with(Token::new(), |engine| engine.receive_matched(message, buffer))
}

/// Declares slices that the caller keeps borrowed until it has destroyed the
/// region. That no peer is writing them then is the promise of whoever calls
/// [`crate::Scope::register_memory`].
pub(crate) fn register_memory<A: Access>(
    access: &A,
    segments: &mut [IoSliceMut<'_>],
    options: RegionOptions,
) -> Result<RegionKey, OperationError> {
    let buffer = lend_mut(segments)?;
    access.with(Token::new(), |engine| engine.register_region(buffer, options))
}

/// As [`register_memory`], for slices that nobody may write.
pub(crate) fn register_read_only<A: Access>(
    access: &A,
    segments: &[IoSlice<'_>],
    options: RegionOptions,
) -> Result<RegionKey, OperationError> {
    let buffer = lend(segments)?;
    access.with(Token::new(), |engine| engine.register_region(buffer, options))
}

/// Begins a get whose slices the caller keeps borrowed until it is drained.
pub(crate) fn begin_get<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    segments: &mut [IoSliceMut<'_>],
) -> Result<RequestId, OperationError> {
    let buffer = lend_mut(segments)?;
    access.with(Token::new(), |engine| engine.get(key, offset, buffer))
}

/// Begins a put whose slices the caller keeps borrowed until it is drained.
pub(crate) fn begin_put<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    segments: &[IoSlice<'_>],
) -> Result<RequestId, OperationError> {
    let buffer = lend(segments)?;
    access.with(Token::new(), |engine| engine.put(key, offset, buffer))
}

pub(crate) fn get<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    into: &mut [u8],
) -> Result<Status, OperationError> {
    run(access, begin_get(access, key, offset, &mut [IoSliceMut::new(into)])?)
}

pub(crate) fn put<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    from: &[u8],
) -> Result<Status, OperationError> {
    run(access, begin_put(access, key, offset, &[IoSlice::new(from)])?)
}

/// Copies out of a region of this endpoint, at once.
pub(crate) fn read_region<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    into: &mut [u8],
) -> Result<(), OperationError> {
    let buffer = lend_mut(&mut [IoSliceMut::new(into)])?;
    access.with(Token::new(), |engine| engine.read_region(key, offset, buffer))
}

/// Copies into a region of this endpoint, at once.
pub(crate) fn write_region<A: Access>(
    access: &A,
    key: &RegionKey,
    offset: u64,
    from: &[u8],
) -> Result<(), OperationError> {
    let buffer = lend(&[IoSlice::new(from)])?;
    access.with(Token::new(), |engine| engine.write_region(key, offset, buffer))
}
