//! What a look at the machine copies from and to.

/// Two buffers that begin with a page each, every byte of which was written.
///
/// A target 16 to 48 bytes behind its source, counted within a page, takes up to a third
/// longer, since a load there waits for stores whose addresses end alike. What the
/// allocator returns stands so or otherwise by chance, and a look shall not depend on
/// that.
#[derive(Debug)]
pub struct TwoBuffers {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

/// The smallest page; that of x86-64.
const PAGE_BYTES: usize = 4096;

impl TwoBuffers {
    /// Two of `bytes` bytes each.
    ///
    /// # Panics
    /// If there is no memory for two, as everywhere; looks are short.
    ///
    /// # Example
    /// ```
    /// let mut buffers = lmt_core::two_buffers::TwoBuffers::of(100);
    /// let (source, target) = buffers.both();
    /// target.copy_from_slice(source);
    /// ```
    pub fn of(bytes: usize) -> Self {
        let apart = bytes.next_multiple_of(PAGE_BYTES);
        let memory = vec![1; PAGE_BYTES + 2 * apart];
        let start = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self { memory, start, bytes }
    }

    /// The source and the target.
    pub fn both(&mut self) -> (&[u8], &mut [u8]) {
        let apart = self.bytes.next_multiple_of(PAGE_BYTES);
        let (source, target) = self.memory[self.start..].split_at_mut(apart);
        (&source[..self.bytes], &mut target[..self.bytes])
    }
}

#[cfg(test)]
#[path = "two_buffers_tests.rs"]
mod tests;
