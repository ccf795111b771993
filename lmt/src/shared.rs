//! [`SharedEndpoint`]: an endpoint behind a lock, and the thread that makes
//! progress for it.

use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_utils::Backoff;
use lmt_core::engine::{Engine, OperationError, RequestId, Status};
use lmt_core::region::{Protection, RegionKey};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::access::Access;
use crate::region::SharedRegion;
use crate::scope::{Scope, with_scope};
use crate::{Endpoint, PeerId, Source, TagMatch, lent};

/// The longest sleep of a progress thread.
const PROGRESS_NAP: Duration = Duration::from_millis(100);

/// A sleep up to this long need not be cut short.
const SHORT_NAP: Duration = Duration::from_millis(1);

/// An endpoint that several threads use, one operation at a time. Waiting does
/// not hold the lock.
///
/// ```
/// use lmt::{Endpoint, SharedEndpoint, Source, TagMatch};
///
/// let shared = SharedEndpoint::new(Endpoint::new()?);
/// let myself = shared.with_engine(|engine| {
///     let address = engine.address().clone();
///     engine.insert_peer(&address)
/// })?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| shared.send(myself, 3, b"from a thread"));
///     let mut text = [0; 13];
///     shared.receive(Source::Any, TagMatch::exactly(3), &mut text).map(|s| s.bytes)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SharedEndpoint {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Mutex<Locked>,
    /// How many threads of the application want the lock: the progress thread,
    /// which would take it again at once, lets them go first.
    wanting: AtomicU32,
}

struct Locked {
    engine: Engine,
    /// How many threads sleep in the wait descriptor for so long that new
    /// work must wake them.
    sleepers: u32,
}

/// The engine, locked. When it is let go while another thread sleeps, that one
/// is woken for what is left to do.
struct Held<'a>(MutexGuard<'a, Locked>);

impl Deref for Held<'_> {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        &self.0.engine
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.0.engine
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.sleepers > 0 {
            self.0.engine.hand_over();
        }
    }
}

impl SharedEndpoint {
    /// Puts an endpoint behind a lock.
    pub fn new(endpoint: Endpoint) -> Self {
        let locked = Locked { engine: endpoint.into_engine(), sleepers: 0 };
        Self { inner: Arc::new(Inner { engine: Mutex::new(locked), wanting: AtomicU32::new(0) }) }
    }

    // The engine keeps its invariants on a panic: none is thrown while one of
    // its tables is half changed. So a poisoned lock is taken all the same;
    // else a panic in one thread would hang the scopes of all others.
    fn lock_bare(&self) -> MutexGuard<'_, Locked> {
        // Relaxed: the counter only tells the progress thread to be polite.
        self.inner.wanting.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.engine.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.wanting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    fn lock(&self) -> Held<'_> {
        Held(self.lock_bare())
    }

    /// Calls `f` with the engine, for everything that is not offered here.
    pub fn with_engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        f(&mut self.lock())
    }

    /// Sends and waits; see [`Endpoint::send`].
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send(&self, to: PeerId, tag: u64, data: &[u8]) -> Result<Status, OperationError> {
        lent::send(self, to, tag, &[std::io::IoSlice::new(data)], lmt_core::engine::SendMode::Standard)
    }

    /// Receives and waits; see [`Endpoint::receive`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive(&self, source: Source, tags: TagMatch, into: &mut [u8]) -> Result<Status, OperationError> {
        lent::receive(self, source, tags, &mut [std::io::IoSliceMut::new(into)])
    }

    /// Allocates memory that peers map; see [`Endpoint::allocate_region`].
    ///
    /// # Errors
    /// As [`Endpoint::allocate_region`].
    pub fn allocate_region(
        &self,
        bytes: usize,
        protection: Protection,
    ) -> Result<SharedRegion<'_, Self>, OperationError> {
        SharedRegion::allocate(self, bytes, protection)
    }

    /// Gets from a region and waits; see [`Endpoint::get`].
    ///
    /// # Errors
    /// As [`Endpoint::get`].
    pub fn get(&self, key: &RegionKey, offset: u64, into: &mut [u8]) -> Result<Status, OperationError> {
        lent::get(self, key, offset, into)
    }

    /// Puts into a region and waits; see [`Endpoint::put`].
    ///
    /// # Errors
    /// As [`Endpoint::put`].
    pub fn put(&self, key: &RegionKey, offset: u64, from: &[u8]) -> Result<Status, OperationError> {
        lent::put(self, key, offset, from)
    }

    /// Opens a scope; see [`Endpoint::scope`].
    pub fn scope<'env, F, T>(&'env self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, Self>) -> T,
    {
        with_scope(self, body)
    }

    /// Starts a thread that makes progress for this endpoint while nobody else
    /// does, so that transfers advance under the application's computation. It
    /// sleeps when nothing is under way, and ends when the value is dropped.
    ///
    /// # Errors
    /// The system refuses the thread or a descriptor.
    pub fn start_progress_thread(&self) -> std::io::Result<ProgressThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (self.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("lmt-progress".into())
            // Relaxed: the flag carries no data; the join in drop orders all.
            .spawn(move || while !stopped.load(Ordering::Relaxed) && shared.work(PROGRESS_NAP).is_ok() {})?;
        Ok(ProgressThread { stop, shared: self.clone(), thread: Some(thread) })
    }

    /// Makes progress until nothing moves, then sleeps a moment.
    fn work(&self, at_most: Duration) -> Result<(), OperationError> {
        while self.lock_bare().engine.progress()? {
            // Relaxed: see `lock_bare`.
            while self.inner.wanting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
        }
        self.sleep(at_most)
    }

    /// Sleeps in the wait descriptor without holding the lock.
    fn sleep(&self, at_most: Duration) -> Result<(), OperationError> {
        let (limit, long, descriptor) = {
            let mut locked = self.lock_bare();
            if !locked.engine.prepare_to_sleep()? {
                return locked.engine.progress().map(|_| ());
            }
            let Ok(descriptor) = locked.engine.wait_descriptor().try_clone_to_owned() else {
                // No descriptor is left: a thread that yields works as well.
                locked.engine.woken();
                drop(locked);
                std::thread::yield_now();
                return Ok(());
            };
            let limit = locked.engine.sleep_limit().min(at_most);
            let long = u32::from(limit > SHORT_NAP);
            locked.sleepers += long;
            (limit, long, descriptor)
        };
        let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        let timeout = TimeSpec::from_duration(limit);
        // Interrupted or timed out, the next look finds out.
        let _ready = ppoll(&mut fds, Some(timeout), None);
        let mut locked = self.lock_bare();
        locked.sleepers -= long;
        locked.engine.woken();
        let moved = locked.engine.progress();
        // The bell is silent now, and others may have waited for it.
        drop(Held(locked));
        moved.map(|_| ())
    }
}

impl Access for SharedEndpoint {
    fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        f(&mut self.lock())
    }

    fn wait(&self, request: RequestId) -> Result<Status, OperationError> {
        let backoff = Backoff::new();
        loop {
            if let Some(result) = self.lock().test(request) {
                return result;
            }
            if backoff.is_completed() {
                self.sleep(Duration::from_millis(1))?;
            } else {
                backoff.snooze();
            }
        }
    }

    fn wait_any(&self, requests: &[RequestId]) -> Result<Option<usize>, OperationError> {
        while !requests.is_empty() {
            let mut engine = self.lock();
            if let Some(at) = requests.iter().position(|r| engine.is_done(*r)) {
                return Ok(Some(at));
            }
            if !engine.progress()? {
                drop(engine);
                self.sleep(Duration::from_millis(1))?;
            }
        }
        Ok(None)
    }
}

/// The thread of [`SharedEndpoint::start_progress_thread`].
pub struct ProgressThread {
    stop: Arc<AtomicBool>,
    shared: SharedEndpoint,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        // Relaxed: see the thread.
        self.stop.store(true, Ordering::Relaxed);
        self.shared.lock_bare().engine.ring_self();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook already.
            let _joined = thread.join();
        }
    }
}
