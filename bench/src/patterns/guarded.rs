//! A buffer between two pages that nobody may touch.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use memmap2::MmapMut;
use nix::sys::mman::{ProtFlags, mprotect};

use crate::memory::page_bytes;

/// At which end a [`Guarded`] buffer touches the forbidden page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// A write before the first byte kills the process.
    Front,
    /// A write behind the last byte does.
    Back,
}

/// Memory with an inaccessible page on either side (mprotect(2)). A mechanism
/// that writes past the buffer ends in SIGSEGV, or in EFAULT if the kernel
/// writes for it.
#[derive(Debug)]
pub struct Guarded {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Guarded {
    /// Maps `bytes` bytes with a page before and a page behind.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(bytes: usize, against: Against) -> io::Result<Self> {
        let page = usize::try_from(page_bytes()).map_err(io::Error::other)?;
        let inner = bytes.max(1).next_multiple_of(page);
        let map = MmapMut::map_anon(inner + 2 * page)?;
        for offset in [0, page + inner] {
            forbid(&map, offset, page)?;
        }
        let start = match against {
            Against::Front => page,
            Against::Back => page + inner - bytes,
        };
        Ok(Self { map, start, bytes })
    }

    /// The bytes between the pages.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.bytes]
    }
}

fn forbid(map: &MmapMut, offset: usize, page: usize) -> io::Result<()> {
    let address = NonNull::from(&map[offset]).cast();
    // SAFETY: `offset` is 0 or the mapping's last page, both page-aligned, and
    // `page` bytes from there lie inside the mapping, which is ours alone. No
    // reference to those bytes is ever made: `as_mut_slice` leaves them out.
    unsafe { mprotect(address, page, ProtFlags::PROT_NONE) }.map_err(io::Error::from)
}

#[cfg(test)]
#[path = "guarded_tests.rs"]
mod tests;
