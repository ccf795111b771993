//! How much of a copy may be left to the DMA engine.
//!
//! The driver cuts a copy into pieces wherever a page or a segment ends on
//! either side. Small pieces it copies by the processor, the others it gives to
//! the engine; but where the last is small, and a side has several segments, it
//! reports success before the engine has begun. What the engine has been given
//! comes at some later time, into pages that are not pinned any more. So the
//! engine gets a beginning whose last piece is large, and the processor copies
//! the rest.

use lmt_core::buffer::Buffer;

use super::abi::PAGE_BYTES;
use super::slot::Shape;

/// So many pieces are tried; after that the processor copies all.
const TRIES: u32 = 64;

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    /// Memory here, from the offset on.
    Local(&'a Buffer, u64),
    /// A region of so many bytes, from the offset on.
    Region(Shape, u64, u64),
}

impl Side<'_> {
    /// Where the piece begins that ends before byte `end` of the copy; 0 if it
    /// begins before the copy does. Of a region in several segments only the
    /// last piece is known; of the others, which may be as small as can be, the
    /// end is given.
    fn piece_start(&self, end: u64) -> u64 {
        match *self {
            Self::Local(buffer, offset) => {
                let Some(last) = end.checked_sub(1) else { return 0 };
                // The segment that holds the last byte, from its beginning.
                let mut first = 0;
                for segment in buffer.segments() {
                    let behind = first + segment.bytes as u64;
                    if offset + last < behind {
                        let in_page = page_start(segment.address as u64, offset + end - first);
                        return (first + in_page).saturating_sub(offset);
                    }
                    first = behind;
                }
                0
            }
            Self::Region(shape, _, offset) if shape.contiguous => {
                page_start(shape.offset_in_page.into(), offset + end).saturating_sub(offset)
            }
            Self::Region(shape, total_bytes, offset) => {
                let last_piece = total_bytes.saturating_sub(shape.last_piece_bytes.into());
                // Also where the copy ends in the middle of that piece.
                if offset + end > last_piece { last_piece.saturating_sub(offset) } else { end }
            }
        }
    }
}

/// Where the last page begins of `bytes` bytes from `address` on, counted from
/// there; 0 if that is before them.
fn page_start(address: u64, bytes: u64) -> u64 {
    let end = (address % PAGE_BYTES).saturating_add(bytes);
    let start = end.saturating_sub(1) / PAGE_BYTES * PAGE_BYTES;
    start.saturating_sub(address % PAGE_BYTES)
}

/// How many bytes of a copy of `bytes` bytes the engine may make, where pieces of
/// up to `small_bytes` must not be its last.
pub(super) fn safe_prefix(bytes: u64, sides: [Side<'_>; 2], small_bytes: u64) -> u64 {
    let mut end = bytes;
    for _ in 0..TRIES {
        let start = sides[0].piece_start(end).max(sides[1].piece_start(end));
        if end.saturating_sub(start) > small_bytes {
            return end;
        }
        if start == 0 || start >= end {
            return 0;
        }
        end = start;
    }
    0
}

#[cfg(test)]
#[path = "dma_tests.rs"]
mod tests;
