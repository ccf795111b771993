//! Another process of a check.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::sys;
use crate::verdict::{Stop, fails, from_line, needed, to_line};

/// What one process says to the other.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    /// Sends numbers, for instance cookies.
    pub fn send(&mut self, number: u64) -> Result<(), Stop> {
        needed("a word to the other process", self.0.write_all(&number.to_ne_bytes()))
    }

    pub fn receive(&mut self) -> Result<u64, Stop> {
        let mut number = [0; 8];
        needed("a word from the other process", self.0.read_exact(&mut number))?;
        Ok(u64::from_ne_bytes(number))
    }
}

/// A child of the check's process, killed when it is dropped.
#[derive(Debug)]
pub struct Peer {
    pid: Pid,
    pub channel: Channel,
    reaped: bool,
}

impl Peer {
    /// Starts a process that does `work` and ends.
    pub fn start(work: impl FnOnce(&mut Channel) -> Result<(), Stop>) -> Result<Self, Stop> {
        let started = sys::fork_with(|stream| {
            let mut channel = Channel(stream);
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut channel)));
            let done = done.unwrap_or_else(|_| fails("the other process has panicked"));
            // A check that needs to know waits for it; others have gone on.
            let line = to_line(&done.as_ref().map(|()| String::new()).map_err(Clone::clone));
            let _ = channel.0.write_all(line.as_bytes());
            i32::from(done.is_err())
        });
        let (pid, stream) = needed("fork", started)?;
        Ok(Self { pid, channel: Channel(stream), reaped: false })
    }

    /// Waits for its end, and passes its verdict on.
    pub fn join(mut self) -> Result<(), Stop> {
        let mut line = String::new();
        needed("the other process's verdict", self.channel.0.read_to_string(&mut line))?;
        self.reap();
        match from_line(&line) {
            Some(verdict) => verdict.map(drop),
            None => fails(format!("expected a verdict of the other process, found {line:?}")),
        }
    }

    /// Waits until it has ended.
    pub fn reap(&mut self) -> WaitStatus {
        self.reaped = true;
        loop {
            match waitpid(self.pid, None) {
                Ok(status) => return status,
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return WaitStatus::StillAlive,
            }
        }
    }

    pub fn kill(&self) {
        // It is a child that has not been waited for, so the number is its.
        let _ = kill(self.pid, Signal::SIGKILL);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            self.reap();
        }
    }
}

/// Does `work` in another process, and waits for it.
pub fn elsewhere(work: impl FnOnce() -> Result<(), Stop>) -> Result<(), Stop> {
    Peer::start(|_| work())?.join()
}
