//! The copy engine that the crate's mechanisms use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lmt_core::config_key::{Key, Value};
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::fork_guard::Origin;
use lmt_core::mechanism::{Needs, Unavailable};

use super::core::{Core, gone};
use super::device::DeviceQueue;
use super::queue::WorkQueue;
use super::{Config, Counters};
use crate::backoff::WaitBackoff;
use crate::engine::{CopyEngine, CopyFailure, Progress, Reach, State, SubmitError};
use crate::places::CopyList;

/// How a work queue is opened.
pub type Open<Q> = Box<dyn FnMut() -> Result<Q, Unavailable> + Send>;

/// A copy engine that gives its copies to a work queue as descriptors, and
/// finishes by the CPU what the queue leaves: pages that were not there, what
/// did not fit, what was refused.
///
/// ```
/// use lmt_ioat::{dsa::{Config, DsaEngine}, engine::CopyEngine};
/// let mut engine = DsaEngine::new(Config::default());
/// match engine.available() {
///     Ok(()) => println!("copies go to the DSA"),
///     Err(why) => println!("no DSA: {why}"),
/// }
/// ```
pub struct DsaEngine<Q: WorkQueue = DeviceQueue> {
    open: Open<Q>,
    config: Config,
    shared: Option<Arc<Shared<Q>>>,
    /// Why the device that was opened is of no use. It is not asked again: that
    /// would cost a wait in every greeting.
    refused: Option<Unavailable>,
}

/// What the engine and its jobs have in common.
struct Shared<Q: WorkQueue> {
    /// A forked child has the lock in whatever state it was, and completion
    /// records that nobody writes: it leaves both alone.
    origin: Origin,
    core: Mutex<Core<Q>>,
}

impl<Q: WorkQueue> Shared<Q> {
    /// The core, unless this is a forked child.
    fn core(&self) -> Option<MutexGuard<'_, Core<Q>>> {
        let here = self.origin.is_this_process();
        here.then(|| self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DsaEngine {
    /// An engine over the first work queue of this machine that answers; it
    /// opens nothing before it is used.
    pub fn new(config: Config) -> Self {
        Self::over(Box::new(DeviceQueue::open), config)
    }
}

impl<Q: WorkQueue> DsaEngine<Q> {
    /// An engine over the queue that `open` opens.
    pub fn over(open: Open<Q>, config: Config) -> Self {
        Self { open, config, shared: None, refused: None }
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let core = self.shared.as_ref().and_then(|shared| shared.core());
        core.map_or_else(Counters::default, |core| core.counters)
    }

    /// The shared state, opened now if it is not yet.
    fn shared(&mut self) -> Result<&Arc<Shared<Q>>, Unavailable> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let shared = match self.shared.take() {
            Some(shared) => shared,
            None => {
                let queue = (self.open)()?;
                let mut core = Core::new(queue, self.config.clone())
                    .map_err(|short| Unavailable { errno: libc::ENOMEM, sentence: short.to_string() })?;
                if let Err((errno, sentence)) = core.try_device() {
                    if !core.is_quiescent() {
                        // The device may still write its answer there.
                        std::mem::forget(core);
                    }
                    return Err(self.refused.insert(Unavailable { errno, sentence }).clone());
                }
                Arc::new(Shared { origin: Origin::here(), core: Mutex::new(core) })
            }
        };
        Ok(self.shared.insert(shared))
    }
}

impl<Q: WorkQueue> CopyEngine for DsaEngine<Q> {
    type Job = DsaJob<Q>;

    fn name(&self) -> &'static str {
        "dsa"
    }

    fn needs(&self) -> Needs {
        Needs::Device
    }

    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        super::diagnostics::diagnostics(host)
    }

    fn keys(&self) -> &'static [Key] {
        super::KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.config.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        if self.shared.is_some() {
            return Err(format!("{key} cannot change once the device is in use; set it before"));
        }
        self.config.set(key, value)
    }

    fn available(&mut self) -> Result<(), Unavailable> {
        let shared = self.shared()?;
        let Some(core) = shared.core() else { return Err(child()) };
        match &core.given_up {
            Some(why) => Err(Unavailable { errno: 0, sentence: format!("the DSA was given up: {why}") }),
            None => Ok(()),
        }
    }

    fn reach(&self) -> Reach {
        Reach { mapped: true, ..Reach::default() }
    }

    fn submit(&mut self, list: CopyList) -> Result<DsaJob<Q>, SubmitError> {
        if !self.reach().holds(&list) {
            return Err(SubmitError::OutOfReach);
        }
        let shared = self.shared()?;
        let mut core = shared.core().ok_or_else(child)?;
        let id = core.take(&list).ok_or(SubmitError::OutOfReach)?;
        Ok(DsaJob {
            shared: Some(Arc::clone(shared)),
            id,
            last: Progress { bytes: 0, state: State::Running },
        })
    }

    fn poll(&mut self, job: &mut DsaJob<Q>) -> Progress {
        job.look(|core, id| core.poll(id))
    }

    fn cancel(&mut self, job: &mut DsaJob<Q>) {
        if let Some(mut core) = job.shared.as_ref().and_then(|shared| shared.core()) {
            core.cancel(job.id);
        }
    }

    fn quiesce(&mut self, mut job: DsaJob<Q>) -> Progress {
        job.end();
        job.last
    }
}

impl<Q: WorkQueue> Drop for DsaEngine<Q> {
    fn drop(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut backoff = WaitBackoff::default();
        while shared.core().is_some_and(|mut core| !core.try_end()) {
            backoff.pause();
        }
    }
}

impl<Q: WorkQueue> std::fmt::Debug for DsaEngine<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DsaEngine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A list that a [`DsaEngine`] has taken.
pub struct DsaJob<Q: WorkQueue> {
    /// None once it has ended and that has been told.
    shared: Option<Arc<Shared<Q>>>,
    id: usize,
    last: Progress,
}

impl<Q: WorkQueue> DsaJob<Q> {
    fn look(&mut self, look: impl FnOnce(&mut Core<Q>, usize) -> Progress) -> Progress {
        let Some(shared) = &self.shared else { return self.last };
        let told = match shared.core() {
            Some(core) if core.gone => gone(),
            None => gone(),
            Some(mut core) => look(&mut core, self.id),
        };
        // What has been told of does not become less by the engine's end.
        self.last = Progress { bytes: told.bytes.max(self.last.bytes), state: told.state };
        if told.state != State::Running {
            self.forget();
        }
        self.last
    }

    /// Gives the job's place back; the engine is quiet about it already.
    fn forget(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if let Some(mut core) = shared.core().filter(|core| !core.gone) {
            // Not in flight any more, so one look is all.
            let _ended = core.try_quiesce(self.id);
        }
    }

    /// Cancels what is left and waits until the engine is quiet.
    fn end(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let mut backoff = WaitBackoff::default();
        let told = loop {
            let told = match shared.core() {
                Some(mut core) if !core.gone => core.try_quiesce(self.id),
                _ => Some(gone()),
            };
            match told {
                Some(told) => break told,
                // Others may look at their lists meanwhile.
                None => backoff.pause(),
            }
        };
        let state = match told.state {
            State::Running => State::Failed(CopyFailure::Cancelled),
            state => state,
        };
        self.last = Progress { bytes: told.bytes.max(self.last.bytes), state };
    }
}

impl<Q: WorkQueue> Drop for DsaJob<Q> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<Q: WorkQueue> std::fmt::Debug for DsaJob<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DsaJob").field("id", &self.id).field("last", &self.last).finish_non_exhaustive()
    }
}

fn child() -> Unavailable {
    Unavailable {
        errno: 0,
        sentence: "this process was forked from the one that opened the DSA; make an engine of its own"
            .into(),
    }
}
