//! Memory between two pages that must not be touched.

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};

const PAGE_BYTES: usize = 4096;

/// Some pages; whoever reads or writes beside them is killed by SIGSEGV.
pub(super) struct Guarded {
    base: *mut u8,
    bytes: usize,
}

impl Guarded {
    pub(super) fn new(pages: usize) -> Self {
        let (bytes, whole) = (pages * PAGE_BYTES, (pages + 2) * PAGE_BYTES);
        // SAFETY: a mapping of its own, wherever the kernel puts it.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
        assert_ne!(base, MAP_FAILED, "no memory");
        let base = base.cast::<u8>().wrapping_add(PAGE_BYTES);
        // SAFETY: the pages within that mapping but for the first and the last.
        let done = unsafe { libc::mprotect(base.cast(), bytes, PROT_READ | PROT_WRITE) };
        assert_eq!(done, 0, "the pages can be made accessible");
        Self { base, bytes }
    }

    /// Where `bytes` bytes begin that end, or begin, beside a guard page.
    pub(super) fn place(&self, bytes: usize, at_end: bool) -> usize {
        if at_end { self.bytes - bytes } else { 0 }
    }

    pub(super) fn pointer(&self, at: usize) -> *mut u8 {
        assert!(at <= self.bytes);
        self.base.wrapping_add(at)
    }

    pub(super) fn fill(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes);
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: within the pages, checked above.
            unsafe { self.pointer(at + index).write_volatile(*byte) };
        }
    }

    pub(super) fn bytes(&self, at: usize, bytes: usize) -> Vec<u8> {
        assert!(at + bytes <= self.bytes);
        // SAFETY: within the pages, checked above.
        (at..at + bytes).map(|at| unsafe { self.pointer(at).read_volatile() }).collect()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping of `new`, which nobody else knows.
        let done =
            unsafe { libc::munmap(self.base.wrapping_sub(PAGE_BYTES).cast(), self.bytes + 2 * PAGE_BYTES) };
        assert_eq!(done, 0, "it can be unmapped");
    }
}
