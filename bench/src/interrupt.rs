//! Ctrl-C as a request rather than an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

use crate::ending::REQUESTS;
use crate::error::BenchError;
use crate::own_folder;

/// Whether this process was asked to end.
#[derive(Clone, Debug)]
pub struct Interrupt {
    /// The signal, or 0.
    signal: Arc<AtomicI32>,
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP are requests; a second one ends
    /// this process at once. Processes that are started inherit the signals
    /// blocked: those of MPIs are left alone by Ctrl-C, which reaches a whole group;
    /// ranks of ours wait for them ([`crate::ending`]).
    ///
    /// # Errors
    /// The signals cannot be blocked.
    pub fn watch() -> Result<Self, BenchError> {
        let set = SigSet::from_iter(REQUESTS);
        let failed = |what: &dyn std::fmt::Display| {
            BenchError::Failure(format!("the signals that end this command cannot be waited for: {what}"))
        };
        set.thread_block().map_err(|errno| failed(&errno))?;
        let interrupt = Self { signal: Arc::new(AtomicI32::new(0)) };
        let watched = interrupt.clone();
        let watch = move || {
            while let Ok(signal) = set.wait() {
                // Relaxed: the number is all that is told.
                if watched.signal.swap(signal as i32, Ordering::Relaxed) != 0 {
                    own_folder::remove_all();
                    std::process::exit(128 + signal as i32);
                }
            }
        };
        thread::Builder::new().spawn(watch).map(drop).map_err(|error| failed(&error))?;
        Ok(interrupt)
    }

    /// Signals end this process as ever, and nothing is a request.
    pub fn never() -> Self {
        Self { signal: Arc::new(AtomicI32::new(0)) }
    }

    /// As if this signal had come.
    #[cfg(test)]
    pub(crate) fn came(signal: Signal) -> Self {
        Self { signal: Arc::new(AtomicI32::new(signal as i32)) }
    }

    /// Nothing, unless a signal has come: then the end of what it interrupts.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`]: one came.
    pub fn check(&self) -> Result<(), BenchError> {
        let Some(signal) = self.signal() else { return Ok(()) };
        let sentence = "it was interrupted; what has been shown until then holds".to_owned();
        Err(BenchError::Interrupted { signal: signal as u8, sentence })
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<Signal> {
        // Relaxed: nothing else is read because of it.
        Signal::try_from(self.signal.load(Ordering::Relaxed)).ok()
    }
}
