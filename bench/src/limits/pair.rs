//! The two processes of the bare ping-pongs, and what they do.

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getppid};

use super::shared_buffers::SharedBuffers;
use super::sys::{Control, SharedArea, Side, admit_siblings, read_peer, system_call, write_peer};
use super::{Method, Work};
use crate::patterns::arena::Arena;
use crate::patterns::handling::{read_all, write_all};

/// How long one process waits for the other before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Looks at a flag between two looks at the clock.
const LOOKS: u32 = 1 << 16;
/// Looks before the core is offered to others: two processes may have to share
/// one, and then looking on only takes time from the one waited for.
const LOOKS_BEFORE_YIELD: u32 = 1 << 12;

/// Why the bare methods cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The shared memory cannot be had.
    #[error("the shared memory for the bare methods cannot be had: {0}")]
    Memory(#[source] io::Error),
    /// A call on the other process's memory failed in the middle.
    #[error("{method} failed in the middle of a message: {source}")]
    Call {
        /// The method.
        method: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The other process has failed or does not move.
    #[error("the other process of the bare methods does not answer any more; start the benchmark again")]
    PeerSilent,
}

/// One of the two processes.
#[derive(Debug)]
pub struct Pair {
    pub(super) area: SharedArea,
    pub(super) me: usize,
    pub(super) peer: Pid,
    /// Messages, chunks, meetings, hops and numbers told so far; both processes
    /// count the same.
    pub(super) messages: u64,
    pub(super) chunks: u64,
    /// Bytes that have gone through the ring from whose start messages begin.
    pub(super) ring_bytes: u64,
    meetings: u64,
    hops: u64,
    numbers: u64,
    unreadable: Option<String>,
    unwritable: Option<String>,
    pub(super) shared: Option<SharedBuffers>,
}

/// The memory of the pair, before both are there.
#[derive(Debug)]
pub struct PairMemory(SharedArea);

impl PairMemory {
    /// What the other process needs for [`Pair::second`].
    pub fn card(&self) -> String {
        self.0.card()
    }
}

impl Pair {
    /// Makes the shared memory, in the first process.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn memory() -> Result<PairMemory, LimitError> {
        SharedArea::create().map(PairMemory).map_err(LimitError::Memory)
    }

    /// The first process; waits for the second.
    ///
    /// # Errors
    /// It does not come.
    pub fn first(memory: PairMemory) -> Result<Self, LimitError> {
        Self::meet(memory.0, 0)
    }

    /// The second process, with the first one's card.
    ///
    /// # Errors
    /// The memory cannot be mapped, or the first process does not come.
    pub fn second(card: &str) -> Result<Self, LimitError> {
        Self::meet(SharedArea::open(card).map_err(LimitError::Memory)?, 1)
    }

    fn meet(area: SharedArea, me: usize) -> Result<Self, LimitError> {
        admit_siblings(getppid());
        // Release: pairs with the other process's Acquire load of the pid, so
        // that it probes this process only after it was admitted.
        area.control().sides[me].pid.store(Pid::this().as_raw(), Ordering::Release);
        let mut pair = Self {
            area,
            me,
            peer: Pid::from_raw(0),
            messages: 0,
            chunks: 0,
            ring_bytes: 0,
            shared: None,
            meetings: 0,
            hops: 0,
            numbers: 0,
            unreadable: None,
            unwritable: None,
        };
        let theirs = &pair.theirs().pid;
        // Acquire: pairs with the Release store above.
        wait_until(pair.control(), || theirs.load(Ordering::Acquire) != 0)?;
        pair.peer = Pid::from_raw(theirs.load(Ordering::Acquire));
        pair.probe()?;
        Ok(pair)
    }

    /// Reads and writes the other process's memory for once: only trying tells
    /// whether the kernel allows it.
    fn probe(&mut self) -> Result<(), LimitError> {
        let target = [0u8; 8];
        let address = black_box(target.as_ptr()) as u64;
        self.mine().posted.address.store(address, Ordering::Relaxed); // published by `meeting`
        self.meeting()?;
        let there = self.theirs().posted.address.load(Ordering::Relaxed); // ordered by `meeting`
        let mut word = [0u8; 8];
        let read = read_peer(self.peer, there, &mut word);
        let written = write_peer(self.peer, there, &word);
        self.unreadable = self.agree(read.err())?;
        self.unwritable = self.agree(written.err())?;
        self.meeting()?;
        black_box(target);
        Ok(())
    }

    /// Says on both sides why a call is refused if it is refused to either.
    fn agree(&mut self, refusal: Option<io::Error>) -> Result<Option<String>, LimitError> {
        let errno = |code: i32| u64::try_from(code).unwrap_or(1);
        let mine = refusal.map_or(0, |error| errno(error.raw_os_error().unwrap_or(libc::EIO)));
        let theirs = self.swap(mine)?;
        let code = i32::try_from(mine.max(theirs)).unwrap_or(libc::EIO);
        Ok((code != 0).then(|| io::Error::from_raw_os_error(code).to_string()))
    }

    /// Why a method cannot be measured here, if it cannot.
    pub fn refused(&self, method: &Method) -> Option<String> {
        let refused = |call: &str, reason: &Option<String>| {
            let reason = reason.as_ref()?;
            Some(format!(
                "{} is left out: {call} is refused here ({reason}); it needs the right to trace the other process",
                method.name
            ))
        };
        let read =
            method.work.needs_reading().then(|| refused("process_vm_readv", &self.unreadable)).flatten();
        let write = || method.work.needs_writing().then(|| refused("process_vm_writev", &self.unwritable));
        read.or_else(|| write().flatten())
    }

    /// Does `iterations` of `method` with messages of the arenas' slots, and
    /// returns the seconds it took here.
    ///
    /// # Errors
    /// The other process is gone, or the kernel refuses in the middle.
    pub fn repetition(
        &mut self,
        method: &Method,
        outgoing: &mut Arena<'_>,
        incoming: &mut Arena<'_>,
        in_use: bool,
        iterations: u64,
    ) -> Result<f64, LimitError> {
        if method.work.has_shared_buffers() {
            self.share_buffers(outgoing.memory_bytes().max(incoming.memory_bytes()))?;
        }
        self.meeting()?;
        let start = Instant::now();
        let result = match method.work {
            Work::Hop => self.hop(iterations),
            Work::SystemCall => {
                self.alone(|| (0..iterations).for_each(|_| system_call()));
                Ok(())
            }
            Work::Copy => {
                self.alone(|| {
                    for _ in 0..iterations {
                        black_box(incoming.slot()).copy_from_slice(black_box(outgoing.slot()));
                    }
                });
                Ok(())
            }
            Work::Shared(by) => self.shared_pingpong(by, outgoing, incoming, in_use, iterations),
            work => self.pingpong(work, outgoing, incoming, in_use, iterations),
        };
        let seconds = start.elapsed().as_secs_f64();
        result.map_err(|error| self.give_up(method.name, error))?;
        Ok(seconds)
    }

    /// Tells the second process a number that the first knows.
    ///
    /// # Errors
    /// The other process is gone.
    pub fn share(&mut self, number: u64) -> Result<u64, LimitError> {
        let theirs = self.swap(number)?;
        Ok(if self.me == 0 { number } else { theirs })
    }

    fn alone(&self, work: impl FnOnce()) {
        if self.me == 0 {
            work();
        }
    }

    fn hop(&mut self, iterations: u64) -> Result<(), Stop> {
        let (mine, theirs) = (&self.mine().ball.count, &self.theirs().ball.count);
        let first = self.hops + 1;
        for ball in first..first + iterations {
            if self.me == 0 {
                raise(mine, ball);
                self.wait(theirs, ball)?;
            } else {
                self.wait(theirs, ball)?;
                raise(mine, ball);
            }
        }
        self.hops += iterations;
        Ok(())
    }

    fn pingpong(
        &mut self,
        work: Work,
        outgoing: &mut Arena<'_>,
        incoming: &mut Arena<'_>,
        in_use: bool,
        iterations: u64,
    ) -> Result<(), Stop> {
        for number in 0..iterations {
            for sender in [0, 1] {
                self.messages += 1;
                if sender == self.me {
                    let data = outgoing.slot();
                    if in_use {
                        write_all(data, number);
                    }
                    self.send(work, data)?;
                } else {
                    let data = incoming.slot();
                    self.receive(work, data)?;
                    // The other process may have written here; the compiler
                    // must not think it knows the bytes.
                    let data = black_box(data);
                    if in_use {
                        read_all(data);
                    }
                }
            }
        }
        Ok(())
    }

    fn meeting(&mut self) -> Result<(), LimitError> {
        self.meetings += 1;
        raise(&self.mine().arrived.count, self.meetings);
        self.wait(&self.theirs().arrived.count, self.meetings).map_err(|_| LimitError::PeerSilent)
    }

    pub(super) fn swap(&mut self, number: u64) -> Result<u64, LimitError> {
        self.numbers += 1;
        let told = &self.mine().told;
        told.address.store(number, Ordering::Relaxed); // published by `raise`
        raise(&told.count, self.numbers);
        let theirs = &self.theirs().told;
        self.wait(&theirs.count, self.numbers).map_err(|_| LimitError::PeerSilent)?;
        let number = theirs.address.load(Ordering::Relaxed); // ordered by `wait`
        // The next number must not overtake this one.
        self.meeting()?;
        Ok(number)
    }

    fn give_up(&self, method: &'static str, stop: Stop) -> LimitError {
        match stop {
            Stop::Silent => LimitError::PeerSilent,
            Stop::Call(source) => {
                // Relaxed: the flag stands for itself.
                self.mine().failed.store(source.raw_os_error().unwrap_or(-1), Ordering::Relaxed);
                LimitError::Call { method, source }
            }
        }
    }

    fn control(&self) -> &Control {
        self.area.control()
    }

    pub(super) fn mine(&self) -> &Side {
        &self.control().sides[self.me]
    }

    pub(super) fn theirs(&self) -> &Side {
        &self.control().sides[1 - self.me]
    }

    pub(super) fn wait(&self, count: &AtomicU64, at_least: u64) -> Result<(), Stop> {
        // Acquire: pairs with the Release store in `raise`.
        wait_until(self.control(), || count.load(Ordering::Acquire) >= at_least).map_err(|_| Stop::Silent)
    }
}

/// Why a message did not get through.
#[derive(Debug)]
pub(super) enum Stop {
    Silent,
    Call(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Call(error)
    }
}

/// Moves a counter on.
pub(super) fn raise(count: &AtomicU64, to: u64) {
    // Release: pairs with the Acquire load in `Pair::wait`; what was copied or
    // stored before is seen by whoever sees the count.
    count.store(to, Ordering::Release);
}

fn wait_until(control: &Control, mut there: impl FnMut() -> bool) -> Result<(), LimitError> {
    let mut looks = 0u32;
    let mut since: Option<Instant> = None;
    while !there() {
        spin_loop();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS_BEFORE_YIELD) {
            std::thread::yield_now();
        }
        if looks.is_multiple_of(LOOKS) {
            // Relaxed: the flag stands for itself.
            let failed = control.sides.iter().any(|side| side.failed.load(Ordering::Relaxed) != 0);
            if failed || since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(LimitError::PeerSilent);
            }
        }
    }
    Ok(())
}
