//! Operations that run side by side, with buffers that the borrow checker
//! keeps alive: as `std::thread::scope` does for threads.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;

use lmt_core::endpoint::{
    Message, OperationError, PeerId, SendMode, SendOptions, Source, Started, Status, TagMatch,
};
use lmt_core::region::RegionKey;

use crate::access::{Access, Token};
use crate::endpoint::Endpoint;
use crate::messages;
use crate::open::Open;
use crate::request::{Operations, Request};

/// A scope in which operations run. See [`crate::Endpoint::scope`].
///
/// Buffers must outlive the scope (`'env`), and the scope ends only when every
/// operation in it has: what is unmatched is cancelled, what is matched is
/// waited for. Forgetting a [`Request`] is harmless.
///
/// A buffer must not end while an operation may use it:
///
/// ```compile_fail,E0597
/// # let endpoint = lmt::Endpoint::new().unwrap();
/// # let peer = endpoint.insert_peer(&endpoint.address()).unwrap();
/// endpoint.scope(|scope| {
///     let buffer = vec![0; 8];
///     let request = scope.send(peer, 1, &buffer).unwrap();
/// });
/// ```
///
/// nor be used otherwise meanwhile:
///
/// ```compile_fail,E0506
/// # let endpoint = lmt::Endpoint::new().unwrap();
/// let mut buffer = [0; 8];
/// endpoint.scope(|scope| {
///     let request = scope.receive(lmt::Source::Any, lmt::TagMatch::any(), &mut buffer).unwrap();
///     buffer[0] = 1;
///     request.wait().unwrap();
/// });
/// ```
///
/// and no request leaves its scope:
///
/// ```compile_fail,E0521
/// # let endpoint = lmt::Endpoint::new().unwrap();
/// # let peer = endpoint.insert_peer(&endpoint.address()).unwrap();
/// let mut kept = None;
/// endpoint.scope(|scope| kept = Some(scope.send(peer, 1, b"static").unwrap()));
/// ```
pub struct Scope<'scope, 'env: 'scope, A: Access> {
    pub(crate) operations: Operations<'env, A>,
    pub(crate) declared: RefCell<HashSet<RegionKey>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Drains a scope when it is left, by whichever way.
struct Leave<'a, A: Access> {
    access: &'a A,
    open: &'a RefCell<Open>,
    declared: &'a RefCell<HashSet<RegionKey>>,
}

impl<A: Access> Drop for Leave<'_, A> {
    fn drop(&mut self) {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        messages::drain(self.access, open.ids());
        self.access.spares(Token::new()).give_back(open);
        let declared = std::mem::take(&mut *self.declared.borrow_mut());
        for key in declared {
            // Refused only in a forked child, which nobody reaches.
            let _destroyed = self.access.with(Token::new(), |engine| engine.destroy_region(&key));
        }
    }
}

impl Endpoint {
    /// Opens a scope for operations that run side by side. Buffers are
    /// borrowed until the scope ends; leaving it, also by a panic, cancels what
    /// is unmatched and waits for what is matched.
    ///
    /// ```
    /// use lmt::{Endpoint, Source, TagMatch};
    ///
    /// let endpoint = Endpoint::new()?;
    /// let myself = endpoint.insert_peer(&endpoint.address())?;
    /// let mut into = vec![0; 1 << 20];
    /// endpoint.scope(|scope| {
    ///     let receive = scope.receive(Source::Peer(myself), TagMatch::any(), &mut into)?;
    ///     let send = scope.send(myself, 1, &[7; 1 << 20])?;
    ///     receive.wait()?;
    ///     send.wait()
    /// })?;
    /// assert!(into.iter().all(|byte| *byte == 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, F, T>(&'env self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, Self>) -> T,
    {
        with_scope(self, body)
    }
}

pub(crate) fn with_scope<'env, A, F, T>(access: &'env A, body: F) -> T
where
    A: Access,
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, A>) -> T,
{
    let open = RefCell::new(access.spares(Token::new()).take());
    let declared = RefCell::new(HashSet::new());
    let operations = Operations { access, open };
    let scope = Scope { operations, declared, scope: PhantomData, env: PhantomData };
    let _leave = Leave { access, open: &scope.operations.open, declared: &scope.declared };
    body(&scope)
}

impl<'scope, 'env, A: Access> Scope<'scope, 'env, A> {
    #[inline]
    fn track(&'scope self, started: Started) -> Request<'scope, A> {
        let place = self.operations.open.borrow_mut().enter(started);
        Request { operations: &self.operations, place }
    }

    /// Begins a send; `data` is borrowed until the scope ends.
    ///
    /// # Errors
    /// The peer is unknown or dead, or too much waits for it
    /// ([`OperationError::WouldBlock`]).
    pub fn send(
        &'scope self,
        to: PeerId,
        tag: u64,
        data: &'env [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        self.send_segments(to, tag, &[IoSlice::new(data)], SendMode::Standard)
    }

    /// Begins a send that is finished when a receive has matched it.
    ///
    /// # Errors
    /// As [`Scope::send`].
    pub fn send_synchronous(
        &'scope self,
        to: PeerId,
        tag: u64,
        data: &'env [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        self.send_segments(to, tag, &[IoSlice::new(data)], SendMode::Synchronous)
    }

    /// Begins a send of which more is said: when it is finished, and hints that
    /// help to choose the way.
    ///
    /// ```
    /// use lmt::{Endpoint, Hints, SendMode, SendOptions, Source, TagMatch, Warmth};
    ///
    /// let endpoint = Endpoint::new()?;
    /// let myself = endpoint.insert_peer(&endpoint.address())?;
    /// let (data, mut into) = ([7; 100], [0; 100]);
    /// endpoint.scope(|scope| {
    ///     let receive = scope.receive(Source::Any, TagMatch::any(), &mut into)?;
    ///     let hints = Hints { warmth: Warmth::Warm, ..Hints::default() };
    ///     let options = SendOptions { mode: SendMode::Synchronous, hints };
    ///     scope.send_with(myself, 1, &data, options)?.wait()?;
    ///     receive.wait()
    /// })?;
    /// assert_eq!(data, into);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Scope::send`].
    pub fn send_with(
        &'scope self,
        to: PeerId,
        tag: u64,
        data: &'env [u8],
        options: impl Into<SendOptions>,
    ) -> Result<Request<'scope, A>, OperationError> {
        self.send_segments(to, tag, &[IoSlice::new(data)], options)
    }

    /// Begins a send of several segments as one message.
    ///
    /// # Errors
    /// As [`Scope::send`].
    pub fn send_segments(
        &'scope self,
        to: PeerId,
        tag: u64,
        segments: &[IoSlice<'env>],
        options: impl Into<SendOptions>,
    ) -> Result<Request<'scope, A>, OperationError> {
        Ok(self.track(messages::begin_send(self.operations.access, to, tag, segments, options)?))
    }

    /// Begins a receive; `into` is borrowed until the scope ends.
    ///
    /// # Errors
    /// The peer that is named is unknown or dead.
    pub fn receive(
        &'scope self,
        source: Source,
        tags: TagMatch,
        into: &'env mut [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        self.receive_segments(source, tags, &mut [IoSliceMut::new(into)])
    }

    /// Begins a receive into several segments.
    ///
    /// # Errors
    /// As [`Scope::receive`].
    pub fn receive_segments(
        &'scope self,
        source: Source,
        tags: TagMatch,
        segments: &mut [IoSliceMut<'env>],
    ) -> Result<Request<'scope, A>, OperationError> {
        Ok(self.track(messages::begin_receive(self.operations.access, source, tags, segments)?))
    }

    /// Begins to receive a message that a matched probe took.
    ///
    /// # Errors
    /// As [`Scope::receive`].
    pub fn receive_matched(
        &'scope self,
        message: Message,
        into: &'env mut [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        let segments = &mut [IoSliceMut::new(into)];
        Ok(self.track(Started::Pending(messages::begin_receive_matched(
            self.operations.access,
            message,
            segments,
        )?)))
    }

    /// Begins to fill `into` from a region, from `offset` on, without the
    /// owner's help. The owner's address must have been inserted.
    ///
    /// # Errors
    /// The owner is unknown or dead. That the region is destroyed, too short,
    /// protected or out of reach is the request's result.
    pub fn get(
        &'scope self,
        key: &RegionKey,
        offset: u64,
        into: &'env mut [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        self.get_segments(key, offset, &mut [IoSliceMut::new(into)])
    }

    /// Begins a get into several segments, one after the other.
    ///
    /// # Errors
    /// As [`Scope::get`].
    pub fn get_segments(
        &'scope self,
        key: &RegionKey,
        offset: u64,
        segments: &mut [IoSliceMut<'env>],
    ) -> Result<Request<'scope, A>, OperationError> {
        Ok(self.track(Started::Pending(messages::begin_get(self.operations.access, key, offset, segments)?)))
    }

    /// Begins to copy `from` into a region, from `offset` on, without the
    /// owner's help. When the request is finished the bytes are there, and a
    /// message sent after it finds them.
    ///
    /// # Errors
    /// As [`Scope::get`].
    pub fn put(
        &'scope self,
        key: &RegionKey,
        offset: u64,
        from: &'env [u8],
    ) -> Result<Request<'scope, A>, OperationError> {
        self.put_segments(key, offset, &[IoSlice::new(from)])
    }

    /// Begins a put of several segments, one after the other.
    ///
    /// # Errors
    /// As [`Scope::get`].
    pub fn put_segments(
        &'scope self,
        key: &RegionKey,
        offset: u64,
        segments: &[IoSlice<'env>],
    ) -> Result<Request<'scope, A>, OperationError> {
        Ok(self.track(Started::Pending(messages::begin_put(self.operations.access, key, offset, segments)?)))
    }

    /// Waits for any of `requests`: the one that is finished is taken out of
    /// the list, with its place in it and its result. `None` when the list is
    /// empty. In a forked child one that was done before is taken out, else the first one, with
    /// [`OperationError::Forked`].
    pub fn wait_any(
        &'scope self,
        requests: &mut Vec<Request<'scope, A>>,
    ) -> Option<(usize, Result<Status, OperationError>)> {
        if let Some(at) = requests.iter().position(|request| request.id().is_none()) {
            return Some((at, requests.remove(at).wait()));
        }
        let ids = requests.iter().filter_map(Request::id);
        match self.operations.access.wait_any(Token::new(), ids) {
            Ok(Some(at)) => Some((at, requests.remove(at).wait())),
            Ok(None) => None,
            Err(error) => {
                // Taken out like a finished one, so that who asks until the
                // list is empty comes to an end. The scope still knows it.
                let _given_up = requests.remove(0);
                Some((0, Err(error)))
            }
        }
    }

    /// Waits for all of `requests`; their results in the same order.
    pub fn wait_all(&'scope self, requests: Vec<Request<'scope, A>>) -> Vec<Result<Status, OperationError>> {
        requests.into_iter().map(Request::wait).collect()
    }
}
