//! The buffers from which messages are sent and into which they are received.

use crate::job::stride_bytes;

/// A buffer cut into slots of one message each, used one group after the
/// other. With a single group the same bytes are used again and again; with
/// many the messages rotate through memory larger than the cache.
#[derive(Debug)]
pub struct Arena<'a> {
    memory: &'a mut [u8],
    bytes: usize,
    stride: usize,
    groups: usize,
    window: usize,
    next: usize,
}

impl<'a> Arena<'a> {
    /// Cuts `memory` into slots for messages of `bytes` bytes, `window` of them
    /// to a group. `rotate` uses all of the memory, else only its first group.
    /// `None` when not even one group fits.
    pub fn new(memory: &'a mut [u8], bytes: usize, window: usize, rotate: bool) -> Option<Self> {
        let stride = usize::try_from(stride_bytes(bytes as u64)).ok()?;
        Self::with_stride(memory, bytes, stride, window, rotate)
    }

    /// As [`Self::new`], with no gap between the messages.
    pub fn packed(memory: &'a mut [u8], bytes: usize, window: usize) -> Option<Self> {
        Self::with_stride(memory, bytes, bytes, window, false)
    }

    fn with_stride(
        memory: &'a mut [u8],
        bytes: usize,
        stride: usize,
        window: usize,
        rotate: bool,
    ) -> Option<Self> {
        let group = stride.checked_mul(window)?;
        let fitting = memory.len().checked_div(group).unwrap_or(1);
        let groups = if rotate { fitting } else { fitting.min(1) };
        (groups > 0).then_some(Self { memory, bytes, stride, groups, window, next: 0 })
    }

    /// Lets the first group be this many groups further on, so that rotation
    /// goes on where an earlier arena over the same memory stopped.
    pub fn start_at(&mut self, used_bytes: usize) {
        let group = (self.stride * self.window).max(1);
        self.next = used_bytes.div_ceil(group) % self.groups;
    }

    /// Where in the memory the next group begins.
    pub fn position_bytes(&self) -> usize {
        self.next * self.stride * self.window
    }

    /// Bytes of all the memory.
    pub fn memory_bytes(&self) -> usize {
        self.memory.len()
    }

    /// The next message's bytes (the first slot of the next group).
    pub fn slot(&mut self) -> &mut [u8] {
        let start = self.advance();
        &mut self.memory[start..start + self.bytes]
    }

    /// The next group's messages.
    pub fn group(&mut self) -> Group<'_> {
        let start = self.advance();
        let rest = &mut self.memory[start..start + self.stride * self.window];
        Group { rest, stride: self.stride, bytes: self.bytes, left: self.window }
    }

    /// The next group's two messages, of a pattern that has two.
    pub fn pair(&mut self) -> [&mut [u8]; 2] {
        let start = self.advance();
        let group = &mut self.memory[start..start + self.stride * self.window.min(2)];
        let (first, second) = group.split_at_mut(self.stride);
        [&mut first[..self.bytes], &mut second[..self.bytes]]
    }

    fn advance(&mut self) -> usize {
        let start = self.position_bytes();
        self.next = if self.next + 1 == self.groups { 0 } else { self.next + 1 };
        start
    }
}

/// The messages of a group; none of them takes memory of its own, for what is measured
/// goes through them again and again.
pub struct Group<'m> {
    rest: &'m mut [u8],
    stride: usize,
    bytes: usize,
    left: usize,
}

impl<'m> Iterator for Group<'m> {
    type Item = &'m mut [u8];

    fn next(&mut self) -> Option<&'m mut [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (slot, rest) = std::mem::take(&mut self.rest).split_at_mut(self.stride);
        self.rest = rest;
        Some(&mut slot[..self.bytes])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Group<'_> {}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
