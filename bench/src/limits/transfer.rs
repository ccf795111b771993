//! How the bare methods move one message between the processes' own buffers.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Work;
use super::copy::Stores;
use super::pair::{Pair, Stop, raise};
use super::pieces::{Claims, chunk_starts, front, pieces};
use super::sys::{Flag, LINE_BYTES, read_peer, write_peer};

/// The pieces of the part that goes through the ring, where the rest does not.
const MIXED_PIECE_BYTES: usize = 16 << 10;
const MIXED_RING_BYTES: usize = 2 << 20;

impl Pair {
    pub(super) fn send(&mut self, work: Work, data: &[u8]) -> Result<(), Stop> {
        let message = self.messages;
        match work {
            Work::Pipeline { buffers, chunk_bytes } => return self.produce(data, buffers, chunk_bytes),
            Work::Write => self.write_from(data, 0)?,
            Work::Both { front_percent } => {
                announce(&self.mine().announced, data.as_ptr() as u64, message);
                self.write_from(data, front(data.len(), front_percent))?;
                self.wait(&self.theirs().received.count, message)?;
            }
            Work::BothClaimed { chunk_bytes } => self.send_claimed(data, chunk_bytes)?,
            Work::Ring { ring_bytes, piece_bytes, sender, .. } => {
                self.fill(data, ring_bytes, piece_bytes, sender)?;
            }
            Work::RingThenWrite { front_percent } => {
                let (ring, rest) = data.split_at(front(data.len(), front_percent));
                self.fill(ring, MIXED_RING_BYTES, MIXED_PIECE_BYTES, Stores::Cached)?;
                self.write_from(data, data.len() - rest.len())?;
            }
            _ => {
                announce(&self.mine().announced, data.as_ptr() as u64, message);
                self.wait(&self.theirs().received.count, message)?;
            }
        }
        Ok(())
    }

    /// Writes the message from `start` on into the buffer that the receiver
    /// has posted for it.
    fn write_from(&self, data: &[u8], start: usize) -> Result<(), Stop> {
        let posted = &self.theirs().posted;
        self.wait(&posted.count, self.messages)?;
        // Relaxed: ordered by the Acquire load of the count, which was raised
        // after the address was stored.
        let address = posted.address.load(Ordering::Relaxed);
        write_peer(self.peer, address + start as u64, &data[start..])?;
        raise(&self.mine().written.count, self.messages);
        Ok(())
    }

    pub(super) fn receive(&mut self, work: Work, data: &mut [u8]) -> Result<(), Stop> {
        let message = self.messages;
        match work {
            Work::Pipeline { buffers, chunk_bytes } => return self.drain(data, buffers, chunk_bytes),
            Work::Write => {
                announce(&self.mine().posted, data.as_ptr() as u64, message);
                self.wait(&self.theirs().written.count, message)?;
            }
            Work::Both { front_percent } => {
                announce(&self.mine().posted, data.as_ptr() as u64, message);
                let end = front(data.len(), front_percent);
                self.read_until(&mut data[..end])?;
                self.wait(&self.theirs().written.count, message)?;
                raise(&self.mine().received.count, message);
            }
            Work::BothClaimed { chunk_bytes } => self.receive_claimed(data, chunk_bytes)?,
            Work::Ring { ring_bytes, piece_bytes, receiver, .. } => {
                self.empty(data, ring_bytes, piece_bytes, receiver)?;
            }
            Work::RingThenWrite { front_percent } => {
                announce(&self.mine().posted, data.as_ptr() as u64, message);
                let end = front(data.len(), front_percent);
                self.empty(&mut data[..end], MIXED_RING_BYTES, MIXED_PIECE_BYTES, Stores::Cached)?;
                self.wait(&self.theirs().written.count, message)?;
            }
            _ => {
                self.read_until(data)?;
                raise(&self.mine().received.count, message);
            }
        }
        Ok(())
    }

    /// Reads the message's front from where the sender announced it.
    fn read_until(&self, data: &mut [u8]) -> Result<(), Stop> {
        let announced = &self.theirs().announced;
        self.wait(&announced.count, self.messages)?;
        // Relaxed: as in `write_from`.
        let address = announced.address.load(Ordering::Relaxed);
        read_peer(self.peer, address, data)?;
        Ok(())
    }

    fn produce(&mut self, data: &[u8], buffers: usize, chunk_bytes: usize) -> Result<(), Stop> {
        for start in chunk_starts(data.len(), chunk_bytes) {
            let chunk = &data[start..data.len().min(start + chunk_bytes)];
            // The ring serves both directions in turn, so that the chunks
            // before this one may have gone the other way.
            let reused = (self.chunks + 1).saturating_sub(buffers as u64);
            self.wait_drained(reused)?;
            self.area.put(self.chunk_offset(buffers, chunk_bytes), chunk);
            self.chunks += 1;
            raise(&self.mine().produced.count, self.chunks);
        }
        Ok(())
    }

    fn drain(&mut self, data: &mut [u8], buffers: usize, chunk_bytes: usize) -> Result<(), Stop> {
        for start in chunk_starts(data.len(), chunk_bytes) {
            let end = data.len().min(start + chunk_bytes);
            let chunk = &mut data[start..end];
            self.wait(&self.theirs().produced.count, self.chunks + 1)?;
            self.area.take(self.chunk_offset(buffers, chunk_bytes), chunk);
            self.chunks += 1;
            raise(&self.mine().drained.count, self.chunks);
        }
        Ok(())
    }

    /// Waits until chunk number `chunk` has been drained by whichever process
    /// it went to; what this one drained itself is known to it.
    fn wait_drained(&self, chunk: u64) -> Result<(), Stop> {
        // Relaxed: this process's own counter.
        if self.mine().drained.count.load(Ordering::Relaxed) >= chunk {
            return Ok(());
        }
        self.wait(&self.theirs().drained.count, chunk)
    }

    fn chunk_offset(&self, buffers: usize, chunk_bytes: usize) -> usize {
        // Less than `buffers`, so that nothing is cut off.
        (self.chunks % buffers as u64) as usize * chunk_bytes
    }

    /// Puts a message into the ring, from the ring's start; for the string
    /// instruction at the place within a line at which it stands in `data`.
    fn fill(
        &mut self,
        data: &[u8],
        ring_bytes: usize,
        piece_bytes: usize,
        stores: Stores,
    ) -> Result<(), Stop> {
        let before = self.ring_bytes;
        let shift = if stores == Stores::String { data.as_ptr().addr() % LINE_BYTES } else { 0 };
        // Relaxed: published by the first raise of the count below.
        self.mine().filled.address.store(shift as u64, Ordering::Relaxed);
        for piece in pieces(data.len(), piece_bytes) {
            // What earlier messages left there has been taken: the other
            // process has answered them, or they came from it.
            if piece.end > ring_bytes {
                self.wait(&self.theirs().emptied.count, before + (piece.end - ring_bytes) as u64)?;
            }
            self.area.fill(piece.start % ring_bytes + shift, &data[piece.clone()], stores);
            raise(&self.mine().filled.count, told(before, piece.end));
        }
        self.ring_bytes = told(before, data.len());
        Ok(())
    }

    /// Takes a message out of the ring.
    fn empty(
        &mut self,
        data: &mut [u8],
        ring_bytes: usize,
        piece_bytes: usize,
        stores: Stores,
    ) -> Result<(), Stop> {
        let before = self.ring_bytes;
        let bytes = data.len();
        for piece in pieces(bytes, piece_bytes) {
            self.wait(&self.theirs().filled.count, told(before, piece.end))?;
            // Relaxed: as in `write_from`.
            let shift = self.theirs().filled.address.load(Ordering::Relaxed) as usize % LINE_BYTES;
            self.area.empty(piece.start % ring_bytes + shift, &mut data[piece.clone()], stores);
            if bytes > ring_bytes {
                raise(&self.mine().emptied.count, told(before, piece.end));
            }
        }
        self.ring_bytes = told(before, bytes);
        Ok(())
    }

    fn send_claimed(&self, data: &[u8], chunk_bytes: usize) -> Result<(), Stop> {
        let (mine, message) = (self.mine(), self.messages);
        // Relaxed: published by the announcement.
        mine.claims.count.store(0, Ordering::Relaxed);
        announce(&mine.announced, data.as_ptr() as u64, message);
        let posted = &self.theirs().posted;
        self.wait(&posted.count, message)?;
        // Relaxed: as in `write_from`.
        let address = posted.address.load(Ordering::Relaxed);
        let chunks = chunks(data.len(), chunk_bytes);
        while let Some(chunk) = claim(&mine.claims.count, |claims| claims.claim_back(chunks)) {
            let range = chunk_range(chunk, chunk_bytes, data.len());
            write_peer(self.peer, address + range.start as u64, &data[range])?;
        }
        raise(&mine.written.count, message);
        self.wait(&self.theirs().received.count, message)
    }

    fn receive_claimed(&self, data: &mut [u8], chunk_bytes: usize) -> Result<(), Stop> {
        let (theirs, message) = (self.theirs(), self.messages);
        announce(&self.mine().posted, data.as_ptr() as u64, message);
        self.wait(&theirs.announced.count, message)?;
        // Relaxed: as in `write_from`.
        let address = theirs.announced.address.load(Ordering::Relaxed);
        let chunks = chunks(data.len(), chunk_bytes);
        while let Some(chunk) = claim(&theirs.claims.count, |claims| claims.claim_front(chunks)) {
            let range = chunk_range(chunk, chunk_bytes, data.len());
            read_peer(self.peer, address + range.start as u64, &mut data[range])?;
        }
        self.wait(&theirs.written.count, message)?;
        raise(&self.mine().received.count, message);
        Ok(())
    }
}

/// What a ring's flag says when a message's bytes up to `end` are through; a
/// message without bytes counts as one, for the flag has to move.
fn told(before: u64, end: usize) -> u64 {
    before + end.max(1) as u64
}

/// Chunks of a message.
pub(super) fn chunks(bytes: usize, chunk_bytes: usize) -> u64 {
    bytes.div_ceil(chunk_bytes) as u64
}

/// Where chunk number `chunk` lies.
pub(super) fn chunk_range(chunk: u64, chunk_bytes: usize, bytes: usize) -> Range<usize> {
    // No larger than the message, which is in memory.
    let start = chunk as usize * chunk_bytes;
    start..bytes.min(start + chunk_bytes)
}

/// Claims one chunk, if any is left.
pub(super) fn claim(word: &AtomicU64, next: impl Fn(Claims) -> Option<(u64, u64)>) -> Option<u64> {
    // Relaxed: a claim hands over no bytes; what was copied is told by the
    // flags behind it.
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let (chunk, claimed) = next(Claims(seen))?;
        match word.compare_exchange_weak(seen, claimed, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(chunk),
            Err(other) => seen = other,
        }
    }
}

/// Says where a buffer is.
pub(super) fn announce(flag: &Flag, address: u64, message: u64) {
    // Relaxed: published by the Release store in `raise`.
    flag.address.store(address, Ordering::Relaxed);
    raise(&flag.count, message);
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
