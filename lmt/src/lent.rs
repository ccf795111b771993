//! Where borrowed slices become buffers of the engine, and the proof that they
//! outlive their use.
#![allow(unsafe_code)] // Buffer::new is the unsafe step.

use std::io::{IoSlice, IoSliceMut};

use lmt_core::buffer::{self, Buffer, Segment};
use lmt_core::engine::{
    Awaited, Message, OperationError, PeerId, RequestId, SendOptions, Source, Started, Status, TagMatch,
};
use lmt_core::region::{RegionKey, RegionOptions};

use crate::access::{Access, Token};

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
    // forked child, where nothing is under way.
    let result = access.wait(Token::new(), request);
    std::mem::forget(guard);
    result
}

/// Cancels what is unmatched and waits for what is matched.
pub(crate) fn drain<A: Access>(access: &A, requests: impl Iterator<Item = RequestId> + Clone) {
    for request in requests.clone() {
        if access.with(Token::new(), |engine| engine.cancel(request)).is_err() {
            return; // A forked child: nothing is under way here.
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

#[inline]
pub(crate) fn receive<A: Access>(
    access: &A,
    source: Source,
    tags: TagMatch,
    segments: &mut [IoSliceMut<'_>],
) -> Result<Status, OperationError> {
    let mut looking = Looking { access, awaited: Awaited::new(source, tags, lend_mut(segments)?) };
    if access.look_for(Token::new(), &mut looking.awaited)? {
        return Ok(looking.awaited.status());
    }
    finish(access, access.with(Token::new(), |engine| engine.receive_awaited(&mut looking.awaited))?)
}

/// Sees to it that unwinding does not release a buffer into which a message has begun to come.
struct Looking<'a, A: Access> {
    access: &'a A,
    awaited: Awaited,
}

impl<A: Access> Drop for Looking<'_, A> {
    #[inline]
    fn drop(&mut self) {
        if let Some(request) = self.awaited.request() {
            drain(self.access, std::iter::once(request));
        }
    }
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
/// [`crate::Scope::declare`].
pub(crate) fn declare<A: Access>(
    access: &A,
    segments: &mut [IoSliceMut<'_>],
    options: RegionOptions,
) -> Result<RegionKey, OperationError> {
    let buffer = lend_mut(segments)?;
    access.with(Token::new(), |engine| engine.declare_region(buffer, options))
}

/// As [`declare`], for slices that nobody may write.
pub(crate) fn declare_for_reading<A: Access>(
    access: &A,
    segments: &[IoSlice<'_>],
    options: RegionOptions,
) -> Result<RegionKey, OperationError> {
    let buffer = lend(segments)?;
    access.with(Token::new(), |engine| engine.declare_region(buffer, options))
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
