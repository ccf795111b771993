//! Operations that run side by side, with buffers that the borrow checker
//! keeps alive: as `std::thread::scope` does for threads.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;

use lmt_core::engine::{
    Message, OperationError, PeerId, RequestId, SendMode, SendOptions, Source, Started, Status, TagMatch,
};
use lmt_core::region::{Protection, RegionKey, RegionOptions};

use crate::access::{Access, Token};
use crate::lent;
use crate::open::{Open, Place};
use crate::region::Region;

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
    operations: Operations<'env, A>,
    declared: RefCell<HashSet<RegionKey>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The operations of a scope.
#[derive(Debug)]
struct Operations<'env, A: Access> {
    access: &'env A,
    open: RefCell<Open>,
}

/// An operation under way in a scope: small, because programs move it.
#[derive(Debug)]
#[must_use = "an operation that nobody waits for is cancelled at the end of the scope"]
pub struct Request<'scope, A: Access> {
    operations: &'scope Operations<'scope, A>,
    place: Place,
}

impl<A: Access> Drop for Request<'_, A> {
    fn drop(&mut self) {
        self.operations.open.borrow_mut().let_go(self.place);
    }
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
        lent::drain(self.access, open.ids());
        self.access.spares(Token::new()).give_back(open);
        let declared = std::mem::take(&mut *self.declared.borrow_mut());
        for key in declared {
            // Refused only in a forked child, which nobody reaches.
            let _destroyed = self.access.with(Token::new(), |engine| engine.destroy_region(&key));
        }
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
        Ok(self.track(lent::begin_send(self.operations.access, to, tag, segments, options)?))
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
        Ok(self.track(lent::begin_receive(self.operations.access, source, tags, segments)?))
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
        Ok(self.track(Started::Pending(lent::begin_receive_matched(
            self.operations.access,
            message,
            segments,
        )?)))
    }

    /// Declares memory, which peers that are given the key may get from or put
    /// into until the scope ends; see [`Region`]. For peers that only read there
    /// is [`Scope::declare_for_reading`], which is safe.
    ///
    /// ```compile_fail,E0133
    /// # let endpoint = lmt::Endpoint::new().unwrap();
    /// # let mut memory = [0; 8];
    /// endpoint.scope(|scope| {
    ///     scope.declare(&mut memory, lmt::Protection::READ_WRITE).unwrap();
    /// });
    /// ```
    ///
    /// # Safety
    /// When the scope ends, by whichever way, also by a panic, every put that
    /// any peer has begun into this memory must have completed. The owner knows that by
    /// messages: each peer that has the key sends one after its last put, and
    /// the owner receives it. Ending the scope lets no new put begin, but one
    /// that a peer is in the middle of goes on writing (see [`Region`]), to
    /// memory that is no longer borrowed. With [`Protection::READ`] no peer
    /// puts, and there is nothing to see to.
    ///
    /// # Errors
    /// As many regions are declared as there can be, or this is a forked child.
    #[allow(unsafe_code)] // Declares the contract; nothing unsafe is done here.
    pub unsafe fn declare(
        &'scope self,
        memory: &'env mut [u8],
        options: impl Into<RegionOptions>,
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(lent::declare(self.operations.access, &mut [IoSliceMut::new(memory)], options.into())?))
    }

    /// Declares several pieces of memory as one region.
    ///
    /// # Safety
    /// As [`Scope::declare`].
    ///
    /// # Errors
    /// As [`Scope::declare`].
    #[allow(unsafe_code)] // As `declare`.
    pub unsafe fn declare_segments(
        &'scope self,
        segments: &mut [IoSliceMut<'env>],
        options: impl Into<RegionOptions>,
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(lent::declare(self.operations.access, segments, options.into())?))
    }

    /// Declares memory that peers may only get from, and that this process
    /// goes on reading.
    ///
    /// # Errors
    /// As [`Scope::declare`].
    pub fn declare_for_reading(
        &'scope self,
        segments: &[IoSlice<'env>],
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(lent::declare_for_reading(self.operations.access, segments, Protection::READ.into())?))
    }

    /// As [`Scope::declare_for_reading`], for the first get that begins and no
    /// other (see [`RegionOptions::single_use`]).
    ///
    /// ```
    /// use std::io::IoSlice;
    ///
    /// let endpoint = lmt::Endpoint::new()?;
    /// let (memory, mut into) = (*b"once", [0; 4]);
    /// endpoint.scope(|scope| {
    ///     let region = scope.declare_for_one_reading(&[IoSlice::new(&memory)])?;
    ///     endpoint.get(&region.key(), 0, &mut into)?;
    ///     let again = endpoint.get(&region.key(), 0, &mut into);
    ///     assert_eq!(again, Err(lmt::OperationError::Region(lmt::RegionError::UsedUp)));
    ///     Ok::<(), lmt::OperationError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Scope::declare`].
    pub fn declare_for_one_reading(
        &'scope self,
        segments: &[IoSlice<'env>],
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(lent::declare_for_reading(
            self.operations.access,
            segments,
            Protection::READ.single_use(),
        )?))
    }

    fn keep(&'scope self, key: RegionKey) -> Region<'scope, A> {
        self.declared.borrow_mut().insert(key);
        Region::new(self.operations.access, &self.declared, key)
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
        Ok(self.track(Started::Pending(lent::begin_get(self.operations.access, key, offset, segments)?)))
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
        Ok(self.track(Started::Pending(lent::begin_put(self.operations.access, key, offset, segments)?)))
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

impl<A: Access> Request<'_, A> {
    /// The number of one that was not done when it was begun.
    fn id(&self) -> Option<RequestId> {
        self.operations.open.borrow().request(self.place)
    }

    /// Its result, if it was done when it was begun.
    #[inline]
    fn take_done(&self) -> Result<Status, Option<RequestId>> {
        self.operations.open.borrow_mut().take_done(self.place)
    }

    /// Its result is there: the scope need not wait for it.
    #[inline]
    fn closed(self) {
        self.operations.open.borrow_mut().close(self.place);
        std::mem::forget(self);
    }

    /// Waits until the operation is finished.
    ///
    /// # Errors
    /// What the operation ended with.
    #[inline]
    pub fn wait(self) -> Result<Status, OperationError> {
        let id = match self.take_done() {
            Ok(status) => {
                std::mem::forget(self);
                return Ok(status);
            }
            Err(id) => id.ok_or(OperationError::UnknownRequest)?,
        };
        let result = self.operations.access.wait(Token::new(), id);
        self.closed();
        result
    }

    /// The result if the operation is finished, else the request again.
    /// Makes progress once if it is not.
    ///
    /// # Errors
    /// The request itself, to be asked again.
    pub fn test(self) -> Result<Result<Status, OperationError>, Self> {
        let access = self.operations.access;
        let id = match self.take_done() {
            Ok(status) => return Ok(Ok(status)),
            Err(None) => return Ok(Err(OperationError::UnknownRequest)),
            Err(Some(id)) => id,
        };
        match access.with(Token::new(), |engine| Ok(engine.test(id))) {
            Ok(Some(result)) => {
                self.closed();
                Ok(result)
            }
            Ok(None) => {
                access.let_others_run_if_idle(Token::new());
                Err(self)
            }
            // A forked child: nothing is under way here.
            Err(error) => Ok(Err(error)),
        }
    }

    /// Takes the operation back if nothing has matched it yet, and waits for
    /// its end: [`OperationError::Cancelled`], or what it did instead.
    ///
    /// # Errors
    /// What the operation ended with.
    pub fn cancel(self) -> Result<Status, OperationError> {
        if let Some(id) = self.id() {
            self.operations.access.with(Token::new(), |engine| engine.cancel(id))?;
        }
        self.wait()
    }
}
