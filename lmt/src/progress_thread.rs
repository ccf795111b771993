//! The thread that makes progress for a [`SharedEndpoint`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::shared::SharedEndpoint;

/// The longest sleep of a progress thread.
const PROGRESS_SLEEP: Duration = Duration::from_millis(100);

impl SharedEndpoint {
    /// Starts a thread that makes progress for this endpoint while nobody else
    /// does, so that transfers advance under the application's computation. It
    /// sleeps when nothing is in flight, and ends when the value is dropped.
    ///
    /// # Errors
    /// The system refuses the thread or a descriptor.
    pub fn start_progress_thread(&self) -> std::io::Result<ProgressThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (self.clone(), Arc::clone(&stop));
        let thread =
            std::thread::Builder::new()
                .name("lmt-progress".into())
                // Relaxed: the flag carries no data; the join in drop orders all.
                .spawn(move || {
                    while !stopped.load(Ordering::Relaxed) && shared.lock().work(PROGRESS_SLEEP).is_ok() {}
                })?;
        Ok(ProgressThread { stop, shared: self.clone(), thread: Some(thread) })
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
        let woken = self.shared.lock().wake();
        let Some(thread) = self.thread.take() else { return };
        if woken.is_err() {
            // A forked child does not have the thread: there is nobody to join.
            std::mem::forget(thread);
            return;
        }
        // A panic in it has been reported by the panic hook already.
        let _joined = thread.join();
    }
}
