//! [`SharedEndpoint`]: an endpoint behind a lock, and the thread that makes
//! progress for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lmt_core::engine::{Engine, OperationError, RequestId, Status};
use lmt_core::region::{Protection, RegionKey};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::access::Access;
use crate::region::SharedRegion;
use crate::scope::{Scope, with_scope};
use crate::{Endpoint, PeerId, Source, TagMatch, lent};

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
    engine: Arc<Mutex<Engine>>,
}

impl SharedEndpoint {
    /// Puts an endpoint behind a lock.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { engine: Arc::new(Mutex::new(endpoint.into_engine())) }
    }

    // The engine keeps its invariants on a panic: none is thrown while one of
    // its tables is half changed. So a poisoned lock is taken all the same;
    // else a panic in one thread would hang the scopes of all others.
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
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
            .spawn(move || while !stopped.load(Ordering::Relaxed) && shared.work().is_ok() {})?;
        Ok(ProgressThread { stop, thread: Some(thread) })
    }

    /// Makes progress until nothing moves, then sleeps a moment.
    fn work(&self) -> Result<(), OperationError> {
        while self.lock().progress()? {}
        self.sleep(Duration::from_millis(100))
    }

    /// Sleeps in the wait descriptor without holding the lock.
    fn sleep(&self, at_most: Duration) -> Result<(), OperationError> {
        let (limit, descriptor) = {
            let mut engine = self.lock();
            if !engine.prepare_to_sleep()? {
                return engine.progress().map(|_| ());
            }
            let descriptor = engine.wait_descriptor().try_clone_to_owned();
            (engine.sleep_limit().min(at_most), descriptor)
        };
        if let Ok(descriptor) = descriptor {
            use std::os::fd::AsFd;
            let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
            // Interrupted or timed out, the next look finds out.
            let _ready = poll(&mut fds, timeout);
        }
        let mut engine = self.lock();
        engine.woken();
        engine.progress().map(|_| ())
    }
}

impl Access for SharedEndpoint {
    fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        f(&mut self.lock())
    }

    fn wait(&self, request: RequestId) -> Result<Status, OperationError> {
        let mut looks = 0;
        loop {
            if let Some(result) = self.lock().test(request) {
                return result;
            }
            looks += 1;
            match looks {
                0..100 => std::hint::spin_loop(),
                100..120 => std::thread::yield_now(),
                _ => self.sleep(Duration::from_millis(1))?,
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
#[derive(Debug)]
pub struct ProgressThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        // Relaxed: see the thread.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook already.
            let _joined = thread.join();
        }
    }
}
