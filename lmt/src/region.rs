//! Declared memory: what peers may get from and put into without the owner's
//! help (knem-jpdc2013, sections 3.2 and 3.4).

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{IoSlice, IoSliceMut};

use lmt_core::endpoint::OperationError;
use lmt_core::region::{Protection, RegionKey, RegionOptions};

use crate::access::{Access, Token};
use crate::endpoint::Endpoint;
use crate::messages;
use crate::scope::Scope;

/// The application's memory, declared in a scope until the scope ends: for peers
/// that read it by [`crate::Scope::register_read_only`], for peers that write
/// it by [`crate::Scope::register_memory`], which is unsafe.
///
/// Its [`Region::key`] goes to peers as bytes, and they get and put by it. Only
/// a mechanism that reaches this process's own memory carries that; where none
/// does, they are told [`crate::RegionError::Unreachable`], and a
/// [`SharedRegion`] is the answer.
///
/// With [`crate::Protection::single_use`] it serves the first get or put that
/// begins, and none after ([`crate::RegionError::UsedUp`]).
///
/// # When peers are done
/// When the scope has ended no copy begins any more. One that a peer is just
/// making goes on for the length of a system call (at most
/// [`crate::Config::quota_bytes`]): nobody can call it back. So the owner must
/// know that peers are done before the scope ends, as every RMA program does:
/// let them send a message after their last get or put, and receive it here.
/// A get that comes too late finds other bytes than it should. A put that comes
/// too late writes memory that is somebody else's by then, which is why
/// declaring memory for writing is unsafe.
///
/// ```
/// use std::io::IoSlice;
///
/// use lmt::{Endpoint, RegionKey, Source, TagMatch};
///
/// let (owner, peer) = (Endpoint::new()?, Endpoint::new()?);
/// let (here, there) = (owner.address(), peer.address());
/// let result = std::thread::scope(|threads| {
///     let reader = threads.spawn(move || -> Result<Vec<u8>, lmt::OperationError> {
///         let from = peer.insert_peer(&here)?;
///         let mut key = [0; RegionKey::BYTES];
///         peer.receive(Source::Peer(from), TagMatch::any(), &mut key)?;
///         let mut part = vec![0; 4];
///         peer.get(&RegionKey::from_bytes(key), 2, &mut part)?;
///         peer.send(from, 0, b"done")?;
///         Ok(part)
///     });
///     let to = owner.insert_peer(&there)?;
///     let memory = *b"declared";
///     let mut done = [0; 4];
///     owner.scope(|scope| {
///         let region = scope.register_read_only(&[IoSlice::new(&memory)])?;
///         owner.send(to, 0, &region.key().to_bytes())?;
///         // The peer says that it is done before the scope ends.
///         owner.receive(Source::Peer(to), TagMatch::any(), &mut done)
///     })?;
///     reader.join().expect("the reader does not panic")
/// });
/// // Where no mechanism reaches private memory, the error says so.
/// match result {
///     Ok(part) => assert_eq!(part, b"clar"),
///     Err(error) => assert!(error.to_string().contains("no mechanism"), "{error}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Region<'scope, A: Access> {
    access: &'scope A,
    declared: &'scope RefCell<HashSet<RegionKey>>,
    key: RegionKey,
}

impl<'scope, 'env, A: Access> Scope<'scope, 'env, A> {
    /// Declares memory, which peers that are given the key may get from or put
    /// into until the scope ends; see [`Region`]. For peers that only read there
    /// is [`Scope::register_read_only`], which is safe.
    ///
    /// ```compile_fail,E0133
    /// # let endpoint = lmt::Endpoint::new().unwrap();
    /// # let mut memory = [0; 8];
    /// endpoint.scope(|scope| {
    ///     scope.register_memory(&mut memory, lmt::Protection::READ_WRITE).unwrap();
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
    pub unsafe fn register_memory(
        &'scope self,
        memory: &'env mut [u8],
        options: impl Into<RegionOptions>,
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(messages::register_memory(
            self.operations.access,
            &mut [IoSliceMut::new(memory)],
            options.into(),
        )?))
    }

    /// Declares several pieces of memory as one region.
    ///
    /// # Safety
    /// As [`Scope::register_memory`].
    ///
    /// # Errors
    /// As [`Scope::register_memory`].
    #[allow(unsafe_code)] // As `register_memory`.
    pub unsafe fn register_segments(
        &'scope self,
        segments: &mut [IoSliceMut<'env>],
        options: impl Into<RegionOptions>,
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(messages::register_memory(self.operations.access, segments, options.into())?))
    }

    /// Declares memory that peers may only get from, and that this process
    /// goes on reading.
    ///
    /// # Errors
    /// As [`Scope::register_memory`].
    pub fn register_read_only(
        &'scope self,
        segments: &[IoSlice<'env>],
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(messages::register_read_only(
            self.operations.access,
            segments,
            Protection::READ.into(),
        )?))
    }

    /// As [`Scope::register_read_only`], for the first get that begins and no
    /// other (see [`RegionOptions::single_use`]).
    ///
    /// ```
    /// use std::io::IoSlice;
    ///
    /// let endpoint = lmt::Endpoint::new()?;
    /// let (memory, mut into) = (*b"once", [0; 4]);
    /// endpoint.scope(|scope| {
    ///     let region = scope.register_for_one_read(&[IoSlice::new(&memory)])?;
    ///     endpoint.get(&region.key(), 0, &mut into)?;
    ///     let again = endpoint.get(&region.key(), 0, &mut into);
    ///     assert_eq!(again, Err(lmt::OperationError::Region(lmt::RegionError::UsedUp)));
    ///     Ok::<(), lmt::OperationError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Scope::register_memory`].
    pub fn register_for_one_read(
        &'scope self,
        segments: &[IoSlice<'env>],
    ) -> Result<Region<'scope, A>, OperationError> {
        Ok(self.keep(messages::register_read_only(
            self.operations.access,
            segments,
            Protection::READ.single_use(),
        )?))
    }

    fn keep(&'scope self, key: RegionKey) -> Region<'scope, A> {
        self.declared.borrow_mut().insert(key);
        Region::new(self.operations.access, &self.declared, key)
    }
}

impl<'scope, A: Access> Region<'scope, A> {
    pub(crate) fn new(
        access: &'scope A,
        declared: &'scope RefCell<HashSet<RegionKey>>,
        key: RegionKey,
    ) -> Self {
        Self { access, declared, key }
    }

    /// The region's name, for peers.
    pub const fn key(&self) -> RegionKey {
        self.key
    }

    /// Its length in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.key.total_bytes()
    }

    /// Copies out of the region, from `offset` on: it is borrowed, so this is
    /// how its owner looks at it meanwhile.
    ///
    /// # Errors
    /// The range leaves the region, or this is a forked child.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), OperationError> {
        messages::read_region(self.access, &self.key, offset, into)
    }

    /// Copies into the region, from `offset` on.
    ///
    /// # Errors
    /// The range leaves the region, it was lent for reading only, or this is a
    /// forked child.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), OperationError> {
        messages::write_region(self.access, &self.key, offset, from)
    }

    /// Takes the region back before the scope ends.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn destroy(self) -> Result<(), OperationError> {
        self.access.with(Token::new(), |engine| engine.destroy_region(&self.key))?;
        self.declared.borrow_mut().remove(&self.key);
        Ok(())
    }
}

/// Memory that was allocated to be shared: peers map it, so it is reachable
/// without any mechanism. Destroyed when dropped.
///
/// All access is by copies ([`SharedRegion::read_at`],
/// [`SharedRegion::write_at`]), since peers may change the bytes at any time.
/// What they find is in order when messages are: a put is there when its
/// request is finished, and a message sent after it finds it.
///
/// ```
/// use lmt::{Endpoint, Protection};
///
/// let endpoint = Endpoint::new()?;
/// let region = endpoint.allocate_region(1 << 20, Protection::READ_WRITE)?;
/// region.write_at(100, b"shared")?;
/// // A peer does the same with the key's bytes; so does the owner itself.
/// let mut text = [0; 6];
/// endpoint.get(&region.key(), 100, &mut text)?;
/// assert_eq!(&text, b"shared");
/// let too_far = endpoint.put(&region.key(), (1 << 20) - 1, b"ab");
/// assert!(matches!(too_far, Err(lmt::OperationError::Region(lmt::RegionError::OutOfBounds { .. }))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedRegion<'a, A: Access> {
    access: &'a A,
    key: RegionKey,
}

impl Endpoint {
    /// Allocates zeroed memory that peers map, and registers it, with a
    /// [`crate::Protection`] for many uses or [`crate::Protection::single_use`].
    /// It is destroyed when the value is dropped.
    ///
    /// # Errors
    /// Memory is short, as many regions are declared as there can be, or this
    /// is a forked child.
    pub fn allocate_region(
        &self,
        bytes: usize,
        options: impl Into<RegionOptions>,
    ) -> Result<SharedRegion<'_, Self>, OperationError> {
        SharedRegion::allocate(self, bytes, options.into())
    }
}

impl<'a, A: Access> SharedRegion<'a, A> {
    pub(crate) fn allocate(
        access: &'a A,
        bytes: usize,
        options: RegionOptions,
    ) -> Result<Self, OperationError> {
        let key = access.with(Token::new(), |engine| engine.allocate_region(bytes, options))?;
        Ok(Self { access, key })
    }

    /// The region's name, for peers.
    pub const fn key(&self) -> RegionKey {
        self.key
    }

    /// Its length in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.key.total_bytes()
    }

    /// Copies out of the region, from `offset` on.
    ///
    /// # Errors
    /// The range leaves the region, or this is a forked child.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), OperationError> {
        messages::read_region(self.access, &self.key, offset, into)
    }

    /// Copies into the region, from `offset` on.
    ///
    /// # Errors
    /// The range leaves the region, or this is a forked child.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), OperationError> {
        messages::write_region(self.access, &self.key, offset, from)
    }
}

impl<A: Access> Drop for SharedRegion<'_, A> {
    fn drop(&mut self) {
        // Refused only in a forked child, which has no part of it.
        let _destroyed = self.access.with(Token::new(), |engine| engine.destroy_region(&self.key));
    }
}
