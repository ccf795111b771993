//! Asynchronous copies, one after the other, each after a delay in which it is
//! seen pending.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::memory::Copy;
use crate::sys::StatusArray;

/// A copy to be made.
#[derive(Debug)]
pub struct Job {
    pub copy: Copy,
    pub slot: Option<(Arc<StatusArray>, usize)>,
    /// What the slot says after success and after failure.
    pub success: u8,
    pub failed: u8,
}

impl Job {
    /// Makes the copy now; returns what its status is.
    pub fn perform(&self) -> u8 {
        if [&self.copy.from, &self.copy.to].iter().any(|place| place.memory.copies_ended()) {
            return self.failed;
        }
        match self.copy.make() {
            Ok(()) => self.success,
            Err(_) => self.failed,
        }
    }
}

/// The thread that makes them.
#[derive(Debug)]
pub struct Worker {
    jobs: Sender<(Instant, Job)>,
    delay: Duration,
}

impl Worker {
    pub fn start(delay: Duration) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        std::thread::Builder::new().name("knem-copies".to_owned()).spawn(move || work(&queue))?;
        Ok(Self { jobs, delay })
    }

    pub fn give(&self, job: Job) {
        // The thread lives as long as this sender.
        let _ = self.jobs.send((Instant::now() + self.delay, job));
    }
}

fn work(queue: &Receiver<(Instant, Job)>) {
    for (due, job) in queue {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let status = job.perform();
        if let Some((array, index)) = &job.slot {
            array.store(*index, status);
        }
    }
}
