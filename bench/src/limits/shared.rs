//! Ping-pongs between buffers that both processes have mapped.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use super::By;
use super::copy::Stores;
use super::pair::{LimitError, Pair, Stop, raise};
use super::shared_buffers::{KEY, PURPOSE, Part, SharedBuffers};
use super::sys::ensure_memory;
use super::transfer::{announce, chunk_range, chunks, claim};
use crate::patterns::arena::Arena;
use crate::patterns::handling::{read_all, write_all};

impl Pair {
    /// Gets buffers of at least `bytes` bytes that both processes have mapped.
    pub(super) fn share_buffers(&mut self, bytes: usize) -> Result<(), LimitError> {
        // Both have to come to the same answer.
        let theirs = self.swap(bytes as u64)?;
        let bytes = bytes.max(usize::try_from(theirs).unwrap_or(0));
        if self.shared.as_ref().is_some_and(|shared| shared.bytes >= bytes) {
            return Ok(());
        }
        self.shared = None;
        let made = (self.me == 0).then(|| SharedBuffers::create(bytes)).transpose();
        let number = match &made {
            Ok(Some(shared)) => u64::try_from(shared.file.as_raw_fd()).unwrap_or(0),
            _ => 0,
        };
        // File descriptor 0 is never a new one here: standard input is open.
        let number = self.share(number)?;
        self.shared = match made.map_err(LimitError::Memory)? {
            Some(shared) => Some(shared),
            None if number == 0 => {
                // What is short is short for both, mostly; whoever is heard first says so.
                ensure_memory(PURPOSE, KEY, bytes.saturating_mul(4)).map_err(LimitError::Memory)?;
                return Err(LimitError::PeerSilent);
            }
            None => {
                let card = format!("/proc/{}/fd/{number}", self.peer);
                Some(SharedBuffers::open(&card, bytes).map_err(LimitError::Memory)?)
            }
        };
        Ok(())
    }

    /// As the other ping-pong, between shared buffers: the arenas say where
    /// each message lies in them.
    pub(super) fn shared_pingpong(
        &mut self,
        by: By,
        outgoing: &mut Arena<'_>,
        incoming: &mut Arena<'_>,
        in_use: bool,
        iterations: u64,
    ) -> Result<(), Stop> {
        // Taken out meanwhile, so that `self` can be borrowed beside it.
        let mut shared = self.shared.take().ok_or(Stop::Silent)?;
        let mut result = Ok(());
        'all: for number in 0..iterations {
            for sender in [0, 1] {
                self.messages += 1;
                let place = if sender == self.me { Place::next(outgoing) } else { Place::next(incoming) };
                result = self.shared_message(&mut shared, by, sender, place, in_use.then_some(number));
                if result.is_err() {
                    break 'all;
                }
            }
        }
        self.shared = Some(shared);
        result
    }

    fn shared_message(
        &self,
        shared: &mut SharedBuffers,
        by: By,
        sender: usize,
        place: Place,
        in_use: Option<u64>,
    ) -> Result<(), Stop> {
        let Place { at, bytes } = place;
        if sender == self.me {
            if let Some(number) = in_use {
                shared.lend(self.me, Part::Outgoing, at, bytes, |data| write_all(data, number));
            }
            return self.send_shared(shared, by, place);
        }
        self.receive_shared(shared, by, place)?;
        if in_use.is_some() {
            shared.lend(self.me, Part::Incoming, at, bytes, |data| read_all(data));
        }
        Ok(())
    }

    fn send_shared(&self, shared: &SharedBuffers, by: By, place: Place) -> Result<(), Stop> {
        let (mine, theirs, message) = (self.mine(), self.theirs(), self.messages);
        let Place { at, bytes } = place;
        // Relaxed: published by the announcement.
        mine.claims.count.store(0, Ordering::Relaxed);
        announce(&mine.announced, at as u64, message);
        if by != By::Receiver {
            self.wait(&theirs.posted.count, message)?;
            // Relaxed: ordered by the Acquire load in `wait`.
            let into = offset(theirs.posted.address.load(Ordering::Relaxed));
            let copy = |start: usize, bytes, stores| {
                shared.transfer(self.me, at + start, into + start, bytes, stores)
            };
            match by {
                By::Receiver => {}
                By::Sender => copy(0, bytes, Stores::Cached),
                By::Halves(stores) => copy(middle(bytes), bytes - middle(bytes), stores),
                By::Claims(chunk_bytes) => {
                    let chunks = chunks(bytes, chunk_bytes);
                    while let Some(chunk) = claim(&mine.claims.count, |claims| claims.claim_back(chunks)) {
                        let range = chunk_range(chunk, chunk_bytes, bytes);
                        copy(range.start, range.len(), Stores::Cached);
                    }
                }
            }
            raise(&mine.written.count, message);
        }
        self.wait(&theirs.received.count, message)
    }

    fn receive_shared(&self, shared: &SharedBuffers, by: By, place: Place) -> Result<(), Stop> {
        let (mine, theirs, message) = (self.mine(), self.theirs(), self.messages);
        let Place { at, bytes } = place;
        announce(&mine.posted, at as u64, message);
        if by != By::Sender {
            self.wait(&theirs.announced.count, message)?;
            // Relaxed: ordered by the Acquire load in `wait`.
            let from = offset(theirs.announced.address.load(Ordering::Relaxed));
            let copy = |start: usize, bytes, stores| {
                shared.transfer(1 - self.me, from + start, at + start, bytes, stores)
            };
            match by {
                By::Sender => {}
                By::Receiver => copy(0, bytes, Stores::Cached),
                By::Halves(stores) => copy(0, middle(bytes), stores),
                By::Claims(chunk_bytes) => {
                    let chunks = chunks(bytes, chunk_bytes);
                    while let Some(chunk) = claim(&theirs.claims.count, |claims| claims.claim_front(chunks)) {
                        let range = chunk_range(chunk, chunk_bytes, bytes);
                        copy(range.start, range.len(), Stores::Cached);
                    }
                }
            }
        }
        if by != By::Receiver {
            self.wait(&theirs.written.count, message)?;
        }
        raise(&mine.received.count, message);
        Ok(())
    }
}

/// Where in this process's buffer a message lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    bytes: usize,
}

impl Place {
    /// Where the arena's next message lies.
    fn next(arena: &mut Arena<'_>) -> Self {
        Self { at: arena.position_bytes(), bytes: arena.slot().len() }
    }
}

/// Half a message, at a boundary of two cache lines.
fn middle(bytes: usize) -> usize {
    bytes / 2 / 128 * 128
}

/// An offset that the other process told; `place` checks it.
fn offset(told: u64) -> usize {
    usize::try_from(told).unwrap_or(usize::MAX)
}

#[cfg(test)]
impl Pair {
    /// Puts bytes into this process's outgoing shared buffer.
    pub(super) fn write_shared(&mut self, data: &[u8]) {
        let me = self.me;
        let shared = self.shared.as_mut().unwrap();
        shared.lend(me, Part::Outgoing, 0, data.len(), |place| place.copy_from_slice(data));
    }

    /// Takes what has arrived in this process's incoming shared buffer.
    pub(super) fn read_shared(&mut self, data: &mut [u8]) {
        let me = self.me;
        let shared = self.shared.as_mut().unwrap();
        shared.lend(me, Part::Incoming, 0, data.len(), |place| data.copy_from_slice(place));
    }
}
