//! The engine that every machine has: a thread that copies.
//!
//! The thread is made on first use, sleeps when it has nothing to do, takes no
//! signals and ends when the engine is dropped. It overlaps with the
//! application where there is a core for it; knem-jpdc's section 3.4 does the
//! same with a kernel thread.

mod task;
mod thread;

use std::sync::Arc;
use std::thread::JoinHandle;

use lmt_core::config_key::{Key, Kind, Value};
use lmt_core::doorbell::Doorbell;
use lmt_core::fork_guard::Origin;
use lmt_core::mechanism::Unavailable;

use crate::engine::{CopyEngine, CopyFailure, Progress, Reach, State, SubmitError};
use crate::outcome::Outcome;
use crate::places::CopyList;
use crate::queue::Queue;
use task::Task;

/// Where the thread runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The CPU that the thread is bound to. Absent by default: it runs where
    /// the thread that made it may run, and the kernel finds an idle one there.
    pub cpu: Option<usize>,
}

/// What can be set: the fields of [`Config`].
pub const KEYS: &[Key] = &[Key {
    name: "cpu",
    kind: Kind::Cpu,
    variable: None,
    meaning: "the CPU to which the copying thread is bound",
    reason: "it runs where the thread that made it may run, and the kernel finds an idle CPU there",
}];

/// A copying thread.
#[derive(Debug)]
pub struct Software {
    config: Config,
    origin: Origin,
    doorbell: Option<Doorbell>,
    running: Option<Running>,
    /// A thread was made, and bound to the CPU that the configuration names.
    is_tried: bool,
}

struct Running {
    queue: Arc<Queue<Task>>,
    thread: JoinHandle<()>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("thread", &self.thread.thread().id()).finish_non_exhaustive()
    }
}

/// A list that the thread has been given.
pub struct Job {
    queue: Arc<Queue<Task>>,
    outcome: Arc<Outcome>,
    origin: Origin,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Job {
    fn progress(&self) -> Progress {
        let seen = self.outcome.look();
        match seen.state {
            // The thread is the parent's; its words here are copies that
            // nobody writes any more.
            State::Running if !self.origin.is_this_process() => {
                Progress { state: State::Failed(CopyFailure::EngineGone), ..seen }
            }
            _ => seen,
        }
    }

    fn quiesce(&self) -> Progress {
        // The mutex of a child may have been locked for ever at the fork.
        if self.origin.is_this_process() {
            self.queue.quiesce(&self.outcome);
        }
        self.progress()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.quiesce();
        if self.origin.is_this_process() {
            self.queue.give_back(Arc::clone(&self.outcome));
        }
    }
}

impl Software {
    /// An engine without a thread yet.
    pub fn new(config: Config) -> Self {
        Self { config, origin: Origin::here(), doorbell: None, running: None, is_tried: false }
    }

    /// Whether the thread has been made.
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// # Errors
    /// [`Unavailable`] in a forked child.
    fn check_origin(&self) -> Result<(), Unavailable> {
        if self.origin.is_this_process() {
            return Ok(());
        }
        Err(Unavailable {
            errno: 0,
            sentence:
                "the copying thread stayed in the parent of this forked process; make an endpoint of its \
                       own after the fork"
                    .to_owned(),
        })
    }

    /// The thread's queue; the thread is made if there is none.
    fn queue(&mut self) -> Result<&Arc<Queue<Task>>, Unavailable> {
        self.check_origin()?;
        let running = match self.running.take() {
            Some(running) => running,
            None => self.begin()?,
        };
        Ok(&self.running.insert(running).queue)
    }

    fn begin(&self) -> Result<Running, Unavailable> {
        let queue = Arc::new(Queue::new());
        let (own, doorbell) = (Arc::clone(&queue), self.doorbell.clone());
        let ended = move || {
            if let Some(doorbell) = &doorbell {
                doorbell.ring();
            }
        };
        let thread = thread::spawn(self.config.cpu, move || own.run(ended))?;
        Ok(Running { queue, thread })
    }
}

impl Default for Software {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl CopyEngine for Software {
    type Job = Job;

    fn name(&self) -> &'static str {
        "software"
    }

    /// It works wherever threads do, which is tried once; the thread that stays
    /// is made on first use.
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        let cpu = self.config.cpu.map_or(Value::Absent, |cpu| Value::Number(cpu as u64));
        (key == "cpu").then_some(cpu)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        if self.is_running() {
            return Err(format!("{key} cannot change once the thread runs; set it before"));
        }
        self.config.cpu = match (key, value) {
            ("cpu", Value::Absent) => None,
            ("cpu", Value::Number(cpu)) => Some(usize::try_from(cpu).unwrap_or(usize::MAX)),
            ("cpu", _) => return Err("cpu must be the number of a CPU".to_owned()),
            _ => return Err(format!("the copying thread has no key `{key}`")),
        };
        self.is_tried = false;
        Ok(())
    }

    fn available(&mut self) -> Result<(), Unavailable> {
        self.check_origin()?;
        if !self.is_tried {
            thread::try_one(self.config.cpu)?;
            self.is_tried = true;
        }
        Ok(())
    }

    fn reach(&self) -> Reach {
        Reach { mapped: true, peer_read: true, peer_write: true, regions: false }
    }

    fn take_doorbell(&mut self, doorbell: &Doorbell) {
        self.doorbell = Some(doorbell.clone());
    }

    fn submit(&mut self, list: CopyList) -> Result<Job, SubmitError> {
        if !self.reach().holds(&list) {
            return Err(SubmitError::OutOfReach);
        }
        let origin = self.origin;
        let queue = self.queue()?;
        let outcome = queue.push(Task::new(&list)).ok_or_else(|| Unavailable {
            errno: 0,
            sentence: "the copying thread has ended by a panic; report it, and use another mechanism"
                .to_owned(),
        })?;
        Ok(Job { queue: Arc::clone(queue), outcome, origin })
    }

    fn poll(&mut self, job: &mut Job) -> Progress {
        job.progress()
    }

    fn cancel(&mut self, job: &mut Job) {
        if job.origin.is_this_process() {
            job.queue.cancel(&job.outcome);
        }
    }

    fn quiesce(&mut self, job: Job) -> Progress {
        job.quiesce()
    }
}

impl Drop for Software {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if !self.origin.is_this_process() {
            // The thread and whoever holds the mutex are in the parent: in this
            // child there is nothing to join, and nothing may be freed that the
            // C library believes a thread to own.
            std::mem::forget(running);
            return;
        }
        running.queue.close();
        // A panic has been told by the jobs.
        let _panicked = running.thread.join();
    }
}

#[cfg(test)]
#[path = "software_tests.rs"]
mod tests;
